"""How full a node is: kube-scheduler's MostAllocated, LeastAllocated, RequestedToCapacityRatio and balanced allocation.

The arithmetic is kube-scheduler's: per resource a whole number 0 to 100 with the pod already counted in, then the
weighted mean, rounded down. A node that lacks a resource does not count it. CPU and memory of pods that request
nothing count with kube-scheduler's stand-ins.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from shoal.engine import facts
from shoal.engine.asks import Ask
from shoal.engine.cluster import Cluster
from shoal.engine.scores.rule import BEST, NodeRule, Points
from shoal.engine.window import Window

Strategy = Literal["MostAllocated", "LeastAllocated", "RequestedToCapacityRatio"]

GPU = "nvidia.com/gpu"

DEFAULT_RESOURCES = (("cpu", 1), ("memory", 1))

_SCORED_COLUMN = {"cpu": facts.CPU_SCORED, "memory": facts.MEMORY_SCORED, GPU: facts.GPU_MILLI}


class ShapePoint(msgspec.Struct, frozen=True):
    """A corner of a RequestedToCapacityRatio curve: utilization in percent, points 0 to 100."""

    utilization: int
    points: int


class Allocation(msgspec.Struct, frozen=True):
    """NodeResourcesFit's scoring strategies."""

    strategy: Strategy = "LeastAllocated"
    resources: tuple[tuple[str, int], ...] = DEFAULT_RESOURCES
    shape: tuple[ShapePoint, ...] = ()

    def compiled(self, cluster: Cluster, ask: Ask) -> NodeRule | None:
        columns, asked, weights = _columns(cluster, ask, self.resources)
        per_resource = self._per_resource()

        def points(window: Window) -> Points:
            total = window.total[:, columns]
            used = total - window.free[:, columns] + asked
            present = total > 0
            each = np.where(present, per_resource(used, np.maximum(total, 1)), 0)
            weight = np.where(present, weights, 0)
            weight_sum = np.maximum(weight.sum(axis=1), 1)
            result: Points = (each * weight).sum(axis=1) // weight_sum
            return result

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
        columns, asked, _ = _columns(cluster, ask, self.resources)

        def points(window: Window) -> Points:
            total = window.total[:, columns]
            used = total - window.free[:, columns] + asked
            present = total > 0
            fraction = np.minimum(np.where(present, used / np.maximum(total, 1), 0.0), 1.0)
            count = np.maximum(present.sum(axis=1), 1)
            mean = fraction.sum(axis=1) / count
            spread = np.where(present, fraction - mean[:, None], 0.0)
            deviation = np.sqrt((spread * spread).sum(axis=1) / count)
            result: Points = ((1.0 - deviation) * BEST).astype(np.int64)
            return result

        return points


def _columns(
    cluster: Cluster, ask: Ask, resources: tuple[tuple[str, int], ...]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    names = [name for name, _ in resources]
    columns = [_SCORED_COLUMN.get(name) or cluster.resources.column(name) for name in names]
    charge = cluster.charge(ask)
    return (
        np.array(columns, np.int64),
        charge.taken[columns],
        np.array([weight for _, weight in resources], np.int64),
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
