"""Implements the lookups of rules from the caches of a live cluster."""

from __future__ import annotations

from collections.abc import Iterable

from shoal.api.cost_budgets import NO_BUDGETS, CostBudgets
from shoal.api.partial import PartialNode
from shoal.client.context import Context
from shoal.client.informer import Informer
from shoal.client.item import Obj, Seen
from shoal.client.kind import NODES, Kind
from shoal.client.served import Served
from shoal.controllers.advising.advised_kinds import RESOURCES
from shoal.policy.advice import AdvisedNode
from shoal.policy.kinds import GroupKind


class ClusterContext:
    def __init__(self, context: Context, served: Served) -> None:
        self._context = context
        self._served = served
        self._node = Seen(PartialNode)
        self.own: dict[Kind, Informer] = {}
        """The caches of kinds that only the advisor watches, in part."""

    def nodes(self) -> Iterable[AdvisedNode]:
        for item in self._context.informers.of(NODES):
            node = self._node(item)
            yield AdvisedNode(node.metadata.labels, node.spec.taints)

    def find(self, kind: GroupKind, namespace: str, name: str) -> Obj | None:
        followed = self._followed(kind)
        item = None if followed is None else followed.get(namespace, name)
        return None if item is None else item.obj()

    def all(self, kind: GroupKind, namespace: str = "") -> Iterable[Obj]:
        followed = self._followed(kind)
        return (item.obj() for item in followed or () if namespace in ("", item.namespace))

    def lacks(self, kind: GroupKind, namespace: str, name: str) -> bool:
        followed = self._followed(kind)
        if followed is None:
            # If the server does not know the kind, there is no such object.
            return RESOURCES[kind].kind in self._served.missing()
        return followed.is_synced and followed.get(namespace, name) is None

    def cost_budgets(self) -> CostBudgets:
        """Budgets are checked when an object is created only; what waits for one has the reason in its conditions."""
        return NO_BUDGETS

    def _followed(self, named: GroupKind) -> Informer | None:
        """The cache of the kind in the version that is served, if there is one."""
        kind = RESOURCES[named].kind
        if kind in self.own:
            return self.own[kind]
        return self._context.informers.known(self._served.find(kind) or kind)
