"""Lines of time of gangs, and the map of use, from recorded holdings, waits and samples."""

from __future__ import annotations

import numpy as np
import pytest

from shoal.cost.records import DeviceShare, Holder, Holding, Wait
from shoal.units.calendar_windows import TimeWindow
from shoal.views.timelines import MOST_LINES, gang_timelines, pod_uses

HOUR = TimeWindow(0, 3_600_000)
MINUTE = 60_000


def held(pod: str, start: int, end: int | None, gang: str = "g", **more: object) -> Holding:
    holder = Holder(pod, "team", gang=gang)
    devices = (DeviceShare(f"{pod}-0"), DeviceShare(f"{pod}-1"))
    end_ms = None if end is None else end * MINUTE
    return Holding(holder, "n", start * MINUTE, (start + 1) * MINUTE, end_ms, devices, **more)  # type: ignore[arg-type]


def test_a_gang_waits_starts_and_runs_on_one_line() -> None:
    holdings = [held("a", 10, 30), held("b", 10, 40)]
    waits = [Wait(one.holder, 2 * MINUTE, 10 * MINUTE, 2) for one in holdings]
    (line,), count = gang_timelines(holdings, waits, HOUR)
    assert count == 1
    assert (line.name, line.kind, line.pods, line.gpus) == ("team/g", "gang", 2, 4)
    stretches = [(one.phase, one.start_ms // MINUTE, one.end_ms // MINUTE) for one in line.stretches]
    assert stretches == [("waits", 2, 10), ("starts", 10, 11), ("runs", 11, 40)]
    assert (line.waited_ms, line.ran_ms, line.is_open) == (8 * MINUTE, 29 * MINUTE, False)


def test_pods_one_after_another_hold_what_one_of_them_does() -> None:
    (line,), _ = gang_timelines([held("a", 0, 20), held("b", 20, 40)], [], HOUR)
    assert line.gpus == 2


def test_what_goes_on_ends_with_the_window_and_what_began_before_begins_with_it() -> None:
    (line,), _ = gang_timelines([held("a", -30, None)], [], HOUR)
    assert [(one.phase, one.start_ms, one.end_ms) for one in line.stretches] == [("runs", 0, HOUR.end_ms)]
    assert line.is_open


def test_a_preemption_is_a_mark_at_its_time() -> None:
    (line,), _ = gang_timelines([held("a", 0, 20, is_preempted=True)], [], HOUR)
    assert [(one.start_ms // MINUTE, one.phase) for one in line.stretches][-1] == (20, "preempted")


def test_pods_without_gpus_and_without_a_name_have_no_line() -> None:
    cpu = Holding(Holder("c", "team"), "n", 0, 0, None)
    forgotten = Holding(Holder(""), "n", 0, 0, None, (DeviceShare("x"),))
    overhead = Holding(Holder("d", "kube-system", is_overhead=True), "n", 0, 0, None, (DeviceShare("y"),))
    assert gang_timelines([cpu, forgotten, overhead], [], HOUR) == ([], 0)


def test_of_many_gangs_the_newest_are_drawn() -> None:
    holdings = [held(f"p{at}", at, None, gang=f"g{at}") for at in range(MOST_LINES + 5)]
    lines, count = gang_timelines(holdings, [], TimeWindow(0, 10**9))
    assert (len(lines), count) == (MOST_LINES, MOST_LINES + 5)
    assert lines[0].name == f"team/g{MOST_LINES + 4}"


def test_the_map_has_the_mean_use_of_the_gpus_of_a_pod_while_it_held_them() -> None:
    times = np.arange(0, 60, 10, dtype=np.int64) * MINUTE
    values = np.array([[10, 20, 30, 40, 50, 60], [30, 40, np.nan, 60, 70, 80]], np.float32)
    devices = ["a-0", "a-1"]
    columns = [0, 20 * MINUTE, 40 * MINUTE, 60 * MINUTE]
    (use,), count = pod_uses([held("a", 10, 50)], devices, times, values, columns)
    assert count == 1
    # At 0 the pod held nothing, at 50 no more.
    assert use.values == pytest.approx([30.0, (30 + 40 + 60) / 3, 60.0])
    assert (use.pod, use.node) == ("team/a", "n")


def test_a_pod_whose_gpus_were_not_measured_has_no_values() -> None:
    (use,), _ = pod_uses([held("a", 0, None)], [], np.zeros(0, np.int64), np.zeros((0, 0), np.float32), [0, 10, 20])
    assert use.values == [None, None]


def test_a_replica_is_measured_as_its_whole_gpu() -> None:
    replica = Holding(Holder("r", "team"), "n", 0, 0, None, (DeviceShare("gpu-1", 1, "gpu-1::0"),))
    times = np.array([0, 10], np.int64)
    (use,), _ = pod_uses([replica], ["gpu-1"], times, np.array([[50, 70]], np.float32), [0, 20])
    assert use.values == [60.0]
