"""What is around an object in a living cluster: the caches that the advisor, or anybody beside it, follows."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from shoal.api.taints import Taint
from shoal.controllers.advising.around import NodeSight
from shoal.store.live.context import Context
from shoal.store.live.informer import Informer
from shoal.store.live.item import Obj, Seen
from shoal.store.live.kind import NODES, Kind
from shoal.store.live.served import Served


class _Meta(msgspec.Struct, frozen=True):
    labels: dict[str, str] = {}


class _Spec(msgspec.Struct, frozen=True):
    taints: tuple[Taint, ...] = ()


class _Node(msgspec.Struct, frozen=True):
    metadata: _Meta
    spec: _Spec = _Spec()


class Surroundings:
    def __init__(self, context: Context, served: Served) -> None:
        self._context = context
        self._served = served
        self._node = Seen(_Node)
        self.own: dict[Kind, Informer] = {}
        """Kinds that are followed in part, and by nobody else."""

    def nodes(self) -> Iterable[NodeSight]:
        for item in self._context.informers.of(NODES):
            node = self._node(item)
            yield NodeSight(node.metadata.labels, node.spec.taints)

    def find(self, kind: Kind, namespace: str, name: str) -> Obj | None:
        followed = self._followed(kind)
        item = None if followed is None else followed.get(namespace, name)
        return None if item is None else item.obj()

    def all(self, kind: Kind, namespace: str = "") -> Iterable[Obj]:
        followed = self._followed(kind)
        return (item.obj() for item in followed or () if namespace in ("", item.namespace))

    def lacks(self, kind: Kind, namespace: str, name: str) -> bool:
        followed = self._followed(kind)
        if followed is None:
            # Of a kind that the server does not know there is none.
            return kind in self._served.missing()
        return followed.is_synced and followed.get(namespace, name) is None

    def _followed(self, kind: Kind) -> Informer | None:
        """As somebody follows it, in the version that is served."""
        if kind in self.own:
            return self.own[kind]
        return self._context.informers.known(self._served.find(kind) or kind)
