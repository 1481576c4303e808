"""Laws that hold for every pass over an autoscaler: limits are kept, failures never shrink, and memory is bounded."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from build.depth import examples
from shoal.api.pod import Pod
from shoal.api.wire import dec_hook
from shoal.autoscale.replicas.behavior import with_defaults
from shoal.autoscale.replicas.history import AutoscalerHistory, Recommendation, ScaleEvent, change_within
from shoal.autoscale.replicas.passes import PassResult, ScaleTarget, TargetFacts
from shoal.autoscale.replicas.reconcile import concluded, decide, without_scale
from shoal.autoscale.replicas.samples import MetricReading
from shoal.autoscale.replicas.spec import (
    Autoscaler,
    AutoscalerSettings,
    AutoscalerSpec,
    AutoscalerStatus,
    Behavior,
    ScalingPolicy,
    ScalingRules,
)

NOW = datetime(2026, 11, 27, tzinfo=UTC)
EXTERNAL = {
    "type": "External",
    "external": {"metric": {"name": "waiting"}, "target": {"type": "AverageValue", "averageValue": "10"}},
}
POD = msgspec.convert({"metadata": {"name": "p", "labels": {"app": "a"}}}, Pod, dec_hook=dec_hook)

RULES = st.builds(
    ScalingRules,
    st.none() | st.integers(0, 600),
    st.sampled_from([None, "Max", "Min", "Disabled"]),
    st.lists(
        st.builds(ScalingPolicy, st.sampled_from(["Pods", "Percent"]), st.integers(1, 200), st.integers(1, 600)),
        max_size=3,
    ).map(tuple),
)
BEHAVIORS = st.none() | st.builds(Behavior, st.none() | RULES, st.none() | RULES)
EVENTS = st.lists(
    st.builds(ScaleEvent, st.integers(1, 9), st.integers(-700, -1).map(lambda at: NOW.timestamp() + at)), max_size=4
).map(tuple)
HISTORIES = st.builds(
    AutoscalerHistory,
    st.lists(
        st.builds(Recommendation, st.integers(0, 40), st.integers(-700, -1).map(lambda at: NOW.timestamp() + at)),
        max_size=4,
    ).map(tuple),
    EVENTS,
    EVENTS,
)


def autoscaler(behavior: Behavior | None, least: int, most: int, metrics: int = 1) -> Autoscaler:
    spec = msgspec.convert(
        {"minReplicas": least, "maxReplicas": most, "metrics": [EXTERNAL] * metrics}, AutoscalerSpec, dec_hook=dec_hook
    )
    return Autoscaler("ns", "a", msgspec.structs.replace(spec, behavior=behavior))


def after_pass(one: Autoscaler, current: int, readings: list[MetricReading], history: AutoscalerHistory) -> PassResult:
    around = TargetFacts(ScaleTarget(current, current, "app=a"), [POD], readings)
    usual = AutoscalerSettings()
    return concluded(one, decide(one, around, history, usual, NOW), usual, NOW)


def literal_limits(current: int, rules: ScalingRules, history: AutoscalerHistory, *, is_up: bool) -> int:
    """The size that each policy allows, of which `selectPolicy` chooses."""
    if rules.select_policy == "Disabled":
        return current
    allowed = []
    for policy in rules.policies:
        start = current
        for event in history.ups:
            start -= event.change if NOW.timestamp() - event.at_s < policy.period_seconds else 0
        for event in history.downs:
            start += event.change if NOW.timestamp() - event.at_s < policy.period_seconds else 0
        if policy.type == "Pods":
            allowed.append(start + policy.value if is_up else start - policy.value)
        elif is_up:
            allowed.append(math.ceil(start * (1 + policy.value / 100)))
        else:
            allowed.append(int(start * (1 - policy.value / 100)))
    largest_change = rules.select_policy != "Min"
    if is_up:
        return max(current, max(allowed) if largest_change else min(allowed))
    return min(current, min(allowed) if largest_change else max(allowed))


@settings(max_examples=examples(300))
@given(BEHAVIORS, HISTORIES, st.integers(1, 30), st.integers(0, 600), st.integers(1, 5), st.integers(5, 40))
def test_the_size_is_the_stabilized_one_within_all_limits(
    behavior: Behavior | None, history: AutoscalerHistory, current: int, waiting: int, least: int, most: int
) -> None:
    end = after_pass(
        autoscaler(behavior, least, most), current, [MetricReading(values_milli=(waiting * 1000,))], history
    )
    desired = end.status.desired_replicas
    if not least <= current <= most:
        assert desired == max(least, min(current, most))
        return
    ratio = waiting / (10 * current)
    wanted = current if 0.9 <= ratio <= 1.1 else math.ceil(waiting / 10)
    settled, limit = wanted, wanted
    recent = [(one.replicas, NOW.timestamp() - one.at_s) for one in history.recommendations or ()]
    if behavior is None:
        settled = max([wanted, *(size for size, age in recent if age < 300)])
        limit = max(least, min(settled, max(2 * current, 4), most))
    else:
        filled = with_defaults(behavior, AutoscalerSettings())
        up, down = filled.scale_up or ScalingRules(), filled.scale_down or ScalingRules()
        lowest = min([wanted, *(size for size, age in recent if age < (up.stabilization_window_seconds or 0))])
        highest = max([wanted, *(size for size, age in recent if age < (down.stabilization_window_seconds or 0))])
        if lowest > current:
            settled = lowest
        elif highest < current:
            settled = highest
        else:
            settled = current
        if settled > current:
            limit = min(settled, most, literal_limits(current, up, history, is_up=True))
        elif settled < current:
            limit = max(settled, least, literal_limits(current, down, history, is_up=False))
        else:
            limit = settled
    assert desired == limit
    assert end.rescaled == (limit != current)


@settings(max_examples=examples(200))
@given(BEHAVIORS, HISTORIES, st.integers(1, 30), st.integers(0, 600))
def test_a_pass_with_a_failed_metric_never_shrinks_the_target(
    behavior: Behavior | None, history: AutoscalerHistory, current: int, waiting: int
) -> None:
    readings = [MetricReading(values_milli=(waiting * 1000,)), MetricReading(error="it failed")]
    end = after_pass(autoscaler(behavior, 1, 40, metrics=2), current, readings, history)
    assert end.error.startswith("invalid metrics (1 invalid out of 2), first error is: ")
    if math.ceil(waiting / 10) < current and not 0.9 <= waiting / (10 * current) <= 1.1:
        assert not end.rescaled


@settings(max_examples=examples(100))
@given(HISTORIES, st.integers(1, 30))
def test_a_pass_without_any_metric_changes_nothing_but_conditions(history: AutoscalerHistory, current: int) -> None:
    end = after_pass(autoscaler(None, 1, 40), current, [MetricReading(error="it failed")], history)
    assert not end.rescaled
    assert end.history == history
    assert end.status.desired_replicas == AutoscalerStatus().desired_replicas
    assert [one.reason for one in end.events] == ["FailedGetExternalMetric", "FailedComputeMetricsReplicas"]


def test_the_memory_of_a_long_life_holds_only_what_the_windows_need() -> None:
    one = autoscaler(Behavior(), 1, 100)
    history, current, usual = AutoscalerHistory(), 1, AutoscalerSettings()
    for step in range(400):
        now = NOW + timedelta(seconds=15 * step)
        waiting = 10_000 * (5 + 40 * (step // 40 % 2))
        around = TargetFacts(ScaleTarget(current, current, "app=a"), [POD], [MetricReading(values_milli=(waiting,))])
        end = concluded(one, decide(one, around, history, usual, now), usual, now)
        history, current = end.history, end.status.desired_replicas
        assert len(history.recommendations or ()) <= 300 / 15 + 1
        assert max(len(history.ups), len(history.downs)) <= 2
    assert current == 45


def test_events_are_counted_up_to_the_age_of_the_period() -> None:
    events = (ScaleEvent(3, 40.0), ScaleEvent(4, 41.0))
    assert change_within(events, 60, 100.0) == 4


CONDITIONS: list[tuple[str, dict[str, Any], list[str]]] = [
    (
        "scaling is off while the target is at zero",
        {"current": 0},
        ["AbleToScale=True SucceededGetScale", "ScalingActive=False ScalingDisabled"],
    ),
    (
        "a target without a selector",
        {"selector": ""},
        ["AbleToScale=True SucceededGetScale", "ScalingActive=False InvalidSelector"],
    ),
    (
        "a selector that cannot be read",
        {"selector": "a in ("},
        ["AbleToScale=True SucceededGetScale", "ScalingActive=False InvalidSelector"],
    ),
    (
        "pods of two autoscalers",
        {"others": {"b": POD.metadata.labels}},
        ["AbleToScale=True SucceededGetScale", "ScalingActive=False AmbiguousSelector"],
    ),
    (
        "a write that fails",
        {"fault": "it was refused"},
        [
            "AbleToScale=False FailedUpdateScale",
            "ScalingActive=True ValidMetricFound",
            "ScalingLimited=False DesiredWithinRange",
        ],
    ),
]


@pytest.mark.parametrize(("_name", "given_", "wanted"), CONDITIONS, ids=[one[0] for one in CONDITIONS])
def test_conditions_say_what_prevents_scaling(_name: str, given_: dict[str, Any], wanted: list[str]) -> None:
    from shoal.api.selectors import LabelSelector

    one, usual = autoscaler(None, 1, 40), AutoscalerSettings()
    others = {name: LabelSelector(match_labels=labels).selector() for name, labels in given_.get("others", {}).items()}
    current = given_.get("current", 2)
    target = ScaleTarget(current, current, given_.get("selector", "app=a"))
    around = TargetFacts(target, [POD], [MetricReading(values_milli=(30_000,))], others)
    end = concluded(one, decide(one, around, AutoscalerHistory(), usual, NOW), usual, NOW, given_.get("fault", ""))
    assert [f"{each.type}={each.status} {each.reason}" for each in end.status.conditions] == wanted
    assert not end.rescaled


def test_a_condition_keeps_its_time_until_its_status_changes() -> None:
    one, usual = autoscaler(None, 1, 40), AutoscalerSettings()
    first = concluded(one, without_scale(one, AutoscalerHistory(), "it is away", NOW), usual, NOW)
    later = NOW + timedelta(minutes=1)
    again = msgspec.structs.replace(one, status=first.status)
    second = concluded(again, without_scale(again, AutoscalerHistory(), "it is still away", later), usual, later)
    assert [each.last_transition_time for each in second.status.conditions] == [NOW]
    assert second.status.conditions[0].message.endswith("it is still away")
    around = TargetFacts(ScaleTarget(2, 2, "app=a"), [POD], [MetricReading(values_milli=(30_000,))])
    third = decide(again, around, AutoscalerHistory(), usual, later)
    assert third.status.conditions[0].last_transition_time == later


def test_the_event_of_a_metric_is_shorter_than_the_error_of_the_pass_as_in_kubernetes() -> None:
    end = after_pass(autoscaler(None, 1, 40), 2, [MetricReading(error="it failed")], AutoscalerHistory())
    inner = "unable to get external metric ns/waiting/nil: unable to fetch metrics from external metrics API: it failed"
    assert end.events[0].message == inner
    assert end.status.conditions[1].message == f"the HPA was unable to compute the replica count: {inner}"
    outer = f"failed to get waiting external metric value: failed to get waiting external metric: {inner}"
    assert end.events[1].message == f"invalid metrics (1 invalid out of 1), first error is: {outer}"
