"""Chooses GPUs that are connected well, as NVIDIA's device plugin does for whole GPUs.

The available GPUs are divided into groups of the requested size so that the sum of the scores of all groups is
greatest; the best of these groups is the choice. So what is left for later requests is connected well too. If the
number does not divide, one group is smaller.

Every division is considered, but each remainder only once, and GPUs that are connected with all others alike are not
told apart: this is exact, and quick even with 16 GPUs behind switches. Of equally good divisions the first in the order
of the GPUs is used.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import combinations

from shoal.devices.port import InstalledGpu, PcieRelation

Scores = Mapping[tuple[str, str], int]
"""By the UUIDs of two GPUs, in both orders; a missing pair has no connection."""

_NVLINK = 100
_PCIE: Mapping[PcieRelation, int] = {
    "cross-cpu": 10,
    "same-cpu": 20,
    "host-bridge": 30,
    "multi-switch": 40,
    "single-switch": 50,
    "same-board": 60,
}
_Group = tuple[int, ...]
_Division = tuple[int, tuple[_Group, ...]]
"""The sum of its scores, and its groups."""


def pair_scores(gpus: Sequence[InstalledGpu]) -> Scores:
    """100 for each NVLink between two GPUs, and 10 to 60 for their PCIe relation."""
    found: dict[tuple[str, str], int] = {}
    for gpu in gpus:
        for peer in gpu.peers:
            found[gpu.uuid, peer.uuid] = found.get((gpu.uuid, peer.uuid), 0) + _NVLINK * peer.links
        for other in gpu.pcie_peers:
            found[gpu.uuid, other.uuid] = found.get((gpu.uuid, other.uuid), 0) + _PCIE[other.relation]
    return found


def best_group(available: Sequence[str], required: Sequence[str], size: int, scores: Scores) -> list[str]:
    """`size` of the available GPUs, the required ones included; empty if there is no such group."""
    if not 0 < size <= len(available) or len(required) > size or not {*required} <= {*available}:
        return []
    if size == 1:
        return [*required] or [available[0]]
    table = [[scores.get((one, other), 0) for other in available] for one in available]
    needed = frozenset(available.index(one) for one in required)
    _, groups = _Divisions(table, needed, size).best()
    complete = [group for group in groups if len(group) == size and needed <= {*group}]
    return [available[index] for index in max(complete, key=lambda group: _score(table, group))]


class _Divisions:
    """The divisions of all GPUs, by index, into groups."""

    def __init__(self, table: Sequence[Sequence[int]], needed: frozenset[int], size: int) -> None:
        self._table, self._needed, self._size = table, needed, size
        self._short = len(table) % size
        """The size of the smaller group; zero: there is none."""
        self._class_of = _classes(table, needed)
        self._after = cache(self._uncached_after)

    def best(self) -> _Division:
        found = self._after(tuple(range(len(self._table))))
        assert found is not None  # noqa: S101 - a group with all needed GPUs exists, and others fill the rest
        return found

    def _uncached_after(self, left: _Group) -> _Division | None:
        """The best division of what is left; None if the needed GPUs cannot be in one complete group."""
        if not left:
            return 0, ()
        best: _Division | None = None
        for group in self._groups(left):
            taken = {*group}
            rest = self._after(tuple(index for index in left if index not in taken))
            if rest is None:
                continue
            total = _score(self._table, group) + rest[0]
            if best is None or total > best[0]:
                best = total, (group, *rest[1])
        return best

    def _groups(self, left: _Group) -> Iterator[_Group]:
        """The possible groups of the first GPU that is left, in the order of the GPUs; absent ones come last."""
        first, others = left[0], left[1:]
        sizes = [self._size] if len(left) >= self._size else []
        if self._short and len(left) % self._size:
            sizes.append(self._short)
        found = [(first, *more) for size in sizes for more in combinations(others, size - 1)]
        absent = len(self._table)
        for group in sorted(found, key=lambda group: (*group, *[absent] * (self._size - len(group)))):
            if self._is_canonical(group, left) and self._keeps_needed(group):
                yield group

    def _keeps_needed(self, group: _Group) -> bool:
        inside = self._needed & {*group}
        return not inside or (inside == self._needed and len(group) == self._size)

    def _is_canonical(self, group: _Group, left: _Group) -> bool:
        """Whether of GPUs that are connected alike the first ones are used."""
        used = {*group}
        passed: set[int] = set()
        for index in left:
            kind = self._class_of[index]
            if index not in used:
                passed.add(kind)
            elif kind in passed:
                return False
        return True


def _classes(table: Sequence[Sequence[int]], needed: frozenset[int]) -> list[int]:
    """For each GPU the first one that could be exchanged with it."""
    found: list[int] = []
    for index, row in enumerate(table):
        same = (
            other
            for other in range(index)
            if index not in needed
            and other not in needed
            and all(row[k] == table[other][k] for k in range(len(table)) if k not in (index, other))
        )
        found.append(next(same, index))
    return found


def _score(table: Sequence[Sequence[int]], group: _Group) -> int:
    return sum(table[one][other] for one, other in combinations(group, 2))
