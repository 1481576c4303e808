"""Who yields to whom: one table per rule."""

from __future__ import annotations

import pytest

from build.nodes import fleet, node
from build.pods import ask
from build.yielding import Yielding, gpus, is_quiet
from shoal.engine.preemption.policy import Order, VictimPolicy

ONE, TWO, FOUR = gpus(1), gpus(2), gpus(4)


def full_node(count: int = 4, priority: int = 0, policy: VictimPolicy | None = None) -> Yielding:
    """One node, full of pods of one GPU each, p0 the oldest."""
    world = Yielding(node("n").gpus(count), policy=policy)
    for index in range(count):
        world.runs(f"p{index}", "n", ONE, priority, since_s=float(index))
    return world


class TestAPod:
    def test_makes_as_many_yield_as_it_needs_and_the_newest_of_equals(self) -> None:
        plan = full_node().waits("new", TWO, 5).round()
        assert sorted(evict.pod for evict in plan.evicted) == ["p2", "p3"]
        assert [(n.pod, n.node) for n in plan.nominated] == [("new", "n")]
        assert {evict.beneficiary for evict in plan.evicted} == {"new"}

    def test_makes_nobody_yield_when_it_fits(self) -> None:
        assert full_node().see(node("m").gpus(2)).waits("new", TWO, 5).victims() == []

    def test_makes_nobody_yield_when_it_fits_once_others_have_left(self) -> None:
        world = Yielding(node("n").gpus(2)).runs("a", "n", ONE).runs("b", "n", ONE, terminating=True)
        plan = world.waits("new", ONE, 5).round()
        assert plan.evicted == []
        assert [n.pod for n in plan.nominated] == ["new"]

    def test_makes_nobody_yield_when_that_would_not_help(self) -> None:
        assert full_node().waits("new", gpus(8), 5).victims() == []

    @pytest.mark.parametrize("priority", [5, 6])
    def test_never_makes_its_equals_or_betters_yield(self, priority: int) -> None:
        assert full_node(priority=priority).waits("new", ONE, 5).victims() == []

    def test_makes_nobody_yield_when_it_never_preempts(self) -> None:
        assert full_node().waits("new", ONE, 5, preempts=False).victims() == []

    def test_may_ask_although_one_before_it_in_line_never_does(self) -> None:
        world = full_node().waits("polite", ONE, 6, preempts=False).waits("new", ONE, 5)
        plan = world.round()
        assert [evict.beneficiary for evict in plan.evicted] == ["new"]

    def test_spares_whoever_never_yields(self) -> None:
        world = Yielding(node("n").gpus(2)).runs("old", "n", ONE).runs("vip", "n", ONE, since_s=5, is_preemptible=False)
        assert world.waits("new", ONE, 5).victims() == ["old"]

    def test_spares_pods_of_other_queues(self) -> None:
        world = Yielding(node("n").gpus(2)).runs("mine", "n", ONE, queue="q").runs("theirs", "n", ONE, queue="r")
        assert world.waits("new", TWO, 5, queue="q").victims() == []
        world = Yielding(node("n").gpus(2)).runs("mine", "n", ONE, queue="q").runs("theirs", "n", ONE, queue="r")
        assert world.waits("new", ONE, 5, queue="q").victims() == ["mine"]

    def test_goes_where_the_highest_victim_is_lowest(self) -> None:
        world = Yielding(*fleet(2, node("n").gpus(2)))
        world.runs("a", "n0", TWO, 3).runs("b", "n1", ONE, 2).runs("c", "n1", ONE, 1)
        assert world.waits("new", TWO, 5).victims() == ["b", "c"]

    def test_prefers_one_victim_to_two_of_the_same_top_priority(self) -> None:
        world = Yielding(*fleet(2, node("n").gpus(2)))
        world.runs("a", "n0", ONE, 2).runs("b", "n0", ONE, 1).runs("c", "n1", TWO, 2)
        assert world.waits("new", TWO, 5).victims() == ["c"]

    def test_is_not_helped_by_a_victim_that_frees_the_wrong_thing(self) -> None:
        world = Yielding(node("n").cpu(8).gpus(2))
        world.runs("cores", "n", ask().cpu(8), 0).runs("gpus", "n", TWO, 1)
        assert world.waits("new", ask().cpu(1).gpus(1), 5).victims() == ["cores", "gpus"]
        world = Yielding(node("n").cpu(8).gpus(2)).runs("cores", "n", ask().cpu(8), 0).runs("gpus", "n", TWO, 1)
        assert world.waits("new", ask().cpu(1), 5).victims() == ["cores"]

    def test_frees_a_device_from_all_its_sharers(self) -> None:
        world = Yielding(node("n").gpus(2))
        world.bind("a", ask().share(300), "n", (0,)).bind("b", ask().share(300), "n", (0,))
        world.bind("c", ask().share(900), "n", (1,))
        assert world.waits("new", ONE, 5).victims() == ["c"]

    def test_takes_the_port_of_its_holder_and_of_nobody_else(self) -> None:
        world = Yielding(node("n")).runs("a", "n", ask().cpu(1)).runs("b", "n", ask().port(80))
        assert world.waits("new", ask().port(80), 5).victims() == ["b"]

    def test_is_bound_when_the_victims_have_left_and_then_all_is_quiet(self) -> None:
        world = full_node().waits("new", TWO, 5)
        first, second, *rest = world.play(7)
        assert len(first.evicted) == 2
        assert [(p.pod, p.node) for p in second.placed] == [("new", "n")]
        assert all(map(is_quiet, rest))

    def test_does_not_ask_twice_while_its_victims_are_leaving(self) -> None:
        world = full_node().waits("new", TWO, 5)
        for turn in range(5):
            plan = world.round()
            world.carry_out(plan, linger=True)
            assert len(plan.evicted) == (2 if turn == 0 else 0)
            assert [n.pod for n in plan.nominated] == ["new"]

    def test_makes_a_pod_that_was_about_to_start_wait_before_it_ends_one_that_runs(self) -> None:
        world = Yielding(node("n").gpus(4)).runs("a", "n", TWO).waits("big", FOUR, 5).waits("small", TWO, 0)
        plan = world.round()
        assert [evict.pod for evict in plan.evicted] == ["a"]
        assert plan.placed == []
        assert [refusal.pod for refusal in plan.refused] == ["small"]

    def test_of_several_shares_what_they_free(self) -> None:
        world = Yielding(*fleet(2, node("n").gpus(4)))
        world.runs("a", "n0", FOUR, 0).runs("b", "n1", FOUR, 1)
        plan = world.waits("x", TWO, 5).waits("y", TWO, 5).round()
        assert [evict.pod for evict in plan.evicted] == ["a"]
        assert {(n.pod, n.node) for n in plan.nominated} == {("x", "n0"), ("y", "n0")}


class TestAGang:
    def test_yields_its_surplus_first_the_newest_pod_of_it(self) -> None:
        world = Yielding(node("n").gpus(3)).gang("g", 1)
        world.runs("g-0", "n", ONE, group="g").runs("g-1", "n", ONE, group="g").runs("solo", "n", ONE)
        assert world.waits("new", ONE, 5).victims() == ["g-1"]

    def test_at_its_minimum_yields_whole_or_not_at_all(self) -> None:
        world = Yielding(*fleet(2, node("n").gpus(2))).gang("g", 2)
        world.runs("g-0", "n0", TWO, group="g").runs("g-1", "n1", TWO, group="g")
        assert world.waits("new", ONE, 5).victims() == ["g-0", "g-1"]

    def test_is_spared_when_a_single_pod_would_do(self) -> None:
        world = Yielding(*fleet(3, node("n").gpus(2))).gang("g", 2)
        world.runs("g-0", "n0", TWO, group="g").runs("g-1", "n1", TWO, group="g").runs("solo", "n2", TWO)
        assert world.waits("new", TWO, 5).victims() == ["solo"]

    def test_that_goes_whole_yields_its_surplus_with_it(self) -> None:
        world = Yielding(node("n").gpus(2)).gang("g", 1, is_evicted_whole=True)
        world.runs("g-0", "n", ONE, group="g").runs("g-1", "n", ONE, group="g")
        assert world.waits("new", ONE, 5).victims() == ["g-0", "g-1"]

    def test_at_its_minimum_is_untouchable_where_the_policy_takes_surplus_only(self) -> None:
        world = Yielding(node("n").gpus(3), policy=VictimPolicy(surplus_only=True)).gang("g", 2)
        for name in ("g-0", "g-1", "g-2"):
            world.runs(name, "n", ONE, group="g")
        assert world.waits("new", TWO, 5).victims() == []
        world.go("new")
        assert world.waits("little", ONE, 5).victims() == ["g-2"]

    def test_is_spared_when_one_of_its_pods_never_yields(self) -> None:
        world = Yielding(node("n").gpus(2)).gang("g", 2)
        world.runs("g-0", "n", ONE, group="g").runs("g-1", "n", ONE, group="g", is_preemptible=False)
        assert world.waits("new", ONE, 5).victims() == []

    def test_has_the_priority_of_its_object_not_of_its_pods(self) -> None:
        world = Yielding(node("n").gpus(1)).gang("g", 1, priority=9).runs("g-0", "n", ONE, 0, "g")
        assert world.waits("new", ONE, 5).victims() == []

    def test_asks_as_one_and_makes_room_for_all_of_it(self) -> None:
        world = Yielding(*fleet(3, node("n").gpus(2))).gang("new", 2, priority=5)
        for index in range(3):
            world.runs(f"p{index}", f"n{index}", TWO, since_s=float(index))
        plan = world.waits("new-0", TWO, group="new").waits("new-1", TWO, group="new").round()
        assert sorted(evict.pod for evict in plan.evicted) == ["p1", "p2"]
        assert {evict.beneficiary for evict in plan.evicted} == {"new"}
        assert sorted(n.pod for n in plan.nominated) == ["new-0", "new-1"]

    def test_makes_nobody_yield_when_not_all_of_it_would_fit(self) -> None:
        world = Yielding(node("n").gpus(2)).runs("p", "n", TWO).gang("new", 2, priority=5)
        plan = world.waits("new-0", TWO, group="new").waits("new-1", TWO, group="new").round()
        assert plan.evicted == []
        assert [refusal.group for refusal in plan.refused_groups] == ["new"]

    def test_prefers_one_gang_on_two_nodes_to_two_pods_of_higher_sum(self) -> None:
        world = Yielding(*fleet(4, node("n").gpus(2))).gang("g", 2).gang("new", 2, priority=5)
        world.runs("g-0", "n0", TWO, group="g").runs("g-1", "n1", TWO, group="g")
        world.runs("a", "n2", TWO, 1).runs("b", "n3", TWO, 1)
        plan = world.waits("new-0", TWO, group="new").waits("new-1", TWO, group="new").round()
        assert sorted(evict.pod for evict in plan.evicted) == ["g-0", "g-1"]


class TestBudgets:
    def test_are_kept_when_there_is_another_way(self) -> None:
        world = full_node().budget("b", 0, "p3").waits("new", ONE, 5)
        assert world.victims() == ["p2"]

    def test_allow_as_many_as_they_say(self) -> None:
        world = full_node().budget("b", 1, "p2", "p3").waits("new", TWO, 5)
        assert world.victims() == ["p1", "p3"]

    def test_are_not_broken_by_default(self) -> None:
        assert full_node().budget("b", 0, "p0", "p1", "p2", "p3").waits("new", ONE, 5).victims() == []

    def test_give_way_as_a_last_resort_where_the_policy_says_so(self) -> None:
        world = full_node(policy=VictimPolicy(may_break_budgets=True)).budget("b", 1, "p0", "p1", "p2", "p3")
        assert world.waits("new", TWO, 5).victims() == ["p2", "p3"]

    def test_count_the_victims_of_the_same_round(self) -> None:
        world = Yielding(*fleet(2, node("n").gpus(1))).runs("a", "n0", ONE).runs("b", "n1", ONE)
        plan = world.budget("b", 1, "a", "b").waits("x", ONE, 5).waits("y", ONE, 5).round()
        assert len(plan.evicted) == 1


class TestOrders:
    @pytest.mark.parametrize(
        ("order", "expected"),
        [
            (Order.LOWEST_PRIORITY, ["cheap1", "cheap2"]),
            (Order.FEWEST, ["grand"]),
            (Order.FIFO, ["first1", "first2"]),
            (Order.LEAST_LOST_WORK, ["saved1", "saved2"]),
        ],
    )
    def test_each_makes_others_yield(self, order: Order, expected: list[str]) -> None:
        world = Yielding(*fleet(4, node("n").gpus(2)), policy=VictimPolicy(order))
        world.runs("cheap1", "n0", ONE, 1, since_s=100).runs("cheap2", "n0", ONE, 1, since_s=100)
        world.runs("grand", "n1", TWO, 3, since_s=100)
        world.runs("first1", "n2", ONE, 2, since_s=1).runs("first2", "n2", ONE, 2, since_s=1)
        world.runs("saved1", "n3", ONE, 2, since_s=100, saved_s=990)
        world.runs("saved2", "n3", ONE, 2, since_s=100, saved_s=990)
        assert world.waits("new", TWO, 5).victims() == expected

    def test_newest_first_spares_the_older_of_equal_priority_even_if_more_must_go(self) -> None:
        world = Yielding(*fleet(2, node("n").gpus(2)), policy=VictimPolicy(Order.NEWEST))
        world.runs("old", "n0", TWO, since_s=10)
        world.runs("new1", "n1", ONE, since_s=90).runs("new2", "n1", ONE, since_s=95)
        assert world.waits("urgent", TWO, 5).victims() == ["new1", "new2"]

    def test_newest_first_looks_at_priority_before_age(self) -> None:
        world = Yielding(*fleet(2, node("n").gpus(1)), policy=VictimPolicy(Order.NEWEST))
        world.runs("old", "n0", ONE, 1, since_s=10).runs("new", "n1", ONE, 2, since_s=90)
        assert world.waits("urgent", ONE, 5).victims() == ["old"]

    def test_nobody_yields_before_the_minimum_runtime(self) -> None:
        world = full_node(policy=VictimPolicy(min_runtime_s=998.5))
        assert world.waits("new", TWO, 5).victims() == ["p0", "p1"]
