"""The scores that a case's scheduler has on, as a profile of ours."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from shoal.engine.asks import Ask
from shoal.engine.cluster import Cluster
from shoal.engine.device_choice import TIGHTEST
from shoal.engine.device_demand import FULL_MILLI, DeviceGrant, GpuShare, GpuShares, MemoryShares
from shoal.engine.devices.kinds import kind_of
from shoal.engine.devices.node_devices import NodeDeviceState
from shoal.engine.facts import CPU, GPU_MILLI
from shoal.engine.profile import Profile
from shoal.engine.scores.allocation import BalancedAllocation, ResourceAllocationScore
from shoal.engine.scores.preferences import PreferredAffinity, SoftTaints
from shoal.engine.scores.rule import BEST, NodeRule, NodeScore, Points, StaticScore
from shoal.engine.scores.strategies import FINEST, PerResource, WeightedBinpack
from shoal.engine.window import Window

from .case import Case


def profile_of(case: Case, cluster: Cluster) -> Profile:
    return _kai(case) if case.is_kai else _volcano(case)


def _kai(case: Case) -> Profile:
    spread = case.config.gpu_placement == "spread"
    placement = KaiPlacement(
        gpu_spread=case.config.node_placement.get("gpu") == "spread",
        cpu_spread=case.config.node_placement.get("cpu") == "spread",
        shared_first=not spread,
    )
    static: tuple[tuple[StaticScore, int], ...] = ((PreferredAffinity(), 2 * _FAR),)
    return Profile("KAI", static, ((placement, 1),), devices=EmptiestDevice() if spread else TIGHTEST)


_FAR = 1 << 21
"""Between one rule and the next that counts only among equals. All of it must stay below 2^30."""
_FINE_CORES = 5
"""Cores are compared in steps of 32 thousandths, so that nodes of 20,000 of them stay below that, too."""


class KaiPlacement(msgspec.Struct, frozen=True):
    """Pods with devices by free devices, the others by free cores and rather where there are no devices."""

    gpu_spread: bool = False
    cpu_spread: bool = False
    shared_first: bool = True
    """A share goes where a device is shared already."""

    def compiled(self, cluster: Cluster, ask: Ask) -> NodeRule | None:
        share = ask.devices.milli if isinstance(ask.devices, GpuShare) else 0
        on_devices = ask.devices is not None or bool(ask.claims)
        column, spread = (GPU_MILLI, self.gpu_spread) if on_devices else (CPU, self.cpu_spread)

        def points(window: Window) -> Points:
            total = window.total[:, column]
            free = np.maximum(window.free[:, column], 0)
            if spread:
                result = np.where(total > 0, free * FINEST // np.maximum(total, 1), 0)
            else:
                near = np.minimum(free if on_devices else free >> _FINE_CORES, _FAR // 2 - 1)
                result = np.where(total > 0, _FAR // 2 - near, 0)
            if not on_devices:
                result = result + np.where(window.total[:, GPU_MILLI] > 0, 0, _FAR)
            elif share and self.shared_first:
                left = cluster.devices.compute[window.rows]
                result = result + _FAR * ((left >= share) & (left < FULL_MILLI)).any(axis=1)
            return np.asarray(result, np.int64)

        return points


class EmptiestDevice:
    """A share goes where most is left."""

    def grant(self, cluster: Cluster, ask: Ask, row: int, draw: int) -> DeviceGrant | None:
        if not isinstance(ask.devices, GpuShare | GpuShares | MemoryShares):
            return TIGHTEST.grant(cluster, ask, row, draw)
        bench, kind = NodeDeviceState(cluster.devices, row), kind_of(ask.devices)
        if kind.tightest(bench, ask.devices) is None:
            return None
        forced: DeviceGrant = kind.forced(bench, ask.devices)
        return forced


_FINER = FINEST // BEST
"""The strategies count in hundredths of the others' points."""


def _volcano(case: Case) -> Profile:
    static: list[tuple[StaticScore, int]] = []
    scores: list[tuple[NodeScore, int]] = []
    for name, plugin in case.config.plugins.items():
        arguments: dict[str, Any] = (plugin or {}).get("arguments") or {}
        if name == "nodeorder":
            weights = _node_order(arguments)
            static += [(PreferredAffinity(), weights["nodeaffinity"]), (SoftTaints(), weights["tainttoleration"])]
            scores += [
                (ResourceAllocationScore("LeastAllocated"), weights["leastrequested"]),
                (ResourceAllocationScore("MostAllocated"), weights["mostrequested"]),
                (BalancedAllocation(), weights["balancedresource"]),
            ]
        elif name == "binpack":
            scores.append((binpack(arguments), int(arguments.get("binpack.weight", arguments.get("weight", 1)))))
        elif name == "resource-strategy-fit":
            scores.append(
                (per_resource(arguments.get("resources") or {}), int(arguments.get("resourceStrategyFitWeight", 1)))
            )
    return Profile(
        "Volcano",
        tuple((score, weight * _FINER) for score, weight in static if weight),
        tuple((score, weight * _scale(score)) for score, weight in scores if weight),
        devices=TIGHTEST,
    )


def _node_order(arguments: dict[str, Any]) -> dict[str, int]:
    weights = {"nodeaffinity": 2, "tainttoleration": 3, "leastrequested": 1, "balancedresource": 1, "mostrequested": 0}
    said = {key.lower().removesuffix("weight").removesuffix("."): int(value) for key, value in arguments.items()}
    return weights | said


def _scale(score: NodeScore) -> int:
    return _FINER if isinstance(score, ResourceAllocationScore | BalancedAllocation) else 1


def binpack(weights: dict[str, Any]) -> WeightedBinpack:
    """Cores and memory count once unless something is said about them."""
    plain = {key.removeprefix("binpack.").removeprefix("resources."): value for key, value in weights.items()}
    weighed = {"cpu": 1, "memory": 1} | {
        key: value for key, value in plain.items() if key not in ("weight", "resources")
    }
    return WeightedBinpack(tuple((key, int(value)) for key, value in weighed.items()))


def per_resource(resources: dict[str, Any]) -> PerResource:
    return PerResource(
        tuple((name, r.get("type", "LeastAllocated"), int(r.get("weight", 1))) for name, r in resources.items())
    )
