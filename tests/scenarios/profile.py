"""The scores that a case's scheduler has on, as a profile of ours."""

from __future__ import annotations

from typing import Any

from shoal.engine.cluster import Cluster
from shoal.engine.device_choice import TIGHTEST
from shoal.engine.profile import Profile
from shoal.engine.queues.disciplines.kai.node_preferences import kai_profile
from shoal.engine.scores.allocation import BalancedAllocation, ResourceAllocationScore
from shoal.engine.scores.preferences import PreferredAffinity, SoftTaints
from shoal.engine.scores.rule import BEST, NodeScore, StaticScore
from shoal.engine.scores.strategies import FINEST, PerResource, WeightedBinpack

from .case import Case


def profile_of(case: Case, cluster: Cluster) -> Profile:
    return _kai(case) if case.is_kai else _volcano(case)


def _kai(case: Case) -> Profile:
    placement = case.config.node_placement
    return kai_profile(
        gpu_spread=placement.get("gpu") == "spread",
        cpu_spread=placement.get("cpu") == "spread",
        shares_spread=case.config.gpu_placement == "spread",
    )


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
