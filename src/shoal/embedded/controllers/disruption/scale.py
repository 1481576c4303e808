"""Sums the expected replicas of the controllers of some pods."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import field

from shoal.api.meta import ObjectMeta, OwnerReference
from shoal.api.wire import ApiStruct
from shoal.client.context import Context
from shoal.client.item import Key
from shoal.client.kind import DEPLOYMENTS, REPLICA_SETS, REPLICATION_CONTROLLERS, STATEFUL_SETS, Kind
from shoal.client.refusals import ForbiddenError, NotFoundError
from shoal.embedded.controllers.disruption.budgets import BudgetedPod

KINDS = (DEPLOYMENTS, REPLICA_SETS, STATEFUL_SETS, REPLICATION_CONTROLLERS)


class UnknownScaleError(Exception):
    """The number of wanted pods is unknown; the message names the pod or controller."""


class _ScaledSpec(ApiStruct, frozen=True):
    replicas: int | None = None


class _Scaled(ApiStruct, frozen=True):
    metadata: ObjectMeta
    spec: _ScaledSpec = field(default_factory=_ScaledSpec)


class Scales:
    def __init__(self, context: Context) -> None:
        self._context = context
        self._kinds: dict[tuple[str, str], Kind] = {}

    async def of(self, pods: Sequence[BudgetedPod]) -> tuple[int, list[str]]:
        """The number of wanted pods, and the pods without a controller. Raises UnknownScaleError."""
        wanted: dict[str, int] = {}
        unmanaged: list[str] = []
        seen: set[str] = set()
        for pod in pods:
            owner = pod.metadata.controller()
            if owner is None:
                unmanaged.append(pod.metadata.name)
            elif owner.uid not in seen:
                seen.add(owner.uid)
                uid, replicas = await self._of_owner(owner, pod)
                wanted[uid] = replicas
        return sum(wanted.values()), unmanaged

    async def _of_owner(self, owner: OwnerReference, pod: BudgetedPod) -> tuple[str, int]:
        namespace = pod.metadata.namespace
        for kind in KINDS:
            if (owner.kind, owner.api_version.partition("/")[0]) != (kind.name, kind.group or "v1"):
                continue
            found = self._cached(kind, (namespace, owner.name), owner.uid)
            if found is None:
                raise UnknownScaleError(f'found no controllers for pod "{pod.metadata.name}"')
            above = found.metadata.controller() if kind is REPLICA_SETS else None
            if above is not None and above.kind == "Deployment":
                found = self._cached(DEPLOYMENTS, (namespace, above.name), above.uid) or found
            return found.metadata.uid, 1 if found.spec.replicas is None else found.spec.replicas
        return await self._of_other(owner, namespace)

    def _cached(self, kind: Kind, key: Key, uid: str) -> _Scaled | None:
        item = self._context.informers.of(kind).get(*key)
        return item.read(_Scaled) if item is not None and item.uid == uid else None

    async def _of_other(self, owner: OwnerReference, namespace: str) -> tuple[str, int]:
        """The uid and replicas of a custom kind."""
        group = owner.api_version.rpartition("/")[0]
        if (group, owner.kind) not in self._kinds:
            self._kinds |= {(one.kind.group, one.kind.name): one.kind for one in await self._context.api.served()}
        kind = self._kinds.get((group, owner.kind))
        if kind is None:
            raise UnknownScaleError(f'no matches for kind "{owner.kind}" in group "{group}"')
        words = f"{kind.plural}.{group}" if group else kind.plural
        try:
            item = await self._context.api.get(kind, namespace, owner.name)
        except (NotFoundError, ForbiddenError) as error:
            raise UnknownScaleError(str(error)) from error
        found = item.read(_Scaled)
        if found.spec.replicas is None:
            raise UnknownScaleError(f"{words} does not implement the scale subresource")
        return item.uid, found.spec.replicas
