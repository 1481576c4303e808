"""A reader gets the rows changed since its cursor, or is told that this is no longer known."""

from __future__ import annotations

from build.nodes import fleet, node
from build.pods import ask
from build.scenario import Scenario
from shoal.engine.changes import ChangeLog


def test_a_reader_sees_every_change_once_in_order() -> None:
    log = ChangeLog()
    for row in (3, 1, 3):
        log.append(row)
    cursor = log.end
    log.append(7)
    since_start, since_cursor = log.since(0), log.since(cursor)
    assert since_start is not None
    assert since_start.tolist() == [3, 1, 3, 7]
    assert since_cursor is not None
    assert since_cursor.tolist() == [7]


def test_a_reader_at_the_end_sees_nothing() -> None:
    log = ChangeLog()
    log.append(1)
    nothing = log.since(log.end)
    assert nothing is not None
    assert nothing.tolist() == []


def test_a_reader_that_never_read_is_told_to_look_at_everything() -> None:
    assert ChangeLog().since(-1) is None


def test_the_end_counts_every_change_also_those_forgotten() -> None:
    log = ChangeLog()
    for row in range(100_000):
        log.append(row)
    assert log.end == 100_000


def test_an_old_reader_is_told_and_a_recent_one_is_served_across_every_forgetting() -> None:
    log = ChangeLog()
    forgotten = 0
    for row in range(70_000):
        log.append(row)
        if row % 97 == 0:
            if log.since(0) is None:
                forgotten += 1
            recent = log.since(max(log.end - 5000, 0))
            assert recent is not None
            assert recent.tolist() == list(range(max(row + 1 - 5000, 0), row + 1))
    assert forgotten > 0
    assert log.since(0) is None


def test_a_view_handed_out_before_a_forgetting_keeps_its_rows() -> None:
    log = ChangeLog()
    for row in range(10_000):
        log.append(row)
    view = log.since(9_990)
    for row in range(50_000):
        log.append(-row)
    assert view is not None
    assert view.tolist() == list(range(9_990, 10_000))


def test_a_larger_fleet_is_remembered_for_longer() -> None:
    log = ChangeLog()
    log.append(5)
    log.reserve(50_000)
    for row in range(60_000):
        log.append(row)
    kept = log.since(0)
    assert kept is not None
    assert kept.tolist() == [5, *range(60_000)]


def test_a_shape_that_slept_through_more_changes_than_the_log_keeps_is_right_again() -> None:
    world = Scenario(*fleet(3, node("n").gpus(4)), policy="BestFit")
    sleeper = ask().gpus(2)
    assert world.fitting(sleeper) == {"n0", "n1", "n2"}
    for index in range(12_000):
        world.bind("p", ask().gpus(1), f"n{index % 3}").go("p")
    world.bind("x", ask().gpus(3), "n1")
    assert world.fitting(sleeper) == {"n0", "n2"}
    assert world.shape(sleeper).keys().tolist() == world.fresh_shape(sleeper).keys().tolist()


def test_a_shape_that_slept_through_many_relabellings_is_right_again() -> None:
    world = Scenario(*fleet(3, node("n")), policy="BestFit")
    sleeper = ask().select("zone", "In", "a")
    assert world.fitting(sleeper) == set()
    for index in range(17_000):
        world.see(node("n1").label("zone", "ab"[index % 2]))
    world.see(node("n2").label("zone", "a"))
    assert world.fitting(sleeper) == {"n2"}
