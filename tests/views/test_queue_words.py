"""Amounts, spans and reasons of queues in the words that people use."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from shoal.engine.queues.decisions import StillWaiting
from shoal.engine.queues.reasons import Wait
from shoal.views.queue_diff import Comparison, Fate, Halt, QueueChange, show_comparison, span
from shoal.views.resource_units import figure, in_order, title, words
from shoal.views.waits import wait_reason

GIB = 1 << 30


@pytest.mark.parametrize(
    ("resource", "amount", "shown"),
    [
        ("cpu", 1, "1 core"),
        ("cpu", 2.5, "2.5 cores"),
        ("cpu", 12_000, "12,000 cores"),
        ("memory", 256 * GIB, "256 GiB memory"),
        ("memory", GIB // 4, "0.25 GiB memory"),
        ("nvidia.com/gpu", 1, "1 GPU"),
        ("nvidia.com/gpu", 12, "12 GPUs"),
        ("shoal.dev/gpu-milli", 1_500, "1.5 GPU equivalents"),
        ("nvidia.com/mig-1g.10gb", 3, "3 nvidia.com/mig-1g.10gb"),
        ("hugepages-2Mi", 2 * GIB, "2 GiB hugepages-2Mi"),
    ],
)
def test_amounts_have_the_units_that_people_use(resource: str, amount: float, shown: str) -> None:
    assert words(resource, amount) == shown
    assert words(resource, amount).startswith(figure(resource, amount))


def test_what_is_scarce_comes_first() -> None:
    mixed = ["memory", "cpu", "example.com/nic", "nvidia.com/gpu"]
    assert in_order(mixed) == ["nvidia.com/gpu", "example.com/nic", "cpu", "memory"]
    assert title("cpu") == "cores"


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0.4, "0 s"),
        (59, "59 s"),
        (60, "1 min"),
        (61, "1 min 1 s"),
        (5_400, "1 h 30 min"),
        (86_400, "1 d"),
        (90_000, "1 d 1 h"),
    ],
)
def test_a_span_has_two_units_at_most(seconds: float, shown: str) -> None:
    assert span(seconds) == shown


def test_a_reason_keeps_kueues_words_and_says_what_helps() -> None:
    standing = StillWaiting("t/w", "t/q", "inadmissible", Wait.QUOTA, "insufficient quota for cpu in flavor f")
    reason = wait_reason(standing)
    assert (reason.code, reason.message) == ("WaitingForQuota", "insufficient quota for cpu in flavor f.")
    assert "not proven" not in reason.help
    assert "not proven: no nodes are known." in wait_reason(standing, unproven="no nodes are known").help


def test_only_who_has_not_been_looked_at_stands_behind_another() -> None:
    ahead = wait_reason(StillWaiting("t/w", "t/q", "active", Wait.PENDING, "Not looked at yet"), behind="t/v")
    assert ahead.message == "It is behind t/v in a StrictFIFO queue."
    told = wait_reason(StillWaiting("t/w", "t/q", "active", Wait.QUOTA, "no quota"), behind="t/v")
    assert told.message == "no quota."


def test_two_ways_of_trying_that_failed_alike_are_told_once() -> None:
    failed = 'topology "t" allows to fit only 2 out of 3 pod(s)'
    said = f"couldn't assign flavors to pod set main: {failed}, {failed}. Total nodes: 8"
    reason = wait_reason(StillWaiting("t/w", "t/q", "inadmissible", Wait.TOPOLOGY, said))
    assert reason.message == f"couldn't assign flavors to pod set main: {failed}. Total nodes: 8."


@pytest.mark.parametrize("message", ["its pods do not fit", "topology t is"])
def test_a_workload_that_found_no_place_is_not_promised_one(message: str) -> None:
    """Nor a wider level, which was not tried."""
    help_ = wait_reason(StillWaiting("t/w", "t/q", "inadmissible", Wait.TOPOLOGY, message)).help
    assert help_ == "It is tried again when pods end or nodes come."


@pytest.mark.parametrize(("times", "shown"), [(2, " and 1 more time,"), (3, " and 2 more times,")])
def test_a_fate_of_several_stops_counts_them(times: int, shown: str) -> None:
    stops = [Halt(60.0 * (number + 1), "t/v", "InCohortReclamation", 90.0) for number in range(times)]
    fates = Fate(True, 0.0, []), Fate(True, 0.0, stops)
    console = Console(record=True, width=400, file=io.StringIO())
    show_comparison(console, Comparison([QueueChange("t/w", "t/q", "stops", *fates)], 0, [], [], complete=True))
    text = console.export_text()
    assert f"stops in 1 min for t/v (InCohortReclamation){shown} starts again in 1 min 30 s" in text


@pytest.mark.parametrize("why", [Wait.ON_HOLD, Wait.INADMISSIBLE, Wait.GATED])
def test_of_whoever_is_held_back_nothing_is_said_about_places(why: Wait) -> None:
    assert "not proven" not in wait_reason(StillWaiting("t/w", "t/q", "none", why), unproven="no nodes are known").help


def test_whoever_asks_for_too_much_may_still_start_smaller() -> None:
    help_ = wait_reason(StillWaiting("t/w", "t/q", "inadmissible", Wait.EXCEEDS_MAX_QUOTA)).help
    assert "Waiting does not help" not in help_
    assert "minCount" in help_
