"""Reserves capacity for DaemonSet pods that are not created yet.

A fresh node looks empty and is not: exporters, plugins and log shippers will come, each on every node it may run on.
Filling that room with other work leaves the DaemonSet's pod pending, so it is set aside until the pod is bound. What
the system itself keeps is already taken off a node's allocatable amounts.
"""

from __future__ import annotations

from collections import Counter

import msgspec
import numpy as np
from numpy.typing import NDArray

from shoal.engine.asks import Ask
from shoal.engine.cluster import Cluster
from shoal.engine.pod_rules import NO_RULES
from shoal.engine.suitability import suits


class _Awaited(msgspec.Struct):
    """A DaemonSet's own pod in line, and the rows it may run on: nearly always one."""

    daemon_set: str
    ask: Ask
    rows: set[int]


class DaemonSets:
    """Reservations on nodes for pods of DaemonSets."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._asks: dict[str, Ask] = {}
        self._reserved: dict[str, set[int]] = {}
        self._awaited: dict[str, _Awaited] = {}
        self._awaited_at: Counter[tuple[str, int]] = Counter()
        """How many of a DaemonSet's own pods may come to a row."""

    def put(self, name: str, ask: Ask) -> None:
        """A DaemonSet appeared or changed."""
        if name in self._asks:
            self.drop(name)
        # Devices, claims and rules about other pods cannot be reserved as sums; only amounts are.
        self._asks[name] = msgspec.structs.replace(ask, devices=None, near=NO_RULES, claims=())
        self._reserved[name] = set()
        for row in self._rows_for(self._asks[name]):
            self.update_reservation(name, row)

    def drop(self, name: str) -> None:
        ask = self._asks.pop(name, None)
        if ask is None:
            return
        taken = self._cluster.charge(ask)
        for row in self._reserved.pop(name):
            self._cluster.reserve(row, taken, -1)

    def await_pod(self, key: str, name: str, ask: Ask) -> None:
        """A pod of the DaemonSet is pending: the capacity reserved on its node is released for it."""
        self.forget_pod(key)
        awaited = self._awaited[key] = _Awaited(name, ask, set())
        for row in self._rows_for(ask):
            self._expect(awaited, row, expected=True)

    def forget_pod(self, key: str) -> None:
        """The pod was deleted or bound to a node."""
        awaited = self._awaited.pop(key, None)
        if awaited is not None:
            for row in list(awaited.rows):
                self._expect(awaited, row, expected=False)

    def update_row(self, row: int) -> None:
        """Update the reservations of a node that was added or changed."""
        for awaited in self._awaited.values():
            self._expect(awaited, row, expected=self._may_run(awaited.ask, row))
        for name in self._asks:
            self.update_reservation(name, row)

    def forget_row(self, row: int) -> None:
        """The node is about to be removed."""
        for awaited in self._awaited.values():
            self._expect(awaited, row, expected=False)
        for name, reserved in self._reserved.items():
            if row in reserved:
                reserved.discard(row)
                self._cluster.reserve(row, self._cluster.charge(self._asks[name]), -1)

    def update_reservation(self, name: str, row: int) -> None:
        """Reserve capacity exactly when the DaemonSet may run on the node and does not yet."""
        ask = self._asks.get(name)
        if ask is None:
            return
        reserved = self._reserved[name]
        due = self._awaited_at[name, row] == 0 and not self._runs(name, row) and self._may_run(ask, row)
        if due == (row in reserved):
            return
        self._cluster.reserve(row, self._cluster.charge(ask), 1 if due else -1)
        if due:
            reserved.add(row)
        else:
            reserved.discard(row)

    def _expect(self, awaited: _Awaited, row: int, *, expected: bool) -> None:
        if expected == (row in awaited.rows):
            return
        place = awaited.daemon_set, row
        if expected:
            awaited.rows.add(row)
            self._awaited_at[place] += 1
        else:
            awaited.rows.discard(row)
            self._awaited_at[place] -= 1
            if not self._awaited_at[place]:
                del self._awaited_at[place]
        self.update_reservation(*place)

    def _rows_for(self, ask: Ask) -> list[int]:
        """All rows on which the ask may run, whatever room there is."""
        return self._passing(ask, self._cluster.all_rows())

    def _may_run(self, ask: Ask, row: int) -> bool:
        return bool(self._passing(ask, np.array([row])))

    def _passing(self, ask: Ask, rows: NDArray[np.int64]) -> list[int]:
        chosen: list[int] = rows[suits(self._cluster, ask, rows)].tolist()
        return chosen

    def _runs(self, name: str, row: int) -> bool:
        pods = self._cluster.pods
        return any(pods[key].daemon_set == name for key in self._cluster.pods_on(row))
