"""What a scheduler that runs for years must not do: grow with every ask it ever saw, or look again at old news."""

from __future__ import annotations

from build.nodes import node
from build.pods import ask
from build.scenario import Scenario


def test_asks_that_nobody_has_any_more_are_forgotten() -> None:
    world = Scenario(node("n").cpu(64))
    world.arrive("stays", ask().cpu(1))
    for milli in range(6000):
        world.arrive("p", ask().cpu(2 + milli / 1000))
        world.go("p")
    assert len(world.cluster.charges.known) < 6000
    assert [place.pod for place in world.round().placed] == ["stays"]


def test_pods_that_come_and_go_behind_one_that_waits_leave_nothing_in_line() -> None:
    world = Scenario(node("n").cpu(1)).arrive("stays", ask().cpu(2), priority=1)
    for _ in range(3000):
        world.arrive("p", ask().cpu(2)).go("p")
    assert sum(map(len, world.cluster.pending._heaps.values())) < 300
    assert world.arrive("last", ask().cpu(2)).waiting() == ["stays", "last"]
    assert sorted(place.pod for place in world.see(node("m").cpu(4)).round().placed) == ["last", "stays"]


def test_pods_that_fit_nowhere_and_go_leave_nothing_aside() -> None:
    world = Scenario(node("n").cpu(2))
    for index in range(1000):
        world.arrive("p", ask().cpu(4 + index))
        world.round()
        world.go("p")
    pending = world.cluster.pending
    assert len(pending._impossible) + len(pending._heaps) + len(pending._possible) < 100


def test_a_node_that_reports_itself_unchanged_makes_no_shape_look_at_labels_again() -> None:
    world = Scenario(node("n").cpu(8).label("zone", "a"))
    before = world.cluster.static_changes.end
    world.see(node("n").cpu(8).label("zone", "a"))
    assert world.cluster.static_changes.end == before


def test_a_changed_label_does() -> None:
    world = Scenario(node("n").cpu(8).label("zone", "a"))
    before = world.cluster.static_changes.end
    world.see(node("n").cpu(8).label("zone", "b"))
    assert world.cluster.static_changes.end > before
