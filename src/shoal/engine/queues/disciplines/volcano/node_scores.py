"""Makes the profile of scores that a configuration of Volcano has on: nodeorder, binpack and resource-strategy-fit.

Weights are the configuration's: 0 is an answer, and only an absent weight has its default. Scores of nodeorder count in
points up to 100, those of the other two on a scale a hundred times as fine, so all are brought to the finer scale.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shoal.engine.device_choice import TIGHTEST
from shoal.engine.domains.soft import Soft
from shoal.engine.profile import Profile
from shoal.engine.queues.disciplines.volcano.configuration import PluginOption, VolcanoConfiguration
from shoal.engine.queues.disciplines.volcano.plugins.arguments import number
from shoal.engine.scores.allocation import BalancedAllocation, ResourceAllocationScore
from shoal.engine.scores.preferences import PreferredAffinity, SoftTaints
from shoal.engine.scores.rule import BEST, NodeScore, StaticScore
from shoal.engine.scores.strategies import FINEST, PerResource, WeightedBinpack

_FINER = FINEST // BEST
_NODE_ORDER: Mapping[str, int] = {
    "nodeaffinity": 2,
    "podaffinity": 2,
    "podtopologyspread": 2,
    "tainttoleration": 3,
    "leastrequested": 1,
    "mostrequested": 0,
    "balancedresource": 1,
}
"""The default weights of nodeorder. Its weight for images (1) has no effect: which images a node has is not known."""

_STRATEGY_WEIGHT = 10
"""The default weight of resource-strategy-fit."""
_LEAST_ALLOCATED: Mapping[str, Any] = {name: {"type": "LeastAllocated", "weight": 1} for name in ("cpu", "memory")}
_LISTED = "binpack.resources"
_MOST_WEIGHT = 100_000
"""All weights of a profile together, so that the points of a node fit into its key; larger ones keep their ratio."""
_SCORED = ("nodeorder", "binpack", "resource-strategy-fit")


def volcano_profile(configuration: VolcanoConfiguration) -> Profile:
    static: list[tuple[StaticScore, int]] = []
    scores: list[tuple[NodeScore, int]] = []
    soft = Soft()
    options = [each for each in configuration.plugins() if each.name in _SCORED and each.has("NodeOrder")]
    most = _MOST_WEIGHT // max(len(options), 1)
    for option in options:
        if option.name == "nodeorder":
            weights = _bounded(node_order_weights(option), most)
            soft = Soft(weights["podaffinity"] * _FINER, weights["podtopologyspread"] * _FINER)
            static += [
                (PreferredAffinity(), weights["nodeaffinity"] * _FINER),
                (SoftTaints(), weights["tainttoleration"] * _FINER),
            ]
            scores += [
                (ResourceAllocationScore("LeastAllocated"), weights["leastrequested"] * _FINER),
                (ResourceAllocationScore("MostAllocated"), weights["mostrequested"] * _FINER),
                (BalancedAllocation(), weights["balancedresource"] * _FINER),
            ]
        elif option.name == "binpack":
            arguments = option.arguments
            weight = number(arguments, "binpack.weight", number(arguments, "weight", 1))
            scores.append((binpack_score(arguments), _bounded({"": weight}, most)[""]))
        elif option.name == "resource-strategy-fit":
            resources = option.arguments.get("resources")
            score = strategy_score(resources if isinstance(resources, Mapping) and resources else _LEAST_ALLOCATED)
            weight = number(option.arguments, "resourceStrategyFitWeight", _STRATEGY_WEIGHT)
            scores.append((score, _bounded({"": weight if weight >= 0 else _STRATEGY_WEIGHT}, most)[""]))
    return Profile(
        "Volcano",
        tuple((score, weight) for score, weight in static if weight),
        tuple((score, weight) for score, weight in scores if weight),
        soft,
        devices=TIGHTEST,
    )


def node_order_weights(option: PluginOption) -> dict[str, float]:
    """The arguments are named as in `leastrequested.weight`; `LeastRequestedWeight` is the same."""
    said = {name.lower().removesuffix("weight").removesuffix("."): name for name in option.arguments}
    return {
        name: number(option.arguments, said[name], default) if name in said else default
        for name, default in _NODE_ORDER.items()
    }


def binpack_score(arguments: Mapping[str, Any]) -> WeightedBinpack:
    """Cores and memory weigh 1 unless an argument says otherwise. Other resources count only if `binpack.resources`
    lists them; they weigh 1 too, unless they have a weight of their own."""
    listed = [name for part in str(arguments.get(_LISTED) or "").split(",") if (name := part.strip())]
    plain = {name.removeprefix("binpack."): name for name in arguments if not name.startswith(_LISTED)}
    named = {short: name for short, name in plain.items() if short != "weight"}
    named |= {name: f"{_LISTED}.{name}" for name in listed}
    weights: dict[str, float] = {"cpu": 1, "memory": 1}
    weights |= {short: number(arguments, name, 1) for short, name in named.items()}
    return WeightedBinpack(
        tuple(_bounded({short: weight if weight >= 0 else 1 for short, weight in weights.items()}).items())
    )


def strategy_score(resources: Mapping[str, Any]) -> PerResource:
    """Each resource by a strategy and a weight of its own."""
    read = {name: said for name, said in resources.items() if isinstance(said, Mapping)}
    weights = _bounded({name: number(said, "weight", 1) for name, said in read.items()})
    return PerResource(
        tuple((name, str(said.get("type", "LeastAllocated")), weights[name]) for name, said in read.items())
    )


def _bounded(weights: Mapping[str, float], most: int = _MOST_WEIGHT) -> dict[str, int]:
    """Whole weights, in the same ratio where their sum would be too large."""
    largest = max(map(abs, weights.values()), default=0)
    if largest == 0 or sum(abs(weight / largest) for weight in weights.values()) * largest <= most:
        return {name: int(weight) for name, weight in weights.items()}
    parts = {name: weight / largest for name, weight in weights.items()}
    whole = sum(map(abs, parts.values()))
    return {name: int(part * most / whole) for name, part in parts.items()}
