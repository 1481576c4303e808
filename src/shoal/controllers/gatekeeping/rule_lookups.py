"""The objects that admission rules look up, from caches of the process that answers the webhook.

Kinds of which a cluster may have many large objects, such as ConfigMaps, are not kept: no rule reports them as missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from shoal.api.partial import LabeledMeta, MetadataOf, PartialNode
from shoal.client.context import Context
from shoal.client.ecosystem_kinds import LOCAL_QUEUES
from shoal.client.informer import Informer
from shoal.client.item import Obj, Seen
from shoal.client.kind import NAMESPACES, NODES, PRIORITY_CLASSES, RESOURCE_QUOTAS, SERVICES, VOLUME_CLAIMS, Kind
from shoal.client.served import Served
from shoal.policy import kinds
from shoal.policy.advice import AdvisedNode
from shoal.policy.kinds import GroupKind

_KEPT: Final[Mapping[GroupKind, Kind]] = {
    kinds.NAMESPACE: NAMESPACES,
    kinds.PRIORITY_CLASS: PRIORITY_CLASSES,
    kinds.RESOURCE_QUOTA: RESOURCE_QUOTAS,
    kinds.SERVICE: SERVICES,
    kinds.VOLUME_CLAIM: VOLUME_CLAIMS,
}
_OLDER_QUEUES: Final = LOCAL_QUEUES._replace(version="v1beta1")


class RuleLookups:
    """Implements the lookups of rules."""

    def __init__(self, context: Context, served: Served) -> None:
        self._context = context
        self._served = served
        self._node = Seen(PartialNode)
        self._labels = Seen(MetadataOf[LabeledMeta])
        for kind in (NODES, *_KEPT.values()):
            context.informers.of(kind)
        served.when_there(LOCAL_QUEUES, self._add, _OLDER_QUEUES)

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

    def namespaces(self) -> dict[str, Mapping[str, str]]:
        """All namespaces with their labels."""
        return {item.name: self._labels(item).metadata.labels for item in self._context.informers.of(NAMESPACES)}

    def _add(self, kind: Kind) -> None:
        self._context.informers.of(kind)

    def _informer(self, named: GroupKind) -> Informer | None:
        kind = self._served.find(LOCAL_QUEUES) if named == kinds.LOCAL_QUEUE else _KEPT.get(named)
        return None if kind is None else self._context.informers.known(kind)
