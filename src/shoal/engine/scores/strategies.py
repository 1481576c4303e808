"""Scores nodes by strategies of other schedulers, with the same arithmetic on a finer scale: KAI's node packing and
spreading, Volcano's weighted bin-packing and per-resource strategies.

Points go from 0 to 10,000, because these formulas tell nodes apart by fractions of a percent. KAI rescales its packing
score between the emptiest and the fullest node, which no cached key can; the order of the nodes that have the resource
is the same without, so packing counts what is free instead, up to a number that no node reaches.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from shoal.engine import facts
from shoal.engine.asks import Ask
from shoal.engine.cluster import Cluster
from shoal.engine.scores.rule import NodeRule, Points, RecordRule
from shoal.engine.window import Window

FINEST = 10_000
MOST_FREE = 1 << 28
"""Points of a node that has nothing free."""

_COLUMNS = {
    "cpu": facts.CPU,
    "memory": facts.MEMORY,
    "nvidia.com/gpu": facts.GPU_MILLI,
}


def column_of(cluster: Cluster, resource: str) -> int:
    """The record's column that counts the resource; GPUs count in thousandths."""
    column = _COLUMNS.get(resource)
    return cluster.column(resource) if column is None else column


def asked_column(cluster: Cluster, resource: str) -> int:
    """The same, or -1 for a resource that no pod asks for: a score may name any, and it does not count."""
    column = _COLUMNS.get(resource, cluster.resources.find(resource))
    return -1 if column is None else column


class Packed(msgspec.Struct, frozen=True):
    """The less a node has free of one resource, the better; nodes without it come last."""

    resource: str
    unit: int = 1
    """Amount that makes one point of difference: a thousandth of a GPU or core, a MiB, ..."""

    def compiled(self, cluster: Cluster, _ask: Ask) -> NodeRule | None:
        column = column_of(cluster, self.resource)

        def points(window: Window) -> Points:
            free = np.maximum(window.free[:, column], 0) // self.unit
            return np.where(window.total[:, column] > 0, np.maximum(MOST_FREE - free, 1), 0)

        return points


class Spread(msgspec.Struct, frozen=True):
    """The larger the free part of one resource, the better; nodes without it come last."""

    resource: str

    def compiled(self, cluster: Cluster, _ask: Ask) -> NodeRule | None:
        column = column_of(cluster, self.resource)

        def points(window: Window) -> Points:
            total = window.total[:, column]
            return np.maximum(window.free[:, column], 0) * FINEST // np.maximum(total, 1)

        return points


class WeightedBinpack(msgspec.Struct, frozen=True):
    """How full the asked resources would be, weighted; 0 where one of them would not fit."""

    weights: tuple[tuple[str, int], ...]

    def compiled(self, cluster: Cluster, ask: Ask) -> NodeRule | None:
        asked, whole = self._asked(cluster, ask)
        if not whole:
            return None

        def points(window: Window) -> Points:
            result = np.zeros(len(window.rows), np.int64)
            fits = np.ones(len(window.rows), np.bool_)
            for column, weight, taken in asked:
                total = window.total[:, column]
                used = total - window.free[:, column] + taken
                fits &= (used <= total) | (total == 0)
                # In floats, once per resource: exact products of bytes and points overflow 64 bits.
                result += np.where(total > 0, used / np.maximum(total, 1) * (FINEST * weight), 0.0).astype(np.int64)
            return np.where(fits, result // whole, 0)

        return points

    def of_record(self, cluster: Cluster, ask: Ask) -> RecordRule | None:
        asked, whole = self._asked(cluster, ask)
        if not whole:
            return None

        def points(free: Sequence[int], total: Sequence[int]) -> int:
            result = 0
            for column, weight, taken in asked:
                if (there := total[column]) <= 0:
                    continue
                used = there - free[column] + taken
                if used > there:
                    return 0
                # As numpy divides: both as floats.
                result += int(float(used) / float(there) * (FINEST * weight))
            return result // whole

        return points

    def _asked(self, cluster: Cluster, ask: Ask) -> tuple[list[tuple[int, int, int]], int]:
        """Column, weight and what the pod takes of each resource that counts; the sum of the weights."""
        taken = cluster.charge(ask).taken
        columns = [(asked_column(cluster, name), weight) for name, weight in self.weights if weight > 0]
        asked = [(column, weight, int(taken[column])) for column, weight in columns if column >= 0]
        asked = [each for each in asked if each[2] > 0]
        return asked, sum(weight for _, weight, _ in asked)


class PerResource(msgspec.Struct, frozen=True):
    """Each asked resource by its own strategy, weighted; 0 where one of them would not fit."""

    strategies: tuple[tuple[str, str, int], ...]
    """(resource, MostAllocated or LeastAllocated, weight)."""

    def compiled(self, cluster: Cluster, ask: Ask) -> NodeRule | None:
        taken = cluster.charge(ask).taken
        asked = [
            (asked_column(cluster, name), kind == "MostAllocated", weight)
            for name, kind, weight in self.strategies
            if weight > 0
        ]
        asked = [each for each in asked if each[0] >= 0 and taken[each[0]] > 0]
        whole = sum(weight for _, _, weight in asked)
        if not whole:
            return None

        def points(window: Window) -> Points:
            result = np.zeros(len(window.rows), np.int64)
            fits = np.ones(len(window.rows), np.bool_)
            for column, most, weight in asked:
                total = window.total[:, column]
                used = total - window.free[:, column] + taken[column]
                fits &= (used <= total) | (total == 0)
                part = (used if most else total - used) / np.maximum(total, 1)
                result += np.where(total > 0, part * (FINEST * weight), 0.0).astype(np.int64)
            return np.where(fits, result // whole, 0)

        return points
