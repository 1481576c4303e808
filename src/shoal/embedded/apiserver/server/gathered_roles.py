"""ClusterRoles that gather the rules of others are written back when those change, as Kubernetes' controller does.

Decisions do not wait for it: RBAC gathers by itself. This is for users who read the roles. What a role gathers is
worked out while it is held, so that an owner who ends the gathering is not overruled by what was gathered before.
"""

from __future__ import annotations

from collections.abc import Sequence

from shoal.embedded.apiserver.background_retries import BackgroundRetries
from shoal.embedded.apiserver.resource import Home, Ref
from shoal.embedded.apiserver.rest.context import ServerContext
from shoal.embedded.apiserver.security.aggregation import gathered_rules, outdated
from shoal.embedded.apiserver.state.event import Event
from shoal.embedded.apiserver.state.record import Write

_ROLES = Home("rbac.authorization.k8s.io", "clusterroles")


class GatheredRoles:
    """Follows the roles until `close`."""

    def __init__(self, context: ServerContext) -> None:
        self._context = context
        self._errands = BackgroundRetries()
        context.state.on_commit(self._committed)
        self._start()

    async def close(self) -> None:
        await self._errands.close()

    def _committed(self, events: Sequence[Event]) -> None:
        if any(event.record.ref.home == _ROLES for event in events):
            self._start()

    def _start(self) -> None:
        self._errands.start("the gathering of cluster roles", self._gather)

    async def _gather(self) -> None:
        """Until nothing is outdated: a role may gather what another one gathered."""
        reader = self._context.state.reader
        while found := [str(role["metadata"]["name"]) for role in outdated(reader.all(*_ROLES))]:
            for name in found:
                await self._write(Ref(_ROLES, "", name))

    async def _write(self, ref: Ref) -> None:
        state = self._context.state
        async with state.lock(ref):
            record = state.get(ref)
            role = record.obj() if record is not None else {}
            if record is None or not role.get("aggregationRule"):
                return
            rules = gathered_rules(role, state.reader.all(*_ROLES))
            if rules != (role.get("rules") or []):
                kept = role | {"rules": rules}
                await state.commit([Write(ref, kept, record, record.uid, record.labels, record.fields)])
