"""Room for whole jobs: one domain at a time, in bundles, and no pod more than is needed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from build.volcano_worlds import World, plugin, queue
from shoal.engine.groups import TopologyRequirement

PLUGINS = (plugin("priority"), plugin("gang"), plugin("conformance"), plugin("proportion"), plugin("nodeorder"))
IN_RACK = TopologyRequirement(required="rack", closest=True)
RACKS = {"n1": {"rack": "r1"}, "n2": {"rack": "r1"}, "n3": {"rack": "r2"}, "n4": {"rack": "r2"}}


def racks(*queues: Any, cores: int = 2, **arguments: Any) -> World:
    nodes: dict[str, Mapping[str, float]] = {name: {"cpu": cores} for name in RACKS}
    return World(list(queues) or [queue("q")], nodes, (PLUGINS,), arguments, RACKS)


def test_victims_are_taken_in_one_domain_only() -> None:
    made = racks().job("low", "q", "n1:2", "n2:2", "n3:2", "n4:2", minimum=1, priority=1)
    found = made.job("high", "q", ":2", ":2", minimum=2, priority=5, requirement=IN_RACK).run("gangpreempt")
    assert found.evicted in ({"low-0", "low-1"}, {"low-2", "low-3"})
    assert found.promised == {"high-0", "high-1"}


def test_no_pod_goes_that_need_not_go() -> None:
    made = racks(cores=4).job("low", "q", "n1:4", "n2:1", minimum=0, priority=1)
    made.job("other", "q", "n2:3", "n3:4", "n4:4", minimum=3, priority=9)
    found = made.job("high", "q", ":4", priority=5, requirement=IN_RACK).run("gangpreempt")
    assert (found.evicted, found.promised) == ({"low-0"}, {"high-0"})


@pytest.mark.parametrize(("takes_whole", "evicted"), [(True, {"low-0", "low-1"}), (False, set())])
def test_a_job_at_its_minimum_goes_as_a_whole_where_that_is_allowed(takes_whole: bool, evicted: set[str]) -> None:
    made = racks(gangpreempt={"allowWholeBundle": takes_whole})
    made.job("low", "q", "n1:2", "n2:2", minimum=2, priority=1).job("other", "q", "n3:2", "n4:2", priority=9, minimum=2)
    found = made.job("high", "q", ":2", priority=5, requirement=IN_RACK).run("gangpreempt")
    assert found.evicted == evicted


def test_pods_above_a_minimum_go_before_a_whole_job() -> None:
    made = (
        racks().job("core", "q", "n1:2", minimum=1, priority=1).job("spare", "q", "n2:2", "n3:2", minimum=1, priority=2)
    )
    made.job("other", "q", "n4:2", priority=9)
    found = made.job("high", "q", ":2", priority=5).run("gangpreempt")
    assert found.evicted in ({"spare-0"}, {"spare-1"})


def test_a_domain_that_does_not_suffice_keeps_its_pods() -> None:
    made = racks().job("low", "q", "n1:2", "n3:2", minimum=0, priority=1)
    made.job("other", "q", "n2:2", "n4:2", minimum=2, priority=9)
    found = made.job("high", "q", ":2", ":2", minimum=2, priority=5, requirement=IN_RACK).run("gangpreempt")
    assert (found.evicted, found.promised) == (set(), set())


def test_only_so_many_domains_are_tried() -> None:
    made = racks(gangpreempt={"maxDomains": 1}).job("low", "q", "n3:2", "n4:2", minimum=0, priority=1)
    made.job("other", "q", "n1:2", "n2:2", minimum=2, priority=9)
    high: dict[str, Any] = {"minimum": 2, "priority": 5, "requirement": IN_RACK}
    assert made.job("high", "q", ":2", ":2", **high).run("gangpreempt").evicted == set()


def test_whole_jobs_are_reclaimed_from_queues_beyond_their_share() -> None:
    made = racks(queue("a"), queue("b")).job("a", "a", "n1:2", "n2:2", "n3:2", "n4:2", minimum=0)
    found = made.job("b", "b", ":2", ":2", minimum=2, requirement=IN_RACK).run("gangreclaim")
    assert found.evicted in ({"a-0", "a-1"}, {"a-2", "a-3"})
    assert found.promised == {"b-0", "b-1"}


@pytest.mark.parametrize(("guarantee", "evicted"), [(0, {"core-0", "core-1"}), (1, set()), (4, set())])
def test_a_whole_job_does_not_go_if_its_queue_would_have_less_than_its_guarantee(
    guarantee: int, evicted: set[str]
) -> None:
    plugins = (*PLUGINS[:3], plugin("capacity"), PLUGINS[4])
    a, b = queue("a", guarantee={"cpu": guarantee} if guarantee else {}), queue("b", deserved={"cpu": 4})
    made = World([a, b], {"n1": {"cpu": 2}, "n2": {"cpu": 2}}, (plugins,), {}, RACKS)
    made.job("core", "a", "n1:2", "n2:2", minimum=2)
    assert made.job("claims", "b", ":2", minimum=1).run("gangreclaim").evicted == evicted


def test_a_job_whose_queue_may_not_have_all_that_it_lacks_reclaims_nothing() -> None:
    made = racks(queue("a"), queue("b")).job("a", "a", "n1:2", "n2:2", "n3:2", "n4:2", minimum=0)
    found = made.job("b", "b", ":2", ":2", ":2", minimum=3).run("gangreclaim")
    assert found.evicted == set()


def test_what_fits_without_victims_is_left_to_allocate() -> None:
    made = racks().job("low", "q", "n1:2", priority=1)
    found = made.job("high", "q", ":2", ":2", minimum=2, priority=5, requirement=IN_RACK).run("gangpreempt", "allocate")
    assert (found.evicted, found.bound) == (set(), {"high-0", "high-1"})
