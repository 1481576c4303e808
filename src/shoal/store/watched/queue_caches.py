"""Provides the caches of queue objects, for the kinds that the server serves, and collects their changes.

Each kind is named by its newest version here, whichever version is served.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from shoal.client.context import Context
from shoal.client.ecosystem_kinds import (
    ADMISSION_CHECKS,
    CLUSTER_QUEUES,
    COHORTS,
    KUEUE_TOPOLOGIES,
    LOCAL_QUEUES,
    RESOURCE_FLAVORS,
    WORKLOADS,
)
from shoal.client.item import Item
from shoal.client.kind import NAMESPACES, NODES, Kind
from shoal.client.served import Served

REPORTED: tuple[Kind, ...] = (
    KUEUE_TOPOLOGIES,
    RESOURCE_FLAVORS,
    ADMISSION_CHECKS,
    COHORTS,
    CLUSTER_QUEUES,
    LOCAL_QUEUES,
    NODES,
    NAMESPACES,
)
"""Kinds in the order in which their changes are reported."""
_OWN = frozenset({NODES, NAMESPACES})
"""Kinds that every server serves."""


def name_of(item: Item) -> str:
    return f"{item.namespace}/{item.name}" if item.namespace else item.name


class QueueCaches:
    """`wake` is called after a change."""

    def __init__(self, context: Context, served: Served, wake: Callable[[], None]) -> None:
        self._informers = context.informers
        self._wake = wake
        self._kinds: dict[Kind, Kind] = {}
        """The newest version of a kind -> the served version."""
        self._changed: dict[Kind, dict[str, Item | None]] = {kind: {} for kind in (*REPORTED, WORKLOADS)}
        for kind in self._changed:
            if kind in _OWN:
                self._follow(kind, kind)
            else:
                served.when_there(kind, partial(self._follow, kind), kind._replace(version="v1beta1"))

    def kind(self, kind: Kind) -> Kind | None:
        """The served version; None while the kind is not served."""
        return self._kinds.get(kind)

    def item(self, kind: Kind, namespace: str, name: str) -> Item | None:
        served = self._kinds.get(kind)
        return None if served is None else self._informers.of(served).get(namespace, name)

    def items(self, kind: Kind) -> list[Item]:
        served = self._kinds.get(kind)
        return [] if served is None else list(self._informers.of(served))

    async def synced(self) -> None:
        await self._informers.synced(set(self._kinds.values()))

    def again(self, kind: Kind) -> None:
        """Report all objects of the kind as changed."""
        for item in self.items(kind):
            self._changed[kind].setdefault(name_of(item), item)

    def once_again(self, kind: Kind, name: str) -> None:
        """Report this object as changed."""
        namespace, _, short = name.rpartition("/")
        self._changed[kind][name] = self.item(kind, namespace, short)

    def take(self, kind: Kind) -> dict[str, Item | None]:
        """The changes since the last call; None for deleted objects."""
        changed, self._changed[kind] = self._changed[kind], {}
        return changed

    # internals

    def _follow(self, kind: Kind, served: Kind) -> None:
        self._kinds[kind] = served
        changes = self._changed

        def changed(before: Item | None, after: Item | None) -> None:
            item = after or before
            if item is None:
                return
            changes[kind][name_of(item)] = after
            self._wake()

        self._informers.of(served).on_change(changed)
