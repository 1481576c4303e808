"""Scores how full a node is: kube-scheduler's MostAllocated, LeastAllocated, RequestedToCapacityRatio and
BalancedAllocation.

The arithmetic is kube-scheduler's: per resource a whole number 0 to 100 with the pod already counted in, then the
weighted mean, rounded down. A node that lacks a resource does not count it. CPU and memory of pods that request
nothing count with kube-scheduler's default values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import sqrt
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from shoal.engine import facts
from shoal.engine.asks import Ask
from shoal.engine.cluster import Cluster
from shoal.engine.scores.rule import BEST, NodeRule, Points, RecordRule
from shoal.engine.window import Window

Strategy = Literal["MostAllocated", "LeastAllocated", "RequestedToCapacityRatio"]

GPU = "nvidia.com/gpu"

DEFAULT_RESOURCES = (("cpu", 1), ("memory", 1))

_STOOD_IN = {"cpu": facts.CPU_SCORED, "memory": facts.MEMORY_SCORED, GPU: facts.GPU_MILLI}
_PLAIN = {"cpu": facts.CPU, "memory": facts.MEMORY, GPU: facts.GPU_MILLI}
_ALWAYS_SCORED = frozenset({"cpu", "memory", "ephemeral-storage"})


class ShapePoint(msgspec.Struct, frozen=True):
    """A corner of a RequestedToCapacityRatio curve: utilization in percent, points 0 to 100."""

    utilization: int
    points: int


class ResourceAllocationScore(msgspec.Struct, frozen=True):
    """NodeResourcesFit's scoring strategies."""

    strategy: Strategy = "LeastAllocated"
    resources: tuple[tuple[str, int], ...] = DEFAULT_RESOURCES
    shape: tuple[ShapePoint, ...] = ()

    def compiled(self, cluster: Cluster, ask: Ask) -> NodeRule | None:
        scored = _scored(cluster, ask, self.resources, _STOOD_IN)
        per_resource = self._per_resource()
        ratio = self.strategy == "RequestedToCapacityRatio"

        def points(window: Window) -> Points:
            total = window.total[:, scored.columns]
            used = total - window.free[:, scored.columns] + scored.asked
            each = np.where(total > 0, per_resource(used, np.maximum(total, 1)), 0)
            # The ratio strategy leaves resources without points out of the mean and rounds it; the others do not.
            counted = each > 0 if ratio else total > 0
            weight = np.where(counted, scored.weights, 0)
            weight_sum = np.maximum(weight.sum(axis=1), 1)
            half = weight_sum // 2 if ratio else 0
            result: Points = ((each * weight).sum(axis=1) + half) // weight_sum
            return result

        return points

    def of_record(self, cluster: Cluster, ask: Ask) -> RecordRule | None:
        if self.strategy == "RequestedToCapacityRatio":
            return None
        scored = _scored(cluster, ask, self.resources, _STOOD_IN).lines()
        is_most = self.strategy == "MostAllocated"

        def points(free: Sequence[int], total: Sequence[int]) -> int:
            result = weights = 0
            for column, asked, weight in scored:
                if (there := total[column]) <= 0:
                    continue
                counted = min(there - free[column] + asked, there) if is_most else max(free[column] - asked, 0)
                result += counted * BEST // there * weight
                weights += weight
            return result // max(weights, 1)

        return points

    def _per_resource(self) -> Callable[[Points, Points], Points]:
        match self.strategy:
            case "MostAllocated":
                return lambda used, total: np.minimum(used, total) * BEST // total
            case "LeastAllocated":
                return lambda used, total: np.maximum(total - used, 0) * BEST // total
            case "RequestedToCapacityRatio":
                curve = _curve(self.shape)
                return lambda used, total: curve.take(np.clip(used * 100 // total, 0, 100))


class BalancedAllocation(msgspec.Struct, frozen=True):
    """Prefers nodes whose resources end up used in equal measure: 100 minus the deviation of the used fractions."""

    resources: tuple[tuple[str, int], ...] = DEFAULT_RESOURCES

    def compiled(self, cluster: Cluster, ask: Ask) -> NodeRule | None:
        scored = _scored(cluster, ask, self.resources, _PLAIN)

        def points(window: Window) -> Points:
            total = window.total[:, scored.columns]
            used = total - window.free[:, scored.columns] + scored.asked
            present = total > 0
            fraction = np.minimum(np.where(present, used / np.maximum(total, 1), 0.0), 1.0)
            count = np.maximum(present.sum(axis=1), 1)
            mean = fraction.sum(axis=1) / count
            spread = np.where(present, fraction - mean[:, None], 0.0)
            deviation = np.sqrt((spread * spread).sum(axis=1) / count)
            result: Points = ((1.0 - deviation) * BEST).astype(np.int64)
            return result

        return points

    def of_record(self, cluster: Cluster, ask: Ask) -> RecordRule | None:
        scored = _scored(cluster, ask, self.resources, _PLAIN).lines()

        def points(free: Sequence[int], total: Sequence[int]) -> int:
            # Floats, summed in the order of numpy.
            fractions = [
                min(float(there - free[column] + asked) / float(there), 1.0)
                for column, asked, _ in scored
                if (there := total[column]) > 0
            ]
            count = max(len(fractions), 1)
            mean = sum(fractions) / count
            deviation = sqrt(sum([(each - mean) * (each - mean) for each in fractions]) / count)
            return int((1.0 - deviation) * BEST)

        return points


class _Scored(msgspec.Struct, frozen=True):
    """The resources that count for one ask: their columns, what the ask takes of them, their weights."""

    columns: NDArray[np.int64]
    asked: NDArray[np.int64]
    weights: NDArray[np.int64]

    def lines(self) -> list[tuple[int, int, int]]:
        return list(zip(self.columns.tolist(), self.asked.tolist(), self.weights.tolist(), strict=True))


def _scored(cluster: Cluster, ask: Ask, resources: tuple[tuple[str, int], ...], columns_of: dict[str, int]) -> _Scored:
    """A device or extended resource that the pod does not ask for is left out, as kube-scheduler does."""
    columns: list[int] = []
    weights: list[int] = []
    for name, weight in resources:
        column = columns_of.get(name)
        if column is None:
            column = cluster.column(name)
        if name in _ALWAYS_SCORED or cluster.charge(ask).taken[column] > 0:
            columns.append(column)
            weights.append(weight)
    return _Scored(
        np.array(columns, np.int64),
        cluster.charge(ask).taken[columns],
        np.array(weights, np.int64),
    )


def _curve(shape: tuple[ShapePoint, ...]) -> Points:
    """Points for each whole percent, by straight lines between the corners, rounded towards the lower corner."""
    curve = np.zeros(101, np.int64)
    for percent in range(101):
        curve[percent] = _on_curve(shape, percent)
    return curve


def _on_curve(shape: tuple[ShapePoint, ...], percent: int) -> int:
    before: ShapePoint | None = None
    for corner in shape:
        if percent <= corner.utilization:
            if before is None:
                return corner.points
            rise = (corner.points - before.points) * (percent - before.utilization)
            run = corner.utilization - before.utilization
            # Division towards zero, as kube-scheduler's integers divide.
            step = abs(rise) // run
            return before.points + (step if rise >= 0 else -step)
        before = corner
    return before.points if before is not None else 0
