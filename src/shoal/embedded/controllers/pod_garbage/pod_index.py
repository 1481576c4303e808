"""Indexes pods by node and by state (terminating, finished), and follows their changes."""

from __future__ import annotations

from sys import intern
from typing import TypeVar

import msgspec

from shoal.api.partial import PartialPodSpec, PodPhaseStatus
from shoal.api.pod_phases import TERMINAL_PHASES
from shoal.client.item import Item, Key

V = TypeVar("V")


class _PodTimes(msgspec.Struct, rename="camel", gc=False):
    creation_timestamp: str = ""
    deletion_timestamp: str | None = None


class _CountedPod(msgspec.Struct, gc=False):
    metadata: _PodTimes
    spec: PartialPodSpec
    status: PodPhaseStatus = msgspec.field(default_factory=PodPhaseStatus)


_decoder = msgspec.json.Decoder(_CountedPod)


class PodGcIndex:
    def __init__(self) -> None:
        self.by_node: dict[str, dict[Key, None]] = {}
        """Pods by node; unbound ones have the empty name."""
        self.ending: dict[Key, None] = {}
        self.finished: dict[Key, str] = {}
        """Finished pods, with their creation times."""
        self._node: dict[Key, str] = {}

    def changed(self, before: Item | None, after: Item | None) -> None:
        if after is None:
            if before is not None:
                self._drop(before.key)
            return
        pod, key = _decoder.decode(after.data), after.key
        name = intern(pod.spec.node_name)
        if self._node.get(key) != name:
            self._drop(key)
            self._node[key] = name
            self.by_node.setdefault(name, {})[key] = None
        _keep(self.ending, key, None, when=pod.metadata.deletion_timestamp is not None)
        _keep(self.finished, key, pod.metadata.creation_timestamp, when=pod.status.phase in TERMINAL_PHASES)

    def _drop(self, key: Key) -> None:
        name = self._node.pop(key, None)
        if name is not None:
            there = self.by_node[name]
            del there[key]
            if not there:
                del self.by_node[name]
        self.ending.pop(key, None)
        self.finished.pop(key, None)


def _keep(table: dict[Key, V], key: Key, value: V, *, when: bool) -> None:
    if when:
        table[key] = value
    else:
        table.pop(key, None)
