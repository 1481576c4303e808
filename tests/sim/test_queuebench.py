"""The queue benchmark counts what it says: use, waits and rounds of a life that is over. No time is asserted."""

from __future__ import annotations

import pytest
from msgspec import structs

from build.queue_loads import load, work
from shoal.sim.queue_life import QueueLife
from shoal.sim.queue_load import LoadBounds, QueueLoad
from shoal.sim.queuebench import BenchFigure, LoadFigures, crowded, figures_of, idle_round, rows_of
from shoal.units.errors import BugError


def measured(given: QueueLoad) -> LoadFigures:
    life = QueueLife(given)
    return figures_of(life, life.run(), 0.5)


def test_a_queue_that_is_never_idle_is_used_whole() -> None:
    figures = measured(load(work("full", 3, cores=4, every_ms=0)))
    assert figures.use_percent == 100
    assert figures.makespan_s == 0.6
    assert figures.wait_ms == {"full": 200.0}
    assert figures.workloads_per_s == 6


def test_use_is_that_of_the_queue_used_least() -> None:
    figures = measured(load(work("half", 2, cores=1, every_ms=400), cohorts=2, queues=2, cores=1))
    # 0 to 200 and 400 to 600 of 600 ms, in every queue.
    assert figures.use_percent == pytest.approx(66.67)
    assert (figures.batches, figures.admissions, figures.preemptions) == (4, 8, 0)


def test_what_is_lost_to_preemption_counts_as_admitted_twice() -> None:
    low = work("low", cores=4, runtime_ms=1_000)
    high = work("high", 2, cores=4, priority=10, every_ms=500, runtime_ms=200)
    figures = measured(load(low, high))
    assert (figures.admissions, figures.preemptions) == (4, 1)
    assert figures.wait_ms == {"low": 800.0, "high": 50.0}


def test_a_load_that_cannot_finish_is_no_figure() -> None:
    with pytest.raises(BugError, match="1 workloads of the load small never finished"):
        measured(load(work("too-wide", cores=5), work("fits")))


def test_an_idle_round_is_measured_where_many_wait_and_none_ends() -> None:
    waiting, seconds = idle_round(crowded(load(work("a", 20), work("b", 10, cores=4, priority=1), queues=3)), 3)
    # Each kind a tenth more, rounded up: 22 and 11 in each of three queues, and one wide one runs in each.
    assert waiting == 3 * (22 + 11 - 1)
    assert seconds >= 0


@pytest.mark.parametrize(
    ("row", "met"),
    [
        (BenchFigure("no bar", 1.0), True),
        (BenchFigure("at least", 1.0, least=1.0), True),
        (BenchFigure("at least", 0.9, least=1.0), False),
        (BenchFigure("at most", 1.0, most=1.0), True),
        (BenchFigure("at most", 1.1, most=1.0), False),
    ],
)
def test_a_figure_meets_its_bar_or_misses_it(row: BenchFigure, met: bool) -> None:
    assert row.is_met == met


def test_every_bound_of_a_load_stands_beside_its_figure() -> None:
    plain = load(work("a", 2), work("b"))
    bounds = LoadBounds(50, {"a": 2_000}, 9_000)
    theirs = LoadBounds(55.5, {"a": 1_500}, 8_000)
    held_to = structs.replace(plain, bounds=bounds, kueue=theirs, bar_cpu_s=10.0)
    rows = {row.title: (row.least, row.most, row.kueue) for row in rows_of(measured(plain), held_to)}
    assert {title: bars for title, bars in rows.items() if any(bars)} == {
        "processor time, every decision": (None, 10, 8),
        "workloads a second": (None, None, 3 / 8),
        "all finished after": (None, 9, 8),
        "use of the queue used least": (50, None, 55.5),
        "mean wait, a": (None, 2, 1.5),
    }
    assert all(row.is_met and row.least is None and row.most is None for row in rows_of(measured(plain), plain))
