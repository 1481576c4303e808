"""Use of queues over time: windows, decay, and a record that continues after a restart as if there had been none."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import datetime
from random import Random

import pytest

from build.depth import seeds
from shoal.engine.queues.disciplines.kai.usage_record import (
    CRON,
    TUMBLING,
    QueueUse,
    UsageRecord,
    UsageWindow,
)
from shoal.engine.queues.disciplines.kai.usage_text import usage_state, usage_text
from shoal.units.schedules import read_schedule

CAPACITY = (10_000, 100_000, 1 << 40)
HOUR_S = 3600.0


def use(queue: str, gpus: float, since_s: float = 0.0, until_s: float | None = None, parent: str = "") -> QueueUse:
    path = (queue, parent) if parent else (queue,)
    return QueueUse(path, (round(gpus * 1000), 0, 0), since_s, until_s)


def gpu(record: UsageRecord, queue: str) -> float:
    return record.usage().get(queue, (0.0,))[0]


def steady(record: UsageRecord, begin_s: float, end_s: float, *uses: QueueUse, every_s: float = 60) -> None:
    """The same pods, measured again and again."""
    now_s = begin_s
    while now_s <= end_s:
        record.measure(uses, CAPACITY, now_s)
        now_s += every_s


def test_the_first_measurement_only_begins_the_record() -> None:
    record = UsageRecord(UsageWindow())
    record.measure([use("a", 5)], CAPACITY, 1000)
    assert record.usage() == {}


def test_use_is_a_part_of_what_the_cluster_had_to_offer_meanwhile() -> None:
    record = UsageRecord(UsageWindow())
    steady(record, 0, 10 * HOUR_S, use("a", 2.4, parent="all"), use("b", 1, parent="all"))
    assert gpu(record, "a") == pytest.approx(0.24)
    assert gpu(record, "all") == pytest.approx(0.34)


def test_a_pod_counts_from_its_start_until_its_end() -> None:
    record = UsageRecord(UsageWindow())
    record.measure([], CAPACITY, 0)
    record.measure([use("a", 10, since_s=25, until_s=75)], CAPACITY, 100)
    assert gpu(record, "a") == pytest.approx(0.5)


def test_what_left_a_sliding_window_is_forgotten() -> None:
    record = UsageRecord(UsageWindow(size_s=HOUR_S))
    steady(record, 0, HOUR_S, use("a", 10))
    assert gpu(record, "a") == pytest.approx(1)
    steady(record, HOUR_S + 60, 1.5 * HOUR_S)
    assert gpu(record, "a") == pytest.approx(0.5, abs=0.01)
    steady(record, 1.5 * HOUR_S + 60, 2.1 * HOUR_S)
    assert record.usage() == {}


def test_a_window_that_tumbles_starts_again_with_nothing() -> None:
    record = UsageRecord(UsageWindow(TUMBLING, HOUR_S, first_s=0.0))
    steady(record, 0, HOUR_S - 60, use("a", 10))
    assert gpu(record, "a") == pytest.approx(1)
    steady(record, HOUR_S, HOUR_S + 600)
    assert gpu(record, "a") == 0.0
    steady(record, HOUR_S + 660, HOUR_S + 1200, use("a", 10, since_s=HOUR_S + 600))
    assert gpu(record, "a") == pytest.approx(0.5)


def test_without_a_start_windows_tumble_from_the_first_measurement() -> None:
    record = UsageRecord(UsageWindow(TUMBLING, HOUR_S))
    steady(record, 900, 900 + HOUR_S - 60, use("a", 10))
    assert gpu(record, "a") == pytest.approx(1)
    steady(record, 900 + HOUR_S, 900 + HOUR_S + 60)
    assert gpu(record, "a") == 0.0


def test_a_schedule_says_when_windows_begin() -> None:
    record = UsageRecord(UsageWindow(CRON, schedule=read_schedule("0 * * * *")))
    steady(record, 600, 3540, use("a", 10))
    assert gpu(record, "a") == pytest.approx(1)
    steady(record, 3600, 4200)
    assert gpu(record, "a") == 0.0


def test_use_of_one_half_life_ago_counts_half_as_much() -> None:
    half_life_s = 10 * HOUR_S
    record = UsageRecord(UsageWindow(half_life_s=half_life_s))
    steady(record, 0, 60, use("old", 1))
    steady(record, 120, half_life_s)
    steady(record, half_life_s + 60, half_life_s + 120, use("new", 1))
    assert gpu(record, "old") / gpu(record, "new") == pytest.approx(0.25, rel=0.05)


def test_a_constant_use_is_the_same_with_any_half_life() -> None:
    for half_life_s in (60.0, HOUR_S, 100 * HOUR_S):
        record = UsageRecord(UsageWindow(half_life_s=half_life_s))
        steady(record, 0, 6 * HOUR_S, use("a", 3))
        assert gpu(record, "a") == pytest.approx(0.3, rel=1e-4)


@pytest.mark.parametrize("seed", seeds(8))
def test_decay_is_that_of_a_sum_over_every_second(seed: int) -> None:
    draw = Random(seed)
    half_life_s, size_s = draw.choice([0.0, 200.0, 900.0]), draw.choice([600.0, 4000.0])
    record = UsageRecord(UsageWindow(size_s=size_s, half_life_s=half_life_s))
    held = [0] * 2000
    record.measure([], CAPACITY, 0)
    for begin in range(0, 2000, 50):
        gpus = draw.randint(0, 8)
        held[begin : begin + 50] = [gpus] * 50
        record.measure([use("a", gpus)] if gpus else [], CAPACITY, begin + 50)
    wanted = capacity = 0.0
    for second, gpus in enumerate(held):
        if 2000 - second <= size_s:
            weight = 0.5 ** ((2000 - second - 0.5) / half_life_s) if half_life_s else 1.0
            wanted += gpus * weight
            capacity += 10 * weight
    assert gpu(record, "a") == pytest.approx(wanted / capacity, abs=0.01)


def test_a_record_has_at_most_two_hundred_buckets_and_a_few() -> None:
    record = UsageRecord(UsageWindow())
    steady(record, 0, 30 * 86_400, use("a", 1), every_s=1800)
    assert record.state is not None
    assert len(record.state.buckets) <= 202


def test_a_clock_that_goes_back_measures_nothing() -> None:
    record = UsageRecord(UsageWindow())
    steady(record, 0, 600, use("a", 5))
    before = usage_text(record)
    record.measure([use("a", 5)], CAPACITY, 300)
    assert usage_text(record) == before


def test_a_record_that_is_too_long_is_made_coarser_until_it_fits() -> None:
    record = UsageRecord(UsageWindow())
    for at in range(300):
        record.measure([use(f"q{number}", number % 7 + 1) for number in range(60)], CAPACITY, at * 4000)
    before = record.usage()
    text = usage_text(record, 20_000)
    assert 0 < len(text) <= 20_000
    assert usage_state(text) == record.state
    for queue, amounts in record.usage().items():
        assert amounts[0] == pytest.approx(before[queue][0], rel=0.02)


@pytest.mark.parametrize("text", ["", "!", "eNo=", "eNqrVkrLz1eyUkpKLFKqBQAjfQRj"])
def test_a_text_that_is_no_record_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        usage_state(text)


def test_what_a_clock_that_ran_ahead_measured_is_forgotten() -> None:
    record = UsageRecord(UsageWindow())
    steady(record, 0, 10 * HOUR_S, use("a", 5))
    before = gpu(record, "a")
    record.measure([use("b", 10)], CAPACITY, 30 * HOUR_S)
    record.forget_after(10 * HOUR_S)
    assert record.state is not None
    assert record.state.until_s == 10 * HOUR_S
    assert gpu(record, "a") == pytest.approx(before, rel=0.01)
    steady(record, 10 * HOUR_S, 20 * HOUR_S, use("a", 5))
    assert gpu(record, "a") == pytest.approx(0.5, rel=0.01)


@pytest.mark.parametrize(
    "window", [UsageWindow(TUMBLING, HOUR_S), UsageWindow(CRON, schedule=read_schedule("0 * * * *"))]
)
def test_the_window_that_a_clock_ran_into_is_not_the_current_one(window: UsageWindow) -> None:
    record = UsageRecord(window)
    steady(record, 0, HOUR_S / 2, use("a", 5))
    record.measure([], CAPACITY, 30 * HOUR_S)
    record.forget_after(HOUR_S / 2)
    steady(record, HOUR_S / 2, HOUR_S - 60, use("a", 5))
    assert gpu(record, "a") == pytest.approx(0.5, rel=0.01)


@pytest.mark.parametrize("half_life_s", [0.0, 60.0])
def test_a_long_window_of_a_schedule_has_few_buckets(half_life_s: float) -> None:
    record = UsageRecord(UsageWindow(CRON, half_life_s=half_life_s, schedule=read_schedule("0 0 1 * *")))
    begin_s = 1_767_225_600.0
    steady(record, begin_s, begin_s + 20 * 86_400, use("a", 1), every_s=12 * HOUR_S)
    steady(record, begin_s + 20 * 86_400, begin_s + 20 * 86_400 + HOUR_S, use("a", 1))
    assert record.state is not None
    assert len(record.state.buckets) <= 402
    assert gpu(record, "a") == pytest.approx(0.1, rel=0.01)


class _Counted:
    """A schedule that counts how often it is asked."""

    def __init__(self, text: str) -> None:
        self.asked = 0
        self._inner = read_schedule(text)

    def next(self, after: datetime) -> datetime | None:
        self.asked += 1
        return self._inner.next(after)


def test_the_window_of_a_schedule_is_found_at_once_after_years() -> None:
    schedule = _Counted("* * * * *")
    record = UsageRecord(UsageWindow(CRON, first_s=0.0, schedule=schedule))
    record.measure([], CAPACITY, 1_000_000_000)
    record.measure([use("a", 5)], CAPACITY, 1_700_000_030)
    record.measure([use("a", 5)], CAPACITY, 1_700_000_035)
    assert schedule.asked < 50
    assert gpu(record, "a") == pytest.approx(0.5)


def test_times_that_no_calendar_has_are_refused() -> None:
    record = UsageRecord(UsageWindow())
    record.measure([], CAPACITY, 1000)
    assert record.state is not None
    record.state.window_s = 1 << 60
    with pytest.raises(ValueError, match="between 1970 and 9999"):
        usage_state(usage_text(record))


# -- restarts ----------------------------------------------------------------------------------------------------------


class _World:
    """Pods that start and end in whole seconds, and a capacity that changes between measurements."""

    def __init__(self, draw: Random) -> None:
        self.draw = draw
        self.now_s = 1_700_000_000
        self.running: dict[int, QueueUse] = {}
        self._pods = 0

    def changes(self, *, may_end: bool) -> Iterator[QueueUse]:
        """Time passes; yields what ended in it."""
        for _ in range(self.draw.randint(1, 4)):
            self.now_s += self.draw.randint(1, 4000)
            if self.draw.random() < 0.6 or not self.running:
                self._pods += 1
                queue = self.draw.choice("abc")
                amounts = (self.draw.randint(0, 8) * 125, self.draw.randint(0, 9), self.draw.randint(0, 1 << 38))
                self.running[self._pods] = QueueUse((queue, "top"), amounts, float(self.now_s))
            elif may_end:
                ended = self.running.pop(self.draw.choice([*self.running]))
                yield ended._replace(until_s=float(self.now_s))


@pytest.mark.parametrize("seed", seeds(12))
def test_the_record_after_a_restart_is_that_without_one(seed: int) -> None:
    draw = Random(seed)
    window = UsageWindow(
        draw.choice(["sliding", "tumbling"]), draw.choice([3600.0, 86_400.0]), draw.choice([0.0, 1800.0])
    )
    world, capacity = _World(draw), (8000, 64_000, 1 << 40)
    steadily, restarted = UsageRecord(window), UsageRecord(window)
    ended: list[QueueUse] = []
    saved = ""
    for _ in range(25):
        is_restart = draw.random() < 0.3
        # What ends while no process measures is lost: nothing does here.
        ended += world.changes(may_end=not is_restart)
        if is_restart:
            restarted = UsageRecord(window, usage_state(saved) if saved else None)
        for record in (steadily, restarted):
            record.measure([*world.running.values(), *ended], capacity, world.now_s)
        ended.clear()
        usage_text(steadily)
        saved = usage_text(restarted)
        assert restarted.state == steadily.state
        assert restarted.usage() == steadily.usage()
    assert any(math.isfinite(amount) and amount > 0 for amounts in steadily.usage().values() for amount in amounts)
