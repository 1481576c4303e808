"""Waits for devices that must be prepared between their allocation and the binding of the pod, for example attached
over a fabric.

A driver names conditions with such a device. They are copied into the allocation, the driver reports them in the
claim's status, and the pod is bound when all are true. If a condition reports a failure, or the timeout since the
allocation has passed, the placement and the claim's allocation are undone, so that the next decision may choose another
node.

This module writes nothing, and the timeout counts from the time in the claim: a process that takes over does not wait
longer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from shoal.api.claims import AllocatedDevice, ResourceClaim
from shoal.client.context import Context
from shoal.client.item import Key
from shoal.client.kind import PODS
from shoal.client.recorder import SCHEDULING
from shoal.client.refusals import NotFoundError
from shoal.controllers.bind_preparation.users import User
from shoal.units.errors import ConflictError

_LONGEST_S, _POLL_S = 600.0, 0.5
_PLUGIN = 'running PreBind plugin "DynamicResources"'


class Attachment:
    """`claims`: the current claims by namespace/name."""

    def __init__(self, context: Context, claims: Mapping[str, ResourceClaim]) -> None:
        self._clock = context.clock
        self._events = context.events
        self._pods = context.informers.of(PODS)
        self._claims = claims

    async def ready(self, user: User, scheduler: str, keys: Sequence[Key], node: str) -> None:
        """Returns when all devices of the claims are ready for the pod."""
        if not any(map(self._has_conditions, keys)):
            return
        pen = self._events.named(scheduler)
        meta = {"name": user.name, "namespace": user.namespace, "uid": user.uid}
        about = {"kind": "Pod", "apiVersion": "v1", "metadata": meta}
        words = f"waiting for binding conditions for device on node {node}"
        pen.record(about, "BindingConditionsPending", words, deed=SCHEDULING)
        ends_s = self._clock.seconds() + _LONGEST_S
        while not all(map(self._is_ready, keys)):
            user.check()
            fault = next((found for key in keys if (found := self._fault(key))), "")
            if not fault and self._clock.seconds() >= ends_s:
                fault = "device binding timeout"
            if fault:
                words = f"{_PLUGIN}: {fault}"
                pen.record(about, "FailedScheduling", words, type_="Warning", deed=SCHEDULING)
                raise ConflictError(words)
            item = self._pods.get(*user.key)
            if item is None or item.uid != user.uid:
                raise NotFoundError(f'pods "{user.name}" not found')
            await self._clock.sleep(_POLL_S)

    def _has_conditions(self, key: Key) -> bool:
        return any(result.binding_conditions for result in self._results(key))

    def _is_ready(self, key: Key) -> bool:
        claim = self._claims.get("/".join(key))
        return claim is not None and is_ready(claim)

    def _fault(self, key: Key) -> str:
        """Why the claim can no longer become ready; empty if it can."""
        claim = self._claims.get("/".join(key))
        if claim is None or claim.status.allocation is None:
            return f"claim {key[1]} is not allocated any more"
        if found := failure_of(claim):
            return found
        since = claim.status.allocation.allocation_timestamp
        is_late = since is not None and since.timestamp() + _LONGEST_S < self._clock.seconds()
        return f"claim {key[1]} binding timeout" if is_late and not is_ready(claim) else ""

    def _results(self, key: Key) -> Sequence[AllocatedDevice]:
        claim = self._claims.get("/".join(key))
        allocation = claim.status.allocation if claim is not None else None
        return allocation.devices.results if allocation is not None else ()


def is_ready(claim: ResourceClaim) -> bool:
    """Whether all binding conditions of its devices are true."""
    reported = _reported(claim)
    allocation = claim.status.allocation
    if allocation is None or failure_of(claim):
        return False
    return all(
        reported.get((*result.key, name), ("", "", ""))[0] == "True"
        for result in allocation.devices.results
        for name in result.binding_conditions
    )


def failure_of(claim: ResourceClaim) -> str:
    """The driver's message about a device that failed."""
    reported = _reported(claim)
    allocation = claim.status.allocation
    for result in allocation.devices.results if allocation is not None else ():
        for name in result.binding_failure_conditions if result.binding_conditions else ():
            status, reason, message = reported.get((*result.key, name), ("", "", ""))
            if status == "True":
                quoted = msgspec.json.encode(message).decode()
                return f"claim {claim.metadata.name} binding failed: reason={reason}, message={quoted}"
    return ""


def _reported(claim: ResourceClaim) -> dict[tuple[str, str, str, str], tuple[str, str, str]]:
    """Device and condition -> status, reason and message."""
    return {
        (*device.key, one.type): (one.status, one.reason, one.message)
        for device in claim.status.devices
        for one in device.conditions
    }
