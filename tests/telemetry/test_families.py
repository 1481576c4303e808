"""Counting is cheap, bounded, and refused where Prometheus would refuse it."""

from __future__ import annotations

import logging
import math
from timeit import repeat

import pytest

from shoal.prometheus.exposition import text_of
from shoal.prometheus.families import OTHERS, MetricHead, exponential
from shoal.prometheus.registry import Registry


def test_too_many_values_of_a_label_are_counted_together() -> None:
    registry = Registry()
    family = registry.counter("calls_total", "Calls.", ("who", "how"), most=3)
    for who in "abcde":
        family.of(who, "twice").inc(2)
    family.of("a", "twice").inc()
    found = {values: cell.value for values, cell in family}
    assert found == {("a", "twice"): 3, ("b", "twice"): 2, (OTHERS, OTHERS): 6}


def test_a_place_that_is_given_up_is_free_for_others() -> None:
    family = Registry().gauge("rooms", "Rooms.", ("who",), most=2)
    family.of("a").set(1)
    family.forget("a")
    family.of("b").set(2)
    assert [values for values, _ in family] == [("b",)]


def test_who_asks_again_counts_on() -> None:
    registry = Registry()
    registry.counter("calls_total", "Calls.").of().inc()
    registry.counter("calls_total", "Calls.").of().inc()
    assert b"calls_total 2\n" in text_of(registry.read())


def test_one_name_has_one_meaning() -> None:
    registry = Registry()
    registry.histogram("wait_seconds", "Waits.", (1.0,))
    with pytest.raises(ValueError, match="wait_seconds"):
        registry.gauge("wait_seconds", "Something else.")
    with pytest.raises(ValueError, match="wait_seconds_count"):
        registry.gauge("wait_seconds_count", "Also one of the histogram's.")


@pytest.mark.parametrize(
    "head",
    [
        ("counter", "calls", "No end.", ()),
        ("gauge", "1st", "No name.", ()),
        ("gauge", "calls", "", ()),
        ("gauge", "calls", "A bad label.", ("with-dash",)),
        ("gauge", "calls", "A reserved label.", ("__name__",)),
        ("gauge", "calls", "Twice.", ("a", "a")),
    ],
)
def test_what_prometheus_would_not_take_is_refused_at_once(head: tuple[str, str, str, tuple[str, ...]]) -> None:
    with pytest.raises(ValueError, match=r".+"):
        MetricHead(*head)  # type: ignore[arg-type]


def test_a_histogram_has_growing_bounds_and_no_label_le() -> None:
    for labels, bounds in ((("le",), (1.0,)), ((), (2.0, 1.0)), ((), ())):
        with pytest.raises(ValueError, match="wait"):
            MetricHead("histogram", "wait_seconds", "Waits.", labels, bounds)


def test_a_counter_never_shrinks_and_labels_are_given_in_full() -> None:
    family = Registry().counter("calls_total", "Calls.", ("who",))
    with pytest.raises(ValueError, match="grows"):
        family.of("a").inc(-1)
    with pytest.raises(ValueError, match="labels"):
        family.of("a", "b")


def test_a_reader_that_breaks_takes_nothing_else_away(caplog: pytest.LogCaptureFixture) -> None:
    registry = Registry()
    registry.gauge("fine", "Fine.").of().set(1)
    registry.reads(MetricHead("gauge", "broken", "Broken."), lambda: [((), 1 / 0)])
    with caplog.at_level(logging.ERROR, "shoal.telemetry"):
        first, second = (text_of(registry.read()) for _ in range(2))
    assert first == second == b"# HELP fine Fine.\n# TYPE fine gauge\nfine 1\n"
    assert len(caplog.records) == 1, "it is told once, not with every scrape"


def test_bounds_grow_by_their_factor_without_dust() -> None:
    assert exponential(0.001, 2, 4) == (0.001, 0.002, 0.004, 0.008)
    assert exponential(2.5, 2, 13)[-1] == 10240


@pytest.mark.parametrize("what", ["inc", "observe", "of"])
def test_counting_takes_less_than_a_microsecond(what: str) -> None:
    registry = Registry()
    counter = registry.counter("calls_total", "Calls.", ("who", "how"))
    cell = counter.of("a", "b")
    histogram = registry.histogram("wait_seconds", "Waits.", exponential(0.001, 2, 15)).of()
    do = {"inc": cell.inc, "observe": lambda: histogram.observe(0.3), "of": lambda: counter.of("a", "b").inc()}[what]
    # The best of many short runs: others may have the processor meanwhile.
    assert min(repeat(do, number=1000, repeat=200)) / 1000 < 1e-6
    assert math.isfinite(cell.value)
