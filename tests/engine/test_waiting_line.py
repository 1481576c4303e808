"""Who is tried first: priority, then arrival; a pod sent back keeps its turn, and a full line waits as one."""

from __future__ import annotations

from build.nodes import node
from build.pods import ask
from build.scenario import Scenario

ONE = node("n").cpu(1)
CORE = ask().cpu(1)


def order(world: Scenario) -> list[str]:
    return [place.pod for place in world.round().placed]


def test_first_come_first_served_across_different_asks() -> None:
    world = Scenario(node("n"))
    world.arrive("a", ask().cpu(1)).arrive("b", ask().cpu(2)).arrive("c", ask().cpu(1)).arrive("d", ask().cpu(2))
    assert order(world) == ["a", "b", "c", "d"]


def test_equal_asks_written_twice_are_one_line() -> None:
    world = Scenario(node("n"))
    for index in range(4):
        world.arrive(f"p{index}", ask().cpu(1).select("zone", "DoesNotExist"))
    assert order(world) == ["p0", "p1", "p2", "p3"]


def test_priority_goes_before_arrival() -> None:
    world = Scenario(ONE).arrive("early", CORE).arrive("urgent", CORE, priority=10).arrive("late", CORE, priority=10)
    assert order(world) == ["urgent"]
    assert world.waiting() == ["late", "early"]


def test_a_pod_that_does_not_fit_does_not_block_those_behind_it() -> None:
    world = Scenario(ONE).arrive("big", ask().cpu(2), priority=10).arrive("small", CORE)
    assert order(world) == ["small"]
    assert world.waiting() == ["big"]


def test_a_rejected_pod_keeps_its_turn() -> None:
    world = Scenario(ONE).arrive("a", CORE).arrive("b", CORE)
    assert order(world) == ["a"]
    world.arrive("c", CORE).reject("a")
    assert world.waiting() == ["a", "b", "c"]
    assert order(world) == ["a"]


def test_a_pod_rejected_again_and_again_is_still_first() -> None:
    world = Scenario(ONE).arrive("a", CORE).arrive("b", CORE)
    for _ in range(5):
        assert order(world) == ["a"]
        world.reject("a")
    world.go("a")
    assert order(world) == ["b"]


def test_an_arrival_told_twice_keeps_its_turn() -> None:
    world = Scenario(ONE).arrive("a", CORE).arrive("b", CORE).arrive("a", CORE)
    assert order(world) == ["a"]


def test_a_pod_that_raises_its_priority_moves_up() -> None:
    world = Scenario(ONE).arrive("a", CORE).arrive("b", CORE).arrive("b", CORE, priority=1)
    assert order(world) == ["b"]


def test_a_pod_that_changes_its_ask_is_tried_with_the_new_one() -> None:
    world = Scenario(ONE).arrive("a", ask().cpu(8)).arrive("a", CORE)
    assert order(world) == ["a"]
    assert world.free("n") == 0


def test_a_pod_that_comes_back_under_its_old_name_stands_at_the_end() -> None:
    world = Scenario(ONE).arrive("a", CORE).arrive("b", CORE).go("a").arrive("a", CORE)
    assert order(world) == ["b"]


def test_a_refusal_is_told_once_and_again_only_to_newcomers() -> None:
    world = Scenario(ONE).arrive("a", ask().cpu(2))
    assert [refusal.pod for refusal in world.round().refused] == ["a"]
    assert world.round().intentions == ()
    world.arrive("b", ask().cpu(2))
    assert [refusal.pod for refusal in world.round().refused] == ["b"]


def test_a_pod_that_went_and_came_back_before_the_round_is_refused_once() -> None:
    world = Scenario(ONE).arrive("a", ask().cpu(2)).go("a").arrive("a", ask().cpu(2))
    assert [refusal.pod for refusal in world.round().refused] == ["a"]


def test_a_pod_that_changed_its_ask_before_the_round_is_refused_once() -> None:
    world = Scenario(ONE).arrive("a", ask().cpu(2)).arrive("a", ask().cpu(3))
    assert [refusal.pod for refusal in world.round().refused] == ["a"]


def test_a_backlog_starts_to_move_when_room_comes() -> None:
    world = Scenario(ONE)
    for index in range(3):
        world.arrive(f"p{index}", CORE)
    moved = []
    for _ in range(3):
        moved += order(world)
        world.go(moved[-1])
    assert moved == ["p0", "p1", "p2"]
