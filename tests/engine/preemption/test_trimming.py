"""Nobody yields in vain, also where there are too many candidates to try every set of them."""

from __future__ import annotations

from build.company import apart, called
from build.nodes import fleet, node
from build.pods import ask
from build.yielding import Yielding, gpus
from shoal.engine.preemption.policy import VictimPolicy

CORE, EIGHT = ask().cpu(1), gpus(8)


def busy_node(pods: int) -> Yielding:
    """A node of so many cores, each with its pod, the first the oldest."""
    world = Yielding(node("n").cpu(pods))
    for index in range(pods):
        world.runs(f"p{index:02}", "n", CORE, since_s=float(index))
    return world


def beside_bystanders(world: Yielding) -> Yielding:
    """Twenty pods that would yield, on nodes where it would help nobody."""
    for index in range(20):
        world.see(node(f"aside{index}").gpus(8))
        world.runs(f"vip{index}", f"aside{index}", gpus(7), is_preemptible=False)
        world.runs(f"bystander{index}", f"aside{index}", gpus(1))
    return world


def test_of_many_pods_on_a_node_only_as_many_as_needed_yield_the_newest_first() -> None:
    assert busy_node(20).waits("new", ask().cpu(3), 5).victims() == ["p17", "p18", "p19"]


def test_of_a_hundred_pods_too() -> None:
    assert busy_node(100).waits("new", ask().cpu(2), 5).victims() == ["p98", "p99"]


def test_who_yielded_first_is_spared_when_those_after_it_are_enough() -> None:
    world = beside_bystanders(Yielding(*fleet(3, node("n").gpus(8))).gang("g", 2).gang("new", 2, priority=5))
    world.runs("cheap", "n0", EIGHT).runs("g-0", "n1", EIGHT, group="g").runs("g-1", "n2", EIGHT, group="g")
    world.waits("new-0", EIGHT, group="new").waits("new-1", EIGHT, group="new")
    # The cheap one alone is not enough, and the gang that must go as well makes room for all.
    assert world.victims() == ["g-0", "g-1"]


def test_a_gang_that_went_whole_keeps_what_it_need_not_give() -> None:
    world = beside_bystanders(Yielding(*fleet(3, node("n").gpus(8))).gang("g", 1).gang("new", 2, priority=5))
    for index in range(3):
        world.runs(f"g-{index}", f"n{index}", EIGHT, group="g", since_s=float(index))
    world.waits("new-0", EIGHT, group="new").waits("new-1", EIGHT, group="new")
    assert world.victims() == ["g-1", "g-2"]


def test_where_budgets_are_short_they_are_saved_for_those_who_cannot_do_without() -> None:
    world = beside_bystanders(Yielding(*fleet(3, node("n").gpus(8))).gang("new", 2, priority=5))
    world.runs("a", "n0", EIGHT, since_s=3).runs("b", "n1", EIGHT, since_s=2)
    world.runs("c", "n2", gpus(4), since_s=1).runs("d", "n2", gpus(4), since_s=1)
    world.budget("one", 1, "a", "b")
    world.waits("new-0", EIGHT, group="new").waits("new-1", EIGHT, group="new")
    assert world.victims() == ["a", "c", "d"]


def test_rules_about_pods_in_other_places_are_heeded_by_making_them_yield() -> None:
    world = Yielding(*(node(name).label("zone", "z").cpu(4) for name in "ab"))
    guard = ask().cpu(4).near(apart("zone", app="web"))
    world.bind("guard", guard, "a", who=called(app="db")).bind("other", ask().cpu(4), "b")
    world.arrive("web", ask().cpu(4), 5, who=called(app="web"))
    assert world.victims() == ["guard"]


def test_breaking_budgets_breaks_as_few_as_possible() -> None:
    world = Yielding(*fleet(2, node("n").gpus(2)), policy=VictimPolicy(may_break_budgets=True))
    world.runs("a", "n0", gpus(1), 1).runs("b", "n0", gpus(1), 1).runs("c", "n1", gpus(2), 3)
    world.budget("all", 0, "a", "b", "c")
    assert world.waits("new", gpus(2), 5).victims() == ["c"]
