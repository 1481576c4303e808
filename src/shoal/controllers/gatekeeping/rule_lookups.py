"""The objects that admission rules look up, from caches of the process that answers the webhook.

Of ConfigMaps only the names are kept: a cluster may have many large ones. Secrets are not read, so no rule reports one
as missing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Final

from shoal.api.cost_budgets import NO_BUDGETS, CostBudgets
from shoal.api.partial import LabeledMeta, MetadataOf, PartialNode
from shoal.client.context import Context
from shoal.client.ecosystem_kinds import LOCAL_QUEUES, WORKLOAD_PRIORITY_CLASSES
from shoal.client.informer import Informer
from shoal.client.item import Obj, Seen
from shoal.client.kind import (
    CONFIG_MAPS,
    NAMESPACES,
    NODES,
    PRIORITY_CLASSES,
    RESOURCE_QUOTAS,
    SERVICE_ACCOUNTS,
    SERVICES,
    VOLUME_CLAIMS,
    Kind,
)
from shoal.client.partial_informer import PartialInformer
from shoal.client.served import Served
from shoal.policy import kinds
from shoal.policy.advice import AdvisedNode
from shoal.policy.kinds import GroupKind
from shoal.store.watched.cost_budgets import WatchedCostBudgets

_KEPT: Final[Mapping[GroupKind, Kind]] = {
    kinds.NAMESPACE: NAMESPACES,
    kinds.PRIORITY_CLASS: PRIORITY_CLASSES,
    kinds.RESOURCE_QUOTA: RESOURCE_QUOTAS,
    kinds.SERVICE: SERVICES,
    kinds.SERVICE_ACCOUNT: SERVICE_ACCOUNTS,
    kinds.VOLUME_CLAIM: VOLUME_CLAIMS,
}
_SERVED_PERHAPS: Final[Mapping[GroupKind, Kind]] = {
    kinds.LOCAL_QUEUE: LOCAL_QUEUES,
    kinds.WORKLOAD_PRIORITY_CLASS: WORKLOAD_PRIORITY_CLASSES,
}


class RuleLookups:
    """Implements the lookups of rules."""

    def __init__(self, context: Context, served: Served, budgets: str = "") -> None:
        """`budgets`: the namespace of the report of what budgets have spent; without it no budget is known."""
        self._budgets = WatchedCostBudgets(context, budgets) if budgets else None
        self._context = context
        self._served = served
        self._node = Seen(PartialNode)
        self._labels = Seen(MetadataOf[LabeledMeta])
        for kind in (NODES, *_KEPT.values()):
            context.informers.of(kind)
        self._config_maps = PartialInformer(
            context.api, CONFIG_MAPS, context.clock, context.draw, (), context.informers.outage
        )
        for kind in _SERVED_PERHAPS.values():
            served.when_there(kind, self._add, kind._replace(version="v1beta1"))

    async def run(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._config_maps.run())
            if self._budgets is not None:
                group.create_task(self._budgets.run())

    def nodes(self) -> Iterable[AdvisedNode]:
        for item in self._context.informers.of(NODES):
            node = self._node(item)
            yield AdvisedNode(node.metadata.labels, node.spec.taints)

    def find(self, kind: GroupKind, namespace: str, name: str) -> Obj | None:
        informer = self._informer(kind)
        item = None if informer is None else informer.get(namespace, name)
        return None if item is None else item.obj()

    def all(self, kind: GroupKind, namespace: str = "") -> Iterable[Obj]:
        return (item.obj() for item in self._informer(kind) or () if namespace in ("", item.namespace))

    def lacks(self, kind: GroupKind, namespace: str, name: str) -> bool:
        informer = self._informer(kind)
        return informer is not None and informer.is_synced and informer.get(namespace, name) is None

    def cost_budgets(self) -> CostBudgets:
        """None once the report is out of date."""
        found = NO_BUDGETS if self._budgets is None else self._budgets.now
        return found if self._context.clock.seconds() < found.until_s else NO_BUDGETS

    def namespaces(self) -> dict[str, Mapping[str, str]]:
        """All namespaces with their labels."""
        return {item.name: self._labels(item).metadata.labels for item in self._context.informers.of(NAMESPACES)}

    def _add(self, kind: Kind) -> None:
        self._context.informers.of(kind)

    def _informer(self, named: GroupKind) -> Informer | None:
        if named == kinds.CONFIG_MAP:
            return self._config_maps
        optional = _SERVED_PERHAPS.get(named)
        kind = _KEPT.get(named) if optional is None else self._served.find(optional)
        return None if kind is None else self._context.informers.known(kind)
