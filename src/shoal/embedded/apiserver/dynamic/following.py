"""Applies configurations of admission with the write that stores them.

Subscribers of the state receive a batch before its writers are answered, so a new policy is evaluated for the very next
write. A policy's status contains the observed generation.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import msgspec

from shoal.embedded.apiserver import status
from shoal.embedded.apiserver.background_retries import BackgroundRetries
from shoal.embedded.apiserver.calls import Actor, Call
from shoal.embedded.apiserver.dynamic.gate import DynamicAdmission
from shoal.embedded.apiserver.dynamic.rules import EXEMPT, GROUP
from shoal.embedded.apiserver.resource import Home, Obj
from shoal.embedded.apiserver.rest.changing import change
from shoal.embedded.apiserver.rest.context import ServerContext
from shoal.embedded.apiserver.state.event import Event
from shoal.embedded.apiserver.state.record import Record

_VALIDATING = Home(GROUP, "validatingadmissionpolicies")
_SELF = Actor("system:serviceaccount:kube-system:validatingadmissionpolicy-status-controller", ("system:masters",))


class FollowedConfigurations:
    def __init__(self, context: ServerContext, dynamic: DynamicAdmission) -> None:
        self._context = context
        self._dynamic = dynamic
        self._errands = BackgroundRetries()
        for record in context.state.list(_VALIDATING, None).records:
            self._note(record)
        context.state.on_commit(self._committed)

    async def close(self) -> None:
        await self._errands.close()

    def _committed(self, events: Sequence[Event]) -> None:
        is_any = False
        for event in events:
            if event.record.ref.home in EXEMPT:
                is_any = True
                if event.kind != "DELETED" and event.record.ref.home == _VALIDATING:
                    self._note(event.record)
        if is_any:
            self._dynamic.changed()

    def _note(self, record: Record) -> None:
        obj: Obj = msgspec.json.decode(record.data)
        if _seen(obj) != obj:
            name = record.ref.name
            self._errands.start(f"the status of policy {name}", partial(self._write, name))

    async def _write(self, name: str) -> None:
        resource = self._context.catalog.find(GROUP, "v1", _VALIDATING.plural)
        if resource is None:
            return

        async def make(present: Obj | None) -> Obj:
            return _seen(present or {})

        call = Call("update", resource, _SELF, name=name, subresource="status", field_manager="kube-controller-manager")
        try:
            await change(self._context, call, make)
        except status.ApiError as error:
            if error.code != 404:
                raise


def _seen(policy: Obj) -> Obj:
    """The policy with a status that says it was seen as it is."""
    generation = policy["metadata"].get("generation")
    present = policy.get("status") or {}
    if generation is None or present.get("observedGeneration") == generation:
        return policy
    return {**policy, "status": {**present, "observedGeneration": generation, "typeChecking": {}}}
