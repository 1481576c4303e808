"""Reports since when pods wait: from when they were first seen without scheduling gates, as kube-scheduler counts it.
Most events are about known pods and cost almost nothing here."""

from __future__ import annotations

from collections.abc import Collection

from shoal.client.clock import Clock
from shoal.client.informer import Informer
from shoal.client.item import Item
from shoal.telemetry.observers import SchedulingObserver

_BOUND, _GATED = b'"nodeName":', b'"schedulingGates":[{'


class PodWaits:
    """`schedulers`: whose pods are measured."""

    def __init__(self, observer: SchedulingObserver, clock: Clock, schedulers: Collection[str]) -> None:
        self._observer = observer
        self._clock = clock
        self._marks = tuple(f'"schedulerName":"{name}"'.encode() for name in schedulers)
        self._gated: set[str] = set()

    def follow(self, pods: Informer) -> None:
        pods.on_change(self._changed)

    @property
    def gated(self) -> int:
        return len(self._gated)

    def _changed(self, before: Item | None, after: Item | None) -> None:
        if after is None:
            if before is not None:
                self._gone(_key(before))
        elif before is None or before.uid != after.uid:
            self._come(_key(after), after, is_new=before is None)
        elif self._gated and (key := _key(after)) in self._gated and _GATED not in after.data:
            self._gated.discard(key)
            self._observer.waits(key, self._clock.seconds())

    def _come(self, key: str, item: Item, *, is_new: bool) -> None:
        if not is_new:
            self._gone(key)
        data = item.data
        if _BOUND in data or not any(mark in data for mark in self._marks):
            return
        if _GATED in data:
            self._gated.add(key)
        else:
            self._observer.waits(key, self._clock.seconds())

    def _gone(self, key: str) -> None:
        self._gated.discard(key)
        self._observer.gone(key)


def _key(item: Item) -> str:
    return f"{item.namespace}/{item.name}"
