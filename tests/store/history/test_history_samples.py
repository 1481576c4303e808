"""Samples of devices: nothing is invented, nothing counts twice, and old ones become means."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from random import Random

import numpy as np
import pytest

from build.depth import examples
from shoal.cost.records import DeviceShare, Holder, Holding
from shoal.store.history.file_tables import open_for_writing
from shoal.store.history.history import UsageHistory
from shoal.store.history.ledger import LedgerChanges
from shoal.store.history.memory_tables import MemoryTables
from shoal.store.history.recent_series import recent_series
from shoal.store.history.sample_blocks import METRICS, Block, decoded, encoded, joined
from shoal.store.history.samples import DAY_MS, MINUTE_MS, DeviceSample, Retention
from shoal.store.history.use_rows import use_key
from shoal.units.calendar_windows import HOUR_MS

START = 1_790_812_800_000


@pytest.fixture(params=["memory", "file"])
def history(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[UsageHistory]:
    made = UsageHistory(MemoryTables() if request.param == "memory" else open_for_writing(tmp_path))
    yield made
    made.close()


def _sample(device: str, util: float | None, sm: float | None = None) -> DeviceSample:
    return DeviceSample(device, [util, sm, *(None for _ in METRICS[2:])])


def _hold(
    history: UsageHistory, uid: str, device: str, start: int, end: int | None = None, team: str = "", space: str = "n"
) -> None:
    held = Holding(Holder(uid, space, team=team), "m", start, start, end, (DeviceShare(device),))
    history.ledger.write(LedgerChanges(START, holdings={uid: held}))


@pytest.mark.parametrize("seed", range(examples(5)))
def test_a_block_gives_back_what_was_put_into_it(seed: int) -> None:
    draw = np.random.default_rng(seed)
    devices = np.sort(draw.choice(5000, 20, replace=False)).astype(np.int32)
    times = START + np.sort(draw.choice(600_000, 40, replace=False)).astype(np.int64)
    values = (draw.integers(0, 200, (20, 40)) / 2).astype(np.float32)
    values[draw.random((20, 40)) < 0.2] = np.nan
    found = decoded("util", encoded("util", Block(devices, times, values)))
    assert np.array_equal(found.devices, devices)
    assert np.array_equal(found.times_ms, times)
    assert np.array_equal(found.values, values, equal_nan=True)


def test_blocks_of_different_devices_join_with_gaps() -> None:
    one = Block(np.array([1, 5], np.int32), np.array([10], np.int64), np.array([[1], [2]], np.float32))
    two = Block(np.array([3, 5], np.int32), np.array([5], np.int64), np.array([[7], [8]], np.float32))
    found = joined([one, two])
    assert found.devices.tolist() == [1, 3, 5]
    assert found.times_ms.tolist() == [5, 10]
    assert np.array_equal(found.values, np.array([[np.nan, 1], [7, np.nan], [8, 2]], np.float32), equal_nan=True)
    assert joined([]).values.shape == (0, 0)


def test_samples_are_read_before_and_after_they_are_compacted(history: UsageHistory) -> None:
    for at in range(80):
        history.samples.add(START + at * 15_000, [_sample("a", at), _sample("b", None, 0.5)])
    before = history.samples.series("util", START, START + HOUR_MS)
    history.samples.compact(START + 12 * MINUTE_MS)
    after = history.samples.series("util", START, START + HOUR_MS)
    for found in (before, after):
        assert found.devices == ["a", "b"]
        assert found.values[0].tolist() == [float(at) for at in range(80)]
        assert np.isnan(found.values[1]).all()


def test_a_sample_that_comes_twice_or_too_late_counts_once(history: UsageHistory) -> None:
    for _ in range(2):
        history.samples.add(START, [_sample("a", 40), _sample("a", 40)])
    history.samples.compact(START + HOUR_MS)
    history.samples.add(START + 15_000, [_sample("a", 90)])
    found = history.samples.series("util", START, START + HOUR_MS)
    assert found.values.tolist() == [[40.0]]


def test_use_of_a_holding_is_the_share_of_active_samples_and_the_mean(history: UsageHistory) -> None:
    _hold(history, "pod", "a", START + 10 * MINUTE_MS, START + 50 * MINUTE_MS)
    _hold(history, "other", "b", START)
    for at in range(240):
        util = 50 if at % 4 else 0
        history.samples.add(START + at * 15_000, [_sample("a", util), _sample("b", 0)])
    history.samples.compact(START + HOUR_MS)
    found = history.samples.uses(START, START + HOUR_MS)
    (mine,) = found[use_key("pod")]
    assert (mine.start_ms, mine.end_ms) == (START + 10 * MINUTE_MS, START + 50 * MINUTE_MS)
    assert abs(mine.active_ppm - 750_000) < 20
    assert abs(mine.used_ppm - 375_000) < 20
    (other,) = found[use_key("other")]
    assert (other.active_ppm, other.used_ppm) == (0, 0)


def test_devices_are_forgotten_with_their_last_samples_and_numbers_stay_unique(history: UsageHistory) -> None:
    made = UsageHistory(history.tables, Retention(hour_ms=10 * DAY_MS))
    made.samples.add(START, [_sample("old", 10), _sample("kept", 10)])
    for day in range(1, 14):
        made.samples.add(START + day * DAY_MS, [_sample("kept", 20)])
        for hour in range(25):
            made.samples.compact(START + day * DAY_MS + hour * HOUR_MS)
    assert {row.key for row in made.tables.overlapping("device", -1, 1 << 61)} == {"kept"}
    made.samples.add(START + 15 * DAY_MS, [_sample("new", 30), _sample("kept", 40)])
    found = made.samples.series("util", START + 15 * DAY_MS, START + 15 * DAY_MS + HOUR_MS)
    assert dict(zip(found.devices, found.values[:, 0].tolist(), strict=True)) == {"new": 30.0, "kept": 40.0}


def test_the_use_of_the_pod_before_on_the_device_is_not_counted_for_the_next(history: UsageHistory) -> None:
    change = START + 12 * MINUTE_MS
    _hold(history, "busy", "a", START, change)
    _hold(history, "idle", "a", change)
    for at in range(0, HOUR_MS, 15_000):
        history.samples.add(START + at, [_sample("a", 100 if START + at < change else 0)])
    history.samples.compact(START + HOUR_MS)
    found = history.samples.uses(START, START + HOUR_MS)
    assert {(one.active_ppm, one.used_ppm) for one in found[use_key("busy")]} == {(1_000_000, 1_000_000)}
    assert {(one.active_ppm, one.used_ppm) for one in found[use_key("idle")]} == {(0, 0)}


def test_use_of_the_current_hour_is_known_before_it_is_compacted(history: UsageHistory) -> None:
    _hold(history, "pod", "a", START)
    for at in range(0, 100 * MINUTE_MS, 15_000):
        history.samples.add(START + at, [_sample("a", 40)])
        if at % (10 * MINUTE_MS) == 0:
            history.samples.compact(START + at)
    (found,) = history.samples.uses(START, START + 100 * MINUTE_MS)[use_key("pod")]
    assert (found.start_ms, found.end_ms, found.active_ppm) == (START, START + 100 * MINUTE_MS, 1_000_000)
    assert history.samples.team_hours(START, START + 2 * HOUR_MS)[""].held.round(2).tolist() == [1, 0.67]


def test_sm_activity_says_more_than_utilisation_where_it_is_measured(history: UsageHistory) -> None:
    _hold(history, "pod", "a", START)
    for at in range(240):
        history.samples.add(START + at * 15_000, [_sample("a", 100, 0.25)])
    history.samples.compact(START + HOUR_MS)
    (found,) = history.samples.uses(START, START + HOUR_MS)[use_key("pod")]
    assert abs(found.used_ppm - 250_000) < 20


def test_time_without_samples_has_no_use(history: UsageHistory) -> None:
    _hold(history, "pod", "a", START)
    for at in [*range(40), *range(120, 160)]:
        history.samples.add(START + at * 15_000, [_sample("a", 80)])
    history.samples.compact(START + HOUR_MS)
    found = history.samples.uses(START, START + HOUR_MS)[use_key("pod")]
    minutes = [((one.start_ms - START) // MINUTE_MS, (one.end_ms - START) // MINUTE_MS) for one in found]
    assert minutes == [(0, 10), (30, 40)]


def test_hours_in_a_row_are_one_record_of_use_and_days_divide_it(history: UsageHistory) -> None:
    _hold(history, "pod", "a", START)
    for at in range(0, 6 * HOUR_MS, MINUTE_MS):
        history.samples.add(START + at, [_sample("a", 50)])
    history.samples.compact(START + 6 * HOUR_MS)
    whole = history.samples.uses(START, START + 6 * HOUR_MS)[use_key("pod")]
    assert [(one.start_ms, one.end_ms) for one in whole] == [(START, START + 6 * HOUR_MS)]
    days = [START, START + 2 * HOUR_MS]
    divided = history.samples.uses(START, START + 6 * HOUR_MS, days)[use_key("pod")]
    assert [one.end_ms - one.start_ms for one in divided] == [2 * HOUR_MS, 4 * HOUR_MS]
    (inside,) = history.records(START, START + 6 * HOUR_MS).holdings
    assert inside.uses == tuple(whole)


def test_old_samples_become_means_and_the_oldest_are_deleted() -> None:
    history = UsageHistory(MemoryTables(), Retention(raw_ms=2 * HOUR_MS, five_ms=4 * HOUR_MS, hour_ms=8 * HOUR_MS))
    for at in range(0, 10 * HOUR_MS, 150_000):
        history.samples.add(START + at, [_sample("a", 20), _sample("b", 60)])
        history.samples.compact(START + at)
    tables = history.tables
    oldest = [tables.oldest(table) for table in ("raw", "five", "hour", "use")]
    assert [None if one is None else (one - START) // HOUR_MS for one in oldest[1:3]] == [5, 1]
    assert oldest[0] is not None
    assert oldest[0] >= START + 7 * HOUR_MS
    means = history.samples.series("util", START, START + 10 * HOUR_MS)
    assert set(means.values[0].tolist()) <= {20.0}
    assert len(means.times_ms) >= 8


def test_the_disk_is_bounded_and_the_ledger_stays(tmp_path: Path) -> None:
    draw = Random(1)
    history = UsageHistory(open_for_writing(tmp_path), Retention(most_bytes=400_000))
    _hold(history, "pod", "d0", START)
    for at in range(0, 6 * HOUR_MS, 60_000):
        history.samples.add(START + at, [_sample(f"d{n}", draw.randint(0, 100)) for n in range(200)])
        if at % HOUR_MS == 0:
            history.samples.compact(START + at)
    history.samples.compact(START + 2 * DAY_MS)
    assert (tmp_path / "history.db").stat().st_size < 2_000_000
    assert history.ledger.holdings(START, START + HOUR_MS)
    history.close()


def test_hours_of_teams_are_resolved_when_samples_are_compacted(history: UsageHistory) -> None:
    _hold(history, "pod", "a", START, START + 90 * MINUTE_MS)
    for at in range(0, 2 * HOUR_MS, MINUTE_MS):
        history.samples.add(START + at, [_sample("a", 50 if at < HOUR_MS else 0)])
    history.samples.compact(START + 2 * HOUR_MS)
    (found,) = history.samples.team_hours(START, START + 3 * HOUR_MS).values()
    assert found.held.round(3).tolist() == [1, 0.5, 0]
    assert found.active.round(3).tolist() == [1, 0, 0]
    assert found.used.round(3).tolist() == [0.5, 0, 0]


def test_the_mean_power_of_a_device_is_known_where_it_was_measured(history: UsageHistory) -> None:
    power = METRICS.index("power")
    for at, watts in enumerate((300.0, None, 500.0)):
        values = [None] * power + [watts] + [None] * (len(METRICS) - power - 1)
        history.samples.add(START + at * 15_000, [DeviceSample("a", values), _sample("b", 5)])
    assert history.samples.power(START, START + HOUR_MS) == {"a": 400.0}
    assert math.isclose(history.samples.series("power", START, START + HOUR_MS).values[0][0], 300)


def test_the_team_of_a_tenant_that_is_forgotten_is_in_no_record_of_use(tmp_path: Path) -> None:
    history = UsageHistory(open_for_writing(tmp_path))
    _hold(history, "mine", "a", START, team="red-team", space="red-team")
    _hold(history, "other", "b", START, team="blue", space="blue")
    for at in range(0, 2 * HOUR_MS, MINUTE_MS):
        history.samples.add(START + at, [_sample("a", 50), _sample("b", 20)])
    history.samples.compact(START + 2 * HOUR_MS)
    uses = history.samples.uses(START, START + 2 * HOUR_MS)
    assert history.forget("red-team") == 1
    assert history.forget("red-team") == 0
    found = history.samples.team_hours(START, START + 2 * HOUR_MS)
    assert {name: one.held.round(3).tolist() for name, one in found.items()} == {"": [1, 1], "blue": [1, 1]}
    assert history.samples.uses(START, START + 2 * HOUR_MS) == uses
    history.close()
    assert b"red-team" not in (tmp_path / "history.db").read_bytes()


def test_a_clock_that_jumps_for_one_pass_costs_no_samples(history: UsageHistory) -> None:
    for at in range(0, 3 * HOUR_MS, MINUTE_MS):
        history.samples.add(START + at, [_sample("a", 50)])
        history.samples.compact(START + at)
    year = 365 * DAY_MS
    history.samples.add(START + 3 * year, [_sample("a", 50)])
    history.samples.compact(START + 3 * year)
    for at in range(3 * HOUR_MS, 6 * HOUR_MS, MINUTE_MS):
        history.samples.add(START + at, [_sample("a", 50)])
        history.samples.compact(START + at)
    found = history.samples.series("util", START, START + 6 * HOUR_MS)
    assert len(found.times_ms) == 6 * HOUR_MS // MINUTE_MS


def test_after_a_pause_what_is_too_old_is_deleted_step_by_step(history: UsageHistory) -> None:
    history.samples.add(START, [_sample("a", 50)])
    for at in range(0, 4 * DAY_MS, DAY_MS):
        history.samples.compact(START + at)
    assert len(history.samples.series("util", START, START + HOUR_MS).times_ms) == 1
    for minute in range(80):
        history.samples.compact(START + 4 * DAY_MS + minute * MINUTE_MS)
    assert history.tables.oldest("raw") is None


def test_a_history_that_is_younger_than_the_window_is_read_in_its_finest_level(history: UsageHistory) -> None:
    for at in range(8):
        history.samples.add(START + 30 * MINUTE_MS + at * MINUTE_MS, [_sample("a", 50.0)])
    found = history.samples.series("util", START - HOUR_MS, START + HOUR_MS)
    assert found.values[0].tolist() == [50.0] * 8


def test_samples_of_the_last_hours_follow_the_means_of_a_long_window(history: UsageHistory) -> None:
    for at in range(130):
        history.samples.add(START + at * MINUTE_MS, [_sample("a", 10.0 if at < 120 else 80.0)])
    now = START + 130 * MINUTE_MS
    for is_compacted in (False, True):
        if is_compacted:
            history.samples.compact(now)
        found = recent_series(history.samples, "util", START - 20 * HOUR_MS, now)
        assert found.devices == ["a"]
        assert found.times_ms[-1] == START + 129 * MINUTE_MS
        assert found.values[0][-10:].tolist() == [80.0] * 10
        assert found.values[0][0] == 10.0
    # Two hours of means and ten samples.
    assert len(found.times_ms) == 24 + 10
