"""One suite for every reader of samples: the history's own, and a Prometheus server, simulated and real."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from time import monotonic

import numpy as np
import pytest

from build.fake_prometheus import FakePrometheus, serving
from build.recorded_prometheus import recorded_prometheus
from shoal.cost.records import FULL_SHARE, DeviceShare, Holder, Holding
from shoal.prometheus.promql.series import LabelledValue, SeriesStore
from shoal.store.history.dcgm_samples import FIELDS
from shoal.store.history.history import UsageHistory
from shoal.store.history.ledger import LedgerChanges
from shoal.store.history.measured import measured_jobs
from shoal.store.history.memory_tables import MemoryTables
from shoal.store.history.prometheus_samples import prometheus_reader
from shoal.store.history.prometheus_server import PrometheusAddress
from shoal.store.history.recent_series import recent_series
from shoal.store.history.sample_blocks import METRICS
from shoal.store.history.samples import DAY_MS, MINUTE_MS, DeviceSample
from shoal.store.history.use_rows import use_key
from shoal.units.calendar_windows import HOUR_MS, TimeWindow

START = 1_790_812_800_000
EVERY_MS = 15_000


class Recorded:
    """What pods held, and what the exporter said."""

    def __init__(self) -> None:
        self.tables = MemoryTables()
        self.samples: dict[int, list[tuple[str, str, str, str, dict[str, float]]]] = {}
        self.holdings: dict[str, Holding] = {}

    def hold(self, uid: str, device: str, start: int, end: int | None = None, part: str = "") -> None:
        share = DeviceShare(device, FULL_SHARE // 2 if part else FULL_SHARE, part)
        self.holdings[uid] = Holding(Holder(uid, "n", job=uid), "m", start, start, end, (share,))

    def say(self, at: int, device: str, pod: str = "", instance: str = "", part: str = "", **values: float) -> None:
        self.samples.setdefault(at, []).append((device, pod, instance, part, values))

    def history(self, reader: Callable[[UsageHistory], UsageHistory]) -> UsageHistory:
        made = UsageHistory(self.tables)
        made.ledger.write(LedgerChanges(START + 60 * DAY_MS, holdings=self.holdings))
        return reader(made)

    def embedded(self, history: UsageHistory) -> UsageHistory:
        for at, found in sorted(self.samples.items()):
            rows = [
                DeviceSample(part or device, [values.get(name) for name in METRICS])
                for device, _, _, part, values in found
            ]
            history.samples.add(at, rows)
        last = max(self.samples, default=START)
        history.samples.compact((last // HOUR_MS + 1) * HOUR_MS)
        return history

    def series(self) -> Iterator[tuple[int, str, dict[str, str], float]]:
        for at, found in sorted(self.samples.items()):
            for device, pod, instance, _, values in found:
                of_pod = {"exported_namespace": "n", "exported_pod": pod} if pod else {}
                labels = {"UUID": device, "GPU_I_ID": instance, "pod": "exporter", "namespace": "gpu", **of_pod}
                for metric, value in values.items():
                    yield at, FIELDS[metric][0], {name: value for name, value in labels.items() if value}, value

    def store(self) -> SeriesStore:
        store = SeriesStore(dict.fromkeys((one for names in FIELDS.values() for one in names), 60 * DAY_MS))
        by_time: dict[int, list[LabelledValue]] = {}
        for at, name, labels, value in self.series():
            by_time.setdefault(at, []).append(LabelledValue(name, store.label_sets.of(labels), value))
        for at, values in by_time.items():
            store.scrape("exporter", at, values)
        return store

    def text(self) -> str:
        lines: dict[str, list[str]] = {}
        for at, name, labels, value in self.series():
            words = ",".join(f'{key}="{one}"' for key, one in labels.items())
            lines.setdefault(name, []).append(f"{name}{{{words}}} {value} {at // 1000}\n")
        return "".join(line for of_name in lines.values() for line in of_name)


Reading = Callable[[Recorded], UsageHistory]
_REAL = pytest.param("real", marks=pytest.mark.external("prometheus", "promtool"))


@pytest.fixture(params=["embedded", "simulated", _REAL])
def read(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Reading]:
    with ExitStack() as stack:

        def reading(recorded: Recorded) -> UsageHistory:
            if request.param == "embedded":
                return recorded.history(recorded.embedded)
            if request.param == "simulated":
                url = stack.enter_context(serving(FakePrometheus(recorded.store())))
            else:
                url = stack.enter_context(recorded_prometheus(tmp_path, recorded.text()))
            reader = prometheus_reader(PrometheusAddress(url), monotonic)
            return recorded.history(lambda _: UsageHistory(recorded.tables, reader=reader))

        yield reading


def test_use_of_a_holding_is_the_part_of_active_samples_and_the_mean(read: Reading) -> None:
    recorded = Recorded()
    recorded.hold("pod", "GPU-a", START + 10 * MINUTE_MS, START + 50 * MINUTE_MS)
    recorded.hold("other", "GPU-b", START)
    for at in range(START, START + HOUR_MS, EVERY_MS):
        mine = "pod" if START + 10 * MINUTE_MS <= at < START + 50 * MINUTE_MS else ""
        recorded.say(at, "GPU-a", mine, util=50 if at // EVERY_MS % 4 else 0)
        recorded.say(at, "GPU-b", "other", util=0)
    history = read(recorded)
    found = history.measured.uses(START, START + HOUR_MS)
    (mine_,) = found[use_key("pod")]
    assert (mine_.start_ms, mine_.end_ms) == (START + 10 * MINUTE_MS, START + 50 * MINUTE_MS)
    assert abs(mine_.active_ppm - 750_000) < 200
    assert abs(mine_.used_ppm - 375_000) < 200
    (other,) = found[use_key("other")]
    assert (other.start_ms, other.end_ms) == (START, START + HOUR_MS)
    assert (other.active_ppm, other.used_ppm) == (0, 0)
    assert not history.measured.notes()


def test_the_use_of_the_pod_before_on_the_device_is_not_counted_for_the_next(read: Reading) -> None:
    recorded, change = Recorded(), START + 12 * MINUTE_MS
    recorded.hold("busy", "GPU-a", START, change)
    recorded.hold("idle", "GPU-a", change)
    for at in range(START, START + HOUR_MS, EVERY_MS):
        recorded.say(at, "GPU-a", "busy" if at < change else "idle", util=100 if at < change else 0)
    found = read(recorded).measured.uses(START, START + HOUR_MS)
    assert {(one.active_ppm, one.used_ppm) for one in found[use_key("busy")]} == {(1_000_000, 1_000_000)}
    assert {(one.active_ppm, one.used_ppm) for one in found[use_key("idle")]} == {(0, 0)}


def test_an_exporter_that_names_no_pods_is_believed_about_whole_intervals(read: Reading) -> None:
    recorded = Recorded()
    recorded.hold("pod", "GPU-a", START + 10 * MINUTE_MS, START + 50 * MINUTE_MS)
    for at in range(START, START + HOUR_MS, EVERY_MS):
        recorded.say(at, "GPU-a", util=40)
    (found,) = read(recorded).measured.uses(START, START + HOUR_MS)[use_key("pod")]
    assert (found.start_ms, found.end_ms) == (START + 10 * MINUTE_MS, START + 50 * MINUTE_MS)
    assert abs(found.used_ppm - 400_000) < 20


def test_activity_of_multiprocessors_says_more_than_utilisation_where_it_is_measured(read: Reading) -> None:
    recorded = Recorded()
    recorded.hold("pod", "GPU-a", START)
    for at in range(START, START + HOUR_MS, EVERY_MS):
        recorded.say(at, "GPU-a", "pod", util=100, sm=0.25)
    (found,) = read(recorded).measured.uses(START, START + HOUR_MS)[use_key("pod")]
    assert abs(found.used_ppm - 250_000) < 20
    assert found.active_ppm == 1_000_000


def test_time_without_samples_has_no_use(read: Reading) -> None:
    recorded = Recorded()
    recorded.hold("pod", "GPU-a", START)
    for first, end in ((0, 10), (30, 40)):
        for at in range(START + first * MINUTE_MS, START + end * MINUTE_MS, EVERY_MS):
            recorded.say(at, "GPU-a", "pod", util=80)
    found = read(recorded).measured.uses(START, START + HOUR_MS)[use_key("pod")]
    minutes = [((one.start_ms - START) // MINUTE_MS, (one.end_ms - START) // MINUTE_MS) for one in found]
    assert minutes == [(0, 10), (30, 40)]


def test_days_divide_the_records_of_use(read: Reading) -> None:
    recorded = Recorded()
    recorded.hold("pod", "GPU-a", START)
    for at in range(START, START + 3 * HOUR_MS, MINUTE_MS):
        recorded.say(at, "GPU-a", "pod", util=50)
    history = read(recorded)
    found = history.measured.uses(START, START + 3 * HOUR_MS, [START, START + HOUR_MS])[use_key("pod")]
    assert [one.end_ms - one.start_ms for one in found] == [HOUR_MS, 2 * HOUR_MS]
    (inside,) = history.records(START, START + 3 * HOUR_MS).holdings
    assert [one.end_ms - one.start_ms for one in inside.uses] == [3 * HOUR_MS]


def test_a_window_of_weeks_has_means_of_hours(read: Reading) -> None:
    recorded = Recorded()
    recorded.hold("pod", "GPU-a", START, START + 3 * HOUR_MS)
    for at in range(START, START + 2 * HOUR_MS, MINUTE_MS):
        recorded.say(at, "GPU-a", "pod", util=50 if at < START + HOUR_MS else 0, power=400)
    history = read(recorded)
    end = START + 8 * DAY_MS
    series = history.measured.series("util", START, end)
    assert series.devices == ["GPU-a"]
    assert dict(zip(series.times_ms.tolist(), series.values[0].tolist(), strict=True)) == {
        START: 50.0,
        START + HOUR_MS: 0.0,
    }
    (found,) = history.measured.uses(START, end)[use_key("pod")]
    assert (found.start_ms, found.end_ms) == (START, START + 2 * HOUR_MS)
    assert abs(found.active_ppm - 500_000) < 10_000
    assert abs(found.used_ppm - 250_000) < 20
    assert history.measured.power(START, end) == {"GPU-a": 400.0}


def test_a_mig_instance_is_found_by_the_pod_that_holds_it(read: Reading) -> None:
    recorded = Recorded()
    recorded.hold("one", "GPU-a", START, part="MIG-1")
    recorded.hold("two", "GPU-a", START, part="MIG-2")
    for at in range(START, START + HOUR_MS, EVERY_MS):
        recorded.say(at, "GPU-a", util=100)
        recorded.say(at, "GPU-a", "one", "3", "MIG-1", sm=0.5, util=0, memory=4096)
        recorded.say(at, "GPU-a", "two", "5", "MIG-2", sm=0, util=0, memory=1024)
    history = read(recorded)
    found = history.measured.uses(START, START + HOUR_MS)
    assert {one.used_ppm // 1000 for one in found[use_key("one")]} == {500}
    assert {one.active_ppm for one in found[use_key("two")]} == {0}
    memory = history.measured.series("memory", START, START + 8 * HOUR_MS)
    known = {name: np.nan_to_num(values).max() for name, values in zip(memory.devices, memory.values, strict=True)}
    assert (known["MIG-1"], known["MIG-2"]) == (4096.0, 1024.0)
    records = history.records(START, START + HOUR_MS)
    jobs = measured_jobs(history, records, TimeWindow(START, START + HOUR_MS))
    assert {name: float(one.memory_gib) for name, one in jobs.items()} == {"n/one": 4.0, "n/two": 1.0}


def test_of_errors_the_largest_number_is_kept(read: Reading) -> None:
    recorded = Recorded()
    recorded.hold("pod", "GPU-a", START)
    for at in range(START, START + HOUR_MS, EVERY_MS):
        recorded.say(at, "GPU-a", "pod", util=1, xid=79 if at == START + 20 * MINUTE_MS else 0)
    series = read(recorded).measured.series("xid", START, START + 12 * HOUR_MS)
    assert series.values[0].tolist() == [79.0 if at == 4 else 0.0 for at in range(12)]


def test_the_last_minutes_of_a_long_window_are_drawn(read: Reading) -> None:
    recorded = Recorded()
    recorded.hold("pod", "GPU-a", START)
    end = START + 2 * HOUR_MS + 10 * MINUTE_MS
    for at in range(START, end, MINUTE_MS):
        recorded.say(at, "GPU-a", "pod", util=10 if at < end - 10 * MINUTE_MS else 80)
    found = recent_series(read(recorded).measured, "util", START - 20 * HOUR_MS, end)
    assert found.values[0][0] == 10.0
    assert found.values[0][-1] == 80.0
    assert found.times_ms[-1] >= end - 5 * MINUTE_MS


def test_a_window_without_samples_has_no_use_and_no_devices(read: Reading) -> None:
    recorded = Recorded()
    recorded.hold("pod", "GPU-a", START)
    if shutil.which("promtool"):
        recorded.say(START - DAY_MS, "GPU-z", util=5)
    history = read(recorded)
    assert history.measured.uses(START, START + HOUR_MS) == {}
    assert history.measured.series("util", START, START + HOUR_MS).values.size == 0
    assert history.measured.power(START, START + HOUR_MS) == {}
