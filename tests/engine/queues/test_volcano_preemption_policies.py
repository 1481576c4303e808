"""`preemptionPolicy` and `preemptable` of a queue: which of its pods are evicted first, and whether any are."""

from __future__ import annotations

from typing import Any

import pytest

from build.volcano_objects import queue as queue_object
from build.volcano_worlds import World, plugin, queue
from shoal.engine.queues.disciplines.volcano.preemption_policies import best_fit_key
from shoal.engine.queues.disciplines.volcano.queue_forest import scheduler_queue

_PLUGINS = (
    plugin("priority"),
    plugin("gang", off=("Preemptable", "Reclaimable")),
    plugin("conformance"),
    plugin("proportion"),
    plugin("nodeorder"),
)
_ACTIONS = ("preempt", "reclaim", "gangpreempt", "gangreclaim")


def _full(*, claimant: str = "q", **of_queue: Any) -> World:
    """Three jobs of a queue, the oldest least important, fill a node of eight cores; a fourth job asks for four."""
    made = World([queue("q", **of_queue), queue("other")], {"n1": {"cpu": 8}}, (_PLUGINS,))
    made.job("old", "q", "n1:2", priority=0).job("big", "q", "n1:4", priority=1).job("young", "q", "n1:2", priority=2)
    return made.job("new", claimant, ":4", priority=9)


POLICIES = {
    "priority": {"old-0", "big-0"},
    "FIFO": {"young-0", "big-0"},
    "bestFit": {"big-0"},
}


@pytest.mark.parametrize(("policy", "victims"), POLICIES.items(), ids=POLICIES)
def test_the_policy_of_the_queue_orders_the_victims_of_preempt(policy: str, victims: set[str]) -> None:
    found = _full(victims=policy).run("preempt")
    assert (found.evicted, found.promised) == (victims, {"new-0"})


@pytest.mark.parametrize(("policy", "victims"), POLICIES.items(), ids=POLICIES)
def test_the_policy_of_the_victims_queue_orders_the_victims_of_reclaim(policy: str, victims: set[str]) -> None:
    found = _full(claimant="other", victims=policy).run("reclaim")
    assert (found.evicted, found.promised) == (victims, {"new-0"})


def test_best_fit_takes_the_node_on_which_the_fewest_pods_go() -> None:
    made = World([queue("q", victims="bestFit")], {"n1": {"cpu": 4}, "n2": {"cpu": 4}}, (_PLUGINS,))
    made.job("a", "q", "n1:2", priority=0).job("b", "q", "n1:2", priority=0).job("c", "q", "n2:4", priority=1)
    found = made.job("new", "q", ":4", priority=9).run("preempt")
    assert (found.evicted, found.promised) == ({"c-0"}, {"new-0"})


@pytest.mark.parametrize("policy", POLICIES)
def test_no_policy_makes_a_victim_of_a_more_important_job(policy: str) -> None:
    made = World([queue("q", victims=policy)], {"n1": {"cpu": 8}}, (_PLUGINS,))
    made.job("low", "q", "n1:4", priority=0).job("high", "q", "n1:4", priority=9)
    assert made.job("new", "q", ":4", priority=5).run("preempt").evicted == {"low-0"}


@pytest.mark.parametrize("action", _ACTIONS)
@pytest.mark.parametrize("protects", [False, True], ids=["preemptable", "not preemptable"])
def test_a_queue_that_is_not_preemptable_keeps_its_pods_in_every_action(action: str, *, protects: bool) -> None:
    claimant = "other" if "reclaim" in action else "q"
    found = _full(claimant=claimant, is_preemptable=not protects).run(action)
    assert bool(found.evicted) is not protects


SPECS = {
    "nothing": ({}, ("priority", True)),
    "priority": ({"preemptionPolicy": "priority"}, ("priority", True)),
    "first in, first out": ({"preemptionPolicy": "fifo"}, ("FIFO", True)),
    "best fit": ({"preemptionPolicy": "BestFit"}, ("bestFit", True)),
    "an unknown word": ({"preemptionPolicy": "worstFit"}, ("priority", True)),
    "not preemptable": ({"preemptable": False}, ("priority", False)),
    "preemptable": ({"preemptable": True}, ("priority", True)),
}


@pytest.mark.parametrize(("spec", "read"), SPECS.values(), ids=SPECS)
def test_the_fields_of_the_object(spec: dict[str, Any], read: tuple[str, bool]) -> None:
    found = scheduler_queue(queue_object("q", **spec))
    assert (found.victims, found.is_preemptable) == read


def test_one_that_suffices_comes_before_those_that_do_not_and_the_smallest_of_them_first() -> None:
    asked = {"cpu": 4.0, "memory": 8.0}
    sizes = {"half": 2.0, "exact": 4.0, "double": 8.0, "most": 3.0}
    found = sorted(sizes, key=lambda name: best_fit_key({"cpu": sizes[name], "memory": sizes[name] * 2}, asked))
    assert found == ["exact", "double", "most", "half"]
