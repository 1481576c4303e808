"""Stores nodes as columns, and what the pods on them use: a pass over all nodes is a few array operations.

Guarantees: each column is correct for each row at any time; adding and removing a pod are exact inverses. A removed
node frees its row. Pods may be known before their node, and are charged to it when it appears.

Rejected: keys per node that are updated from a change log, as in the engine. A pass over a thousand nodes costs a tenth
of the binding that follows.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np
from numpy.typing import NDArray

from shoal.api.container import ANY_ADDRESS
from shoal.api.node import Node
from shoal.api.resources import amounts
from shoal.api.taints import Taint
from shoal.embedded.scheduler.pod_info import PodInfo, PodRequest, Port

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
_FIRST_ROWS = 64


class NodeInfo(msgspec.Struct, frozen=True):
    """The properties of a node, apart from its resources."""

    name: str
    labels: dict[str, str]
    taints: tuple[Taint, ...]
    is_cordoned: bool


class NodeColumns:
    def __init__(self) -> None:
        self.row_of: dict[str, int] = {}
        self.places: list[NodeInfo | None] = []
        self.is_there: Flags = np.zeros(_FIRST_ROWS, np.bool_)
        self.scored: tuple[Ints, Ints] = (np.zeros(_FIRST_ROWS, np.int64), np.zeros(_FIRST_ROWS, np.int64))
        """The used cpu and memory, as scores count them."""
        self.static_epoch = 0
        """A version that grows when labels, taints or the list of nodes change."""
        self.version = 0
        """A version that grows with each change."""
        self.ports: dict[int, dict[Port, int]] = {}
        self._has: dict[str, Ints] = {}
        self._taken: dict[str, Ints] = {}
        self._nothing: Ints = _nothing(_FIRST_ROWS)
        """The column of a resource that no node offers; pods may request any name."""
        self._free_rows: list[int] = []
        self._victims_on: dict[str, dict[str, PodInfo]] = {}
        self._amounts: dict[str, dict[str, int]] = {}

    def __len__(self) -> int:
        return len(self.row_of)

    @property
    def size(self) -> int:
        """The number of rows, including unused ones."""
        return len(self.is_there)

    def has(self, resource: str) -> Ints:
        return self._has.get(resource, self._nothing)

    def taken(self, resource: str) -> Ints:
        return self._taken.get(resource, self._nothing)

    def name(self, row: int) -> str:
        place = self.places[row]
        return place.name if place is not None else ""

    def labels(self, row: int) -> dict[str, str]:
        place = self.places[row]
        return place.labels if place is not None else {}

    # -- nodes ------------------------------------------------------------------------------------------------------

    def put(self, node: Node) -> bool:
        """Adds or updates a node; returns whether it changed."""
        name = node.metadata.name
        place = NodeInfo(name, node.metadata.labels, node.spec.taints, node.spec.unschedulable)
        row = self.row_of.get(name)
        is_new = row is None
        if row is None:
            row = self.row_of[name] = self._new_row()
        has = amounts(node.status.allocatable)
        if not is_new and self.places[row] == place and self._amounts.get(name) == has:
            return False
        if self.places[row] != place:
            self.places[row] = place
            self.static_epoch += 1
        self._amounts[name] = has
        for resource in {*has, *self._has}:
            self._column(self._has, resource)[row] = has.get(resource, 0)
        self.is_there[row] = True
        self.version += 1
        if is_new:
            for pod in self.pods_on(name):
                self._charge(row, pod, 1)
        return True

    def drop(self, name: str) -> None:
        row = self.row_of.pop(name, None)
        if row is None:
            return
        del self._amounts[name]
        for column in (*self._has.values(), *self._taken.values(), *self.scored):
            column[row] = 0
        self.ports.pop(row, None)
        self.places[row] = None
        self.is_there[row] = False
        self._free_rows.append(row)
        self.static_epoch += 1
        self.version += 1

    # -- pods -------------------------------------------------------------------------------------------------------

    def pods_on(self, node: str) -> list[PodInfo]:
        return list(self._victims_on.get(node, {}).values())

    def pods(self) -> Iterator[tuple[int, PodInfo]]:
        """All pods on known nodes, with their rows."""
        for node, pods in self._victims_on.items():
            row = self.row_of.get(node)
            if row is not None:
                for pod in pods.values():
                    yield row, pod

    def take(self, node: str, pod: PodInfo) -> None:
        self._victims_on.setdefault(node, {})[pod.uid] = pod
        row = self.row_of.get(node)
        if row is not None:
            self._charge(row, pod, 1)
        self.version += 1

    def give(self, node: str, uid: str) -> None:
        """Exactly reverts `take`."""
        pods = self._victims_on[node]
        pod = pods.pop(uid)
        if not pods:
            del self._victims_on[node]
        row = self.row_of.get(node)
        if row is not None:
            self._charge(row, pod, -1)
        self.version += 1

    def has_free_ports(self, row: int, request: PodRequest) -> bool:
        taken = self.ports.get(row)
        return not taken or not any(_clash(one, other) for one in request.ports for other in taken)

    def _charge(self, row: int, pod: PodInfo, sign: int) -> None:
        for resource, amount in pod.request.requests:
            if amount:
                self._column(self._taken, resource)[row] += sign * amount
        for column, amount in zip(self.scored, pod.request.scored, strict=True):
            column[row] += sign * amount
        for port in pod.request.ports:
            of_row = self.ports.setdefault(row, {})
            count = of_row.get(port, 0) + sign
            if count:
                of_row[port] = count
            else:
                del of_row[port]
            if not of_row:
                del self.ports[row]

    # -- rows -------------------------------------------------------------------------------------------------------

    def _new_row(self) -> int:
        if self._free_rows:
            return self._free_rows.pop()
        row = len(self.places)
        self.places.append(None)
        if row == self.size:
            self._grow()
        return row

    def _grow(self) -> None:
        more = self.size
        self.is_there = np.concatenate([self.is_there, np.zeros(more, np.bool_)])
        zeros = np.zeros(more, np.int64)
        self._has = {name: np.concatenate([column, zeros]) for name, column in self._has.items()}
        self._taken = {name: np.concatenate([column, zeros]) for name, column in self._taken.items()}
        self.scored = (np.concatenate([self.scored[0], zeros]), np.concatenate([self.scored[1], zeros]))
        self._nothing = _nothing(self.size)

    def _column(self, columns: dict[str, Ints], resource: str) -> Ints:
        column = columns.get(resource)
        if column is None:
            column = columns[resource] = np.zeros(self.size, np.int64)
        return column


def _nothing(size: int) -> Ints:
    """A read-only column of zeros, which is shared."""
    found: Ints = np.zeros(size, np.int64)
    found.flags.writeable = False
    return found


def _clash(one: Port, other: Port) -> bool:
    if one[1:] != other[1:]:
        return False
    return one[0] == other[0] or ANY_ADDRESS in (one[0], other[0])
