"""Which Events stay on the screen as warnings, and how often they happened."""

from __future__ import annotations

import pytest

from shoal.views.dashboard.cluster_state import ClusterState
from shoal.views.dashboard.facts import EventFacts


def _event(
    reason: str, *, name: str = "e", count: int = 1, is_warning: bool = True, about: str = "node/n"
) -> EventFacts:
    return EventFacts(f"2026-01-01T00:00:0{count}Z", about, reason, "words", is_warning, count, f"d/{name}", "d")


def _reported(*events: EventFacts) -> list[tuple[str, int]]:
    cluster = ClusterState()
    for event in events:
        cluster.put_event(event)
    return [(one.reason, one.count) for one in cluster.scene("").warnings]


def test_later_versions_of_one_event_count_what_has_happened_since() -> None:
    assert _reported(_event("XidError"), _event("XidError", count=3), _event("XidError", count=3)) == [("XidError", 3)]


def test_events_of_one_reason_are_one_warning() -> None:
    assert _reported(_event("XidError", name="a"), _event("XidError", name="b")) == [("XidError", 2)]


def test_a_flood_of_everyday_events_does_not_push_a_warning_out() -> None:
    flood = [_event("Started", name=f"s{number}", is_warning=False) for number in range(2_000)]
    assert _reported(_event("XidError"), *flood) == [("XidError", 1)]


@pytest.mark.parametrize("reason", ["Preempted", "Evicted", "EvictedDueToPodsReadyTimeout", "TaintManagerEviction"])
def test_evictions_and_preemptions_matter_though_their_events_are_normal(reason: str) -> None:
    assert _reported(_event(reason, is_warning=False)) == [(reason, 1)]


@pytest.mark.parametrize(
    "event",
    [
        _event("FailedScheduling", about="pod/p"),
        _event("Pending", about="workload/w"),
        _event("Unschedulable", about="podgroup/g"),
        _event("EvictedDueToPreempted", is_warning=False, about="workload/w"),
        _event("Scheduled", is_warning=False),
    ],
    ids=lambda event: event.reason,
)
def test_what_is_shown_beside_waiting_work_is_no_warning(event: EventFacts) -> None:
    assert _reported(event) == []


def test_the_newest_is_first_and_shows_its_last_object() -> None:
    cluster = ClusterState()
    for event in (_event("Old", name="a"), _event("New", name="b", count=5), _event("New", name="c", count=2)):
        cluster.put_event(event)
    newest, oldest = cluster.scene("").warnings
    assert (newest.reason, newest.at, newest.count) == ("New", "2026-01-01T00:00:05Z", 7)
    assert oldest.reason == "Old"
