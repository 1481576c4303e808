"""Alerts without Prometheus: the cases of promtool's tests, evaluated by Shoal, and the life of an alert."""

from __future__ import annotations

import pytest

from build.alert_cases import DOES_NOT, FIRES, TEMP, USE, Series, one
from build.promtool_series import labels_of, values_of
from shoal.policy.alert_rules import ALERTS
from shoal.policy.alert_states import INTERVAL_MS, AlertChanges, AlertStates, RuleAlert
from shoal.policy.alert_texts import duration, number, rendered
from shoal.prometheus.promql.series import LabelledValue
from shoal.prometheus.promql.tokens import milliseconds


class Played:
    """Rules over series that are added step by step."""

    def __init__(self, series: Series, only: str = "") -> None:
        self.states = AlertStates([rule for rule in ALERTS if only in ("", rule.name)])
        sets = self.states.store.label_sets
        self._series = [
            (name, sets.of(labels), list(values_of(values)))
            for key, values in series.items()
            for name, labels in [labels_of(key)]
        ]
        self.changes: list[AlertChanges] = []

    def until(self, end_ms: int, start_ms: int = 0) -> list[RuleAlert]:
        for at in range(start_ms, end_ms + 1, INTERVAL_MS):
            for name, labels, values in self._series:
                place = at // INTERVAL_MS
                if place < len(values) and (value := values[place]) is not None:
                    self.states.store.add(at, LabelledValue(name, labels, value))
            self.changes += self.states.evaluate(at)
        return [alert for alert in self.states.alerts() if alert.state == "firing"]


@pytest.mark.parametrize(("name", "series", "at"), FIRES)
def test_an_alert_fires_as_it_does_in_prometheus(name: str, series: Series, at: str) -> None:
    firing = Played(series, name).until(milliseconds(at))
    assert name in {alert.labels["alertname"] for alert in firing}


@pytest.mark.parametrize(("name", "series", "at"), DOES_NOT)
def test_an_alert_does_not_fire_where_it_does_not_in_prometheus(name: str, series: Series, at: str) -> None:
    firing = Played(series, name).until(milliseconds(at))
    assert name not in {alert.labels["alertname"] for alert in firing}


def test_an_alert_is_pending_then_fires_once_and_ends_once() -> None:
    played = Played(one(TEMP, "86x20 60x20"))
    played.until(4 * 60_000)
    (pending,) = [alert for alert in played.states.alerts() if alert.labels["alertname"] == "GPUHighTemperature"]
    assert (pending.state, pending.since_ms, pending.annotations) == ("pending", 0, {})
    played.until(20 * 60_000, 4 * 60_000 + INTERVAL_MS)
    fired = [alert for each in played.changes for alert in each.fired]
    ended = [alert for each in played.changes for alert in each.ended]
    assert [(alert.labels["alertname"], alert.fired_ms) for alert in fired] == [("GPUHighTemperature", 300_000)]
    assert [(alert.since_ms, alert.ended_ms) for alert in ended] == [(0, 630_000)]
    assert fired[0].annotations["description"] == "GPU 0 of n-0 has 86 degrees, held by team/train-0."


def test_a_restarted_process_does_not_begin_anew() -> None:
    first = Played(one(TEMP, "86x40"))
    first.until(4 * 60_000)
    second = Played(one(TEMP, "86x40"))
    second.states.restore(first.states.alerts())
    (firing,) = second.until(5 * 60_000, 5 * 60_000)
    assert firing.since_ms == 0
    assert first.until(0) == []


def test_an_alert_over_a_recording_rule_ends_with_the_series_of_the_exporter() -> None:
    played = Played(one(USE, "9x100"))
    played.until(35 * 60_000)
    at = 35 * 60_000 + INTERVAL_MS
    store = played.states.store
    store.scrape("n-0", at - 1, [LabelledValue(USE, played._series[0][1], 9)])
    store.scrape("n-0", at, [])
    played._series.clear()
    assert played.until(at, at) == []


def test_only_what_the_rules_read_is_stored() -> None:
    played = Played(one("unrelated_metric", "1x10") | one(TEMP, "20x10"))
    played.until(60_000)
    assert len(played.states.store) == 1


def test_series_that_ended_are_forgotten() -> None:
    played = Played(one(TEMP, "20x2"))
    played.until(3 * 3_600_000)
    assert len(played.states.store) == 0


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{{ $value }}", "0.9123"),
        ("{{ $value | humanizePercentage }}", "91.23%"),
        ('{{ $value | printf "%.0f" }}', "1"),
        ("a{{ with $labels.pod }}, {{ $labels.namespace }}/{{ . }}{{ end }}.", "a, n/p."),
        ("a{{ with $labels.none }}, {{ $labels.namespace }}/{{ . }}{{ end }}.", "a."),
        ("{{$labels.none}}", ""),
    ],
)
def test_texts_are_filled_in(template: str, text: str) -> None:
    assert rendered(template, {"namespace": "n", "pod": "p"}, 0.91234) == text


def test_an_action_that_is_not_known_is_refused() -> None:
    for template in ("{{ len $labels }}", "{{ $value | title }}", "{{ with .x }}{{ end }}"):
        with pytest.raises(ValueError, match="is not known"):
            rendered(template, {}, 1)


def test_numbers_and_durations_are_written_as_prometheus_does() -> None:
    assert [number(value) for value in (5.0, 1e7, 0.1234567, float("inf"))] == ["5", "1e+07", "0.1235", "+Inf"]
    texts = [duration(value) for value in (0, 0.25, 12.5, 90, 3661, 90061)]
    assert texts == ["0s", "250ms", "12.5s", "1m 30s", "1h 1m 1s", "1d 1h 1m 1s"]
