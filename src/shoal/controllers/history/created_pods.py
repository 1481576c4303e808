"""Tells which admission rules a pod broke when it was created, for `shoal policy preview --window`.

Only the nodes and the labels of the namespace are looked up, which the recorder watches anyway.
"""

from __future__ import annotations

from collections.abc import Iterable

from shoal.api.partial import PartialNode
from shoal.client.context import Context
from shoal.client.item import Item, Obj, Seen
from shoal.client.kind import NAMESPACES, NODES
from shoal.cost.records import Holder
from shoal.policy import kinds
from shoal.policy.admission_rules.modes import SYSTEM_NAMESPACES
from shoal.policy.admission_rules.past import CreatedPods, broken_rules
from shoal.policy.advice import AdvisedNode
from shoal.policy.kinds import GroupKind
from shoal.policy.object_set import ObjectSet


class RecordedObjects(ObjectSet):
    """The lookups of rules: other objects than nodes and namespaces are not known, and so never missing."""

    def __init__(self, context: Context) -> None:
        super().__init__(())
        self._context = context
        self._node = Seen(PartialNode)

    def nodes(self) -> Iterable[AdvisedNode]:
        for item in self._context.informers.of(NODES):
            node = self._node(item)
            yield AdvisedNode(node.metadata.labels, node.spec.taints)

    def find(self, kind: GroupKind, namespace: str, name: str) -> Obj | None:
        if kind != kinds.NAMESPACE:
            return super().find(kind, namespace, name)
        item = self._context.informers.of(NAMESPACES).get("", name)
        return None if item is None else item.obj()


def created_pod(item: Item, holder: Holder, created_ms: int, objects: RecordedObjects) -> CreatedPods | None:
    """None in a namespace without rules."""
    if item.namespace in SYSTEM_NAMESPACES:
        return None
    broken = broken_rules({"apiVersion": "v1", "kind": "Pod", **item.obj()}, objects)
    kind, name = (holder.owner_kind, holder.job) if holder.job else ("Pod", item.name)
    return CreatedPods(item.namespace, kind, name, created_ms, created_ms + 1, 1, broken)
