"""Time that pods hold a GPU and time that it is active are counted, and unknown activity is not counted as none."""

from __future__ import annotations

import pytest

from shoal.devices.gpu_accounting import GpuAccount, RecentEvents, allocated_part
from shoal.devices.port import GpuReadings, InstalledGpu, MigInstance, Profiling

BUSY, IDLE = GpuReadings(util_percent=80), GpuReadings(util_percent=0)
WHOLE = InstalledGpu(0, "GPU-a", "NVIDIA A100", "00000000:01:00.0", is_mig=False)
CUT = InstalledGpu(
    *(0, "GPU-a", "NVIDIA A100", "00000000:01:00.0"),
    is_mig=True,
    instances=(MigInstance("MIG-b", "3g.40gb", 1, 0, 4, 40_000), MigInstance("MIG-c", "1g.10gb", 9, 4, 1, 10_000)),
)


def account(*steps: tuple[float, float, GpuReadings | None]) -> GpuAccount:
    found = GpuAccount()
    for at_s, allocated, readings in steps:
        found.add(at_s, allocated, readings)
    return found


def test_time_is_weighted_by_the_part_that_is_held_and_by_the_activity() -> None:
    found = account((0.0, 1.0, BUSY), (10.0, 1.0, BUSY), (20.0, 0.5, IDLE))
    assert (found.allocated_s, found.active_s) == (15.0, 8.0)


def test_the_first_reading_counts_no_time_and_a_clock_that_goes_back_neither() -> None:
    found = account((100.0, 1.0, BUSY), (90.0, 1.0, BUSY))
    assert (found.allocated_s, found.active_s) == (0.0, 0.0)


def test_a_long_time_between_two_readings_is_held_but_neither_active_nor_throttled() -> None:
    found = GpuAccount(10.0)
    busy = GpuReadings(util_percent=80, throttle_reasons=("a",))
    for at_s in (0.0, 10.0, 3610.0, 3620.0):
        found.add(at_s, 1.0, busy)
    assert (found.allocated_s, found.active_s, found.throttled_s) == (3620.0, 16.0, {"a": 20.0})


def test_a_gpu_that_does_not_report_its_activity_has_no_active_and_no_idle_time() -> None:
    found = account((0.0, 1.0, GpuReadings()), (10.0, 1.0, None))
    assert (found.allocated_s, found.active_s, found.idle_s(20.0)) == (10.0, None, None)


def test_activity_of_a_gpu_with_instances_is_that_of_its_performance_counters() -> None:
    half = GpuReadings(profiling=Profiling(graphics=0.5))
    assert account((0.0, 1.0, half), (10.0, 1.0, half)).active_s == 5.0


def test_idle_time_begins_when_activity_ends_and_an_unknown_time_interrupts_it() -> None:
    found = account((0.0, 0.0, BUSY))
    assert found.idle_s(5.0) == 0.0
    found.add(10.0, 0.0, IDLE)
    found.add(20.0, 0.0, IDLE)
    assert found.idle_s(25.0) == 15.0
    found.add(30.0, 0.0, None)
    assert found.idle_s(35.0) is None
    found.add(40.0, 0.0, IDLE)
    assert found.idle_s(41.0) == 1.0


def test_reasons_of_reduced_clocks_are_counted_apart() -> None:
    both, one = GpuReadings(throttle_reasons=("a", "b")), GpuReadings(throttle_reasons=("a",))
    assert account((0.0, 0.0, both), (10.0, 0.0, both), (15.0, 0.0, one)).throttled_s == {"a": 15.0, "b": 10.0}


@pytest.mark.parametrize(
    ("gpu", "held", "part"),
    [
        (WHOLE, {}, 0.0),
        (WHOLE, {"GPU-a": True}, 1.0),
        (CUT, {"MIG-b": True}, 0.8),
        (CUT, {"MIG-b": True, "MIG-c": True}, 1.0),
        (CUT, {"MIG-b": False}, 0.0),
        (CUT, {"GPU-a": True}, 1.0),
    ],
)
def test_the_part_that_pods_hold_is_that_of_their_instances(
    gpu: InstalledGpu, held: dict[str, bool], part: float
) -> None:
    assert allocated_part(gpu, held) == part


def test_events_are_counted_until_they_leave_the_window() -> None:
    events: RecentEvents[str] = RecentEvents(10.0)
    for at_s, what in ((0.0, "a"), (5.0, "a"), (6.0, "b")):
        events.add(at_s, what)
    assert events.counts(10.0) == {"a": 2, "b": 1}
    assert events.counts(12.0) == {"a": 1, "b": 1}
    assert events.counts(20.0) == {}


def test_a_storm_of_events_is_counted_in_a_bounded_size() -> None:
    events: RecentEvents[int] = RecentEvents(300.0)
    sizes: list[int] = []
    for number in range(50_000):
        events.add(number / 100, 13 + number % 2)
        sizes.append(len(events))
    assert max(sizes) <= 2 * 301
    # Each second has 100 events, and the window's first second may have left it.
    assert sum(events.counts(500.0).values()) in range(29_800, 30_101)
    assert events.counts(900.0) == {}
    assert len(events) == 0
