"""A search that found no home in one round goes on in the next where it stopped."""

from __future__ import annotations

from build.flavors import NO_CANDIDATES, Oracle, choose, only_flavor, pods
from build.queues import cluster_queue, group, hold_usage, pod_set, queues, quotas
from shoal.engine.queues.facts import Fungibility
from shoal.engine.queues.flavors.modes import Mode
from shoal.engine.queues.state import Queues
from shoal.engine.queues.workloads import FlavorSearchProgress

STOPS = Fungibility("MayStopSearch", "MayStopSearch")


def full(fungibility: Fungibility = STOPS) -> Queues:
    """Three flavors, all used up."""
    names = ("one", "two", "three")
    world = queues(cluster_queue("q", *(quotas(name, cpu=4) for name in names), fungibility=fungibility))
    for name in names:
        hold_usage(world, "q", name, cpu=4)
    return world


def test_each_round_looks_at_the_next_flavor_and_starts_over_after_the_last() -> None:
    world = full()
    seen, tried, open_after = [], None, []
    for _ in range(4):
        found = choose(world, "q", pods(cpu=1), tried=tried)
        tried = found.tried
        seen.append(only_flavor(found))
        open_after.append(tried.is_open)
    assert seen == ["one", "two", "three", "one"]
    assert open_after == [True, True, False, True]


def test_a_search_through_all_flavors_leaves_nothing_to_try() -> None:
    found = choose(full(Fungibility()), "q", pods(cpu=1))
    assert only_flavor(found) == "one"
    assert not found.tried.is_open


def test_a_flavor_passed_over_at_the_end_counts_as_looked_at() -> None:
    world = full()
    found = choose(world, "q", pods(cpu=1), oracle=Oracle(dict.fromkeys(("one", "two"), NO_CANDIDATES)))
    assert (only_flavor(found), found.tried.flavors) == ("three", [{"cpu": -1}])


def test_where_nothing_was_found_the_next_round_starts_over() -> None:
    found = choose(full(), "q", pods(cpu=5))
    assert (found.mode, found.tried.flavors, found.tried.is_open) == (Mode.NO_FIT, [{}], False)


def test_a_search_from_before_quotas_changed_is_forgotten() -> None:
    world = full()
    tried = choose(world, "q", pods(cpu=1)).tried
    world.put(cluster_queue("other", cpu=1))
    world.refresh()
    assert only_flavor(choose(world, "q", pods(cpu=1), tried=tried)) == "one"


def test_each_pod_set_and_each_group_of_resources_goes_on_by_itself() -> None:
    world = queues(
        cluster_queue(
            "q",
            group(quotas("a", cpu=9), quotas("b", cpu=9)),
            group(quotas("x", chips=9), quotas("y", chips=9)),
            fungibility=STOPS,
        )
    )
    hold_usage(world, "q", "a", cpu=9)
    hold_usage(world, "q", "x", chips=9)
    first = choose(world, "q", pod_set("one", cpu=1), pod_set("two", cpu=1, chips=1))
    assert first.tried.flavors == [{"cpu": 0}, {"cpu": 0, "chips": 0}]
    tried = FlavorSearchProgress([{"cpu": 0}, {"cpu": -1, "chips": 0}], first.tried.generation)
    second = choose(world, "q", pod_set("one", cpu=1), pod_set("two", cpu=1, chips=1), tried=tried)
    assert [{resource: choice.flavor for resource, choice in each.flavors.items()} for each in second.pod_sets] == [
        {"cpu": "b"},
        {"cpu": "a", "chips": "y"},
    ]
