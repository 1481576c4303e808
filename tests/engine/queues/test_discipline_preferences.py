"""Volcano's and KAI's pods go to the nodes that their schedulers prefer, whatever places other pods."""

from __future__ import annotations

from typing import Any

import pytest

from build.fair_share import FairWorld
from build.fair_share import queue as kai_queue
from build.volcano_worlds import World, plugin, queue
from shoal.engine.asks import Ask
from shoal.engine.cycle import STEPS, cycle
from shoal.engine.device_demand import WholeGpus
from shoal.engine.events import PodArrived
from shoal.engine.placement import Placement
from shoal.engine.pod_mix import PodMix
from shoal.engine.profile import DEFAULT_POLICY, POLICIES, profile_named
from shoal.engine.queues.disciplines.kai.fairshare import Fairshare
from shoal.engine.queues.disciplines.kai.node_preferences import preferences_name
from shoal.engine.queues.disciplines.volcano.configuration import PluginOption, VolcanoConfiguration
from shoal.engine.queues.disciplines.volcano.discipline import Volcano
from shoal.engine.queues.disciplines.volcano.queue_forest import QueueForest
from shoal.engine.queues.disciplines.volcano.session import VolcanoFacts

_EMPTY, _LOADED = "n1", "n2"
_SPREAD = {"leastrequested.weight": 10, "mostrequested.weight": 0, "balancedresource.weight": 0}
_PACK = {"leastrequested.weight": 0, "mostrequested.weight": 10, "balancedresource.weight": 0}
_GPU_BINPACK = {
    "binpack.weight": 10,
    "binpack.cpu": 0,
    "binpack.memory": 0,
    "binpack.resources": "nvidia.com/gpu",
    "binpack.resources.nvidia.com/gpu": 10,
}


def _world() -> World:
    """Two equal nodes; on the second one a pod uses half of what there is."""
    world = World([queue("q")], {name: {"cpu": 32, "gpu": 8} for name in (_EMPTY, _LOADED)})
    return world.job("old", "q", f"{_LOADED}:16", gpus=4).job("new", "q", ":2", gpus=1)


def _configuration(*scores: PluginOption) -> VolcanoConfiguration:
    rules = tuple(PluginOption(name) for name in ("priority", "gang", "proportion", "predicates"))
    return VolcanoConfiguration(("enqueue", "allocate"), ((*rules, *scores),))


def _nodes(world: World, placement: Placement, discipline: Volcano) -> dict[str, str]:
    plan = cycle(world.cluster, placement, now_s=0, seed=0, steps=(*discipline.steps(), *STEPS))
    return {place.pod: place.node for place in plan.placed}


CASES = {
    "least requested first: the empty node": ((plugin("nodeorder", arguments=_SPREAD),), _EMPTY),
    "most requested first: the loaded node": ((plugin("nodeorder", arguments=_PACK),), _LOADED),
    "GPUs packed: the loaded node": ((plugin("binpack", arguments=_GPU_BINPACK),), _LOADED),
    "packing outweighs the default weights": (
        (plugin("nodeorder"), plugin("binpack", arguments=_GPU_BINPACK)),
        _LOADED,
    ),
    "default weights: the empty node": ((plugin("nodeorder"),), _EMPTY),
    "a plugin whose scores are off": (
        (plugin("nodeorder", arguments=_SPREAD), plugin("binpack", off=("NodeOrder",), arguments=_GPU_BINPACK)),
        _EMPTY,
    ),
}


@pytest.mark.parametrize("policy", [DEFAULT_POLICY, "BestFit", "Random"])
@pytest.mark.parametrize(("scores", "node"), CASES.values(), ids=CASES)
def test_the_configuration_chooses_the_node(scores: tuple[PluginOption, ...], node: str, policy: str) -> None:
    world = _world()
    placement = Placement(world.cluster, POLICIES[policy](world.cluster, PodMix()))
    discipline = Volcano(lambda: VolcanoFacts(QueueForest(world.queues), world.jobs), _configuration(*scores))
    assert _nodes(world, placement, discipline) == {"new-0": node}


def test_a_changed_configuration_counts_from_the_next_session() -> None:
    world = _world()
    placement = Placement(world.cluster, profile_named(DEFAULT_POLICY, world.cluster, PodMix()))
    facts = VolcanoFacts(QueueForest(world.queues), world.jobs)
    discipline = Volcano(lambda: facts, _configuration(plugin("nodeorder", arguments=_SPREAD)))
    assert _nodes(world, placement, discipline) == {"new-0": _EMPTY}
    world.job("next", "q", ":2", gpus=1)
    discipline.configure(_configuration(plugin("nodeorder", arguments=_PACK)))
    assert _nodes(world, placement, discipline) == {"next-0": _LOADED}


def test_pods_of_no_queue_keep_the_profile_of_the_cycle() -> None:
    def alone(*, with_discipline: bool) -> Any:
        world = _world()
        world.intake.apply(PodArrived("alone", Ask(devices=WholeGpus(1)), 0))
        placement = Placement(world.cluster, POLICIES["BestFit"](world.cluster, PodMix()))
        facts = VolcanoFacts(QueueForest(world.queues), {})
        discipline = Volcano(lambda: facts, _configuration(plugin("nodeorder", arguments=_SPREAD)))
        steps = (*(discipline.steps() if with_discipline else ()), *STEPS)
        plan = cycle(world.cluster, placement, now_s=0, seed=0, steps=steps)
        return next(place.node for place in plan.placed if place.pod == "alone")

    assert alone(with_discipline=True) == alone(with_discipline=False) == _LOADED


KAI_CASES = {
    "packed by default": ("", "n1"),
    "packed by a strategy": (preferences_name(gpu_spread=False, cpu_spread=False, shares_spread=False), "n1"),
    "spread by a strategy": (preferences_name(gpu_spread=True, cpu_spread=False, shares_spread=False), "n0"),
}


@pytest.mark.parametrize("policy", [DEFAULT_POLICY, "BestFit", "Random"])
@pytest.mark.parametrize(("preferences", "node"), KAI_CASES.values(), ids=KAI_CASES)
def test_kais_strategy_chooses_the_node(preferences: str, node: str, policy: str) -> None:
    world = FairWorld([8, 8], kai_queue("q", quota=8))
    world.job("old", "q", 4, on=["n1"]).job("new", "q", 1)
    discipline = Fairshare([kai_queue("q", quota=8)], preferences=preferences)
    placement = Placement(world.cluster, POLICIES[policy](world.cluster, PodMix()))
    plan = cycle(world.cluster, placement, now_s=0, seed=0, steps=(*discipline.steps(), *STEPS))
    assert [place.node for place in plan.placed] == [node]
