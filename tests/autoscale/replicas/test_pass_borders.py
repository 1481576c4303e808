"""Passes at the borders of the rules: no replicas, metrics below zero, samples exactly at the target."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec

from shoal.api.conditions import Condition
from shoal.api.pod import Pod
from shoal.api.wire import dec_hook
from shoal.autoscale.replicas.behavior import with_defaults
from shoal.autoscale.replicas.history import AutoscalerHistory, Recommendation
from shoal.autoscale.replicas.passes import SCALED_TO_ZERO, PassResult, ScaleTarget, TargetFacts
from shoal.autoscale.replicas.reconcile import concluded, decide
from shoal.autoscale.replicas.samples import MetricReading, MetricSample
from shoal.autoscale.replicas.spec import (
    Autoscaler,
    AutoscalerSettings,
    AutoscalerSpec,
    AutoscalerStatus,
    Behavior,
    ScalingRules,
)
from shoal.autoscale.replicas.stabilization import stabilized

NOW = datetime(2026, 11, 27, tzinfo=UTC)
WITH_ZERO = AutoscalerSettings(has_scale_to_zero=True)
SCALED = Condition(SCALED_TO_ZERO, "True", SCALED_TO_ZERO, "", NOW)
WAITING: dict[str, Any] = {
    "type": "External",
    "external": {"metric": {"name": "waiting"}, "target": {"type": "AverageValue", "averageValue": "10"}},
}
RATE: dict[str, Any] = {
    "type": "Pods",
    "pods": {"metric": {"name": "rate"}, "target": {"type": "AverageValue", "averageValue": "10"}},
}


def ended(
    current: int,
    reading: MetricReading,
    settings: AutoscalerSettings,
    conditions: tuple[Condition, ...] = (),
    least: int = 1,
    metric: dict[str, Any] = WAITING,
    pods: int = 1,
) -> PassResult:
    raw = {"minReplicas": least, "maxReplicas": 20, "metrics": [metric], "behavior": {}}
    spec = msgspec.convert(raw, AutoscalerSpec, dec_hook=dec_hook)
    one = Autoscaler("ns", "a", spec, AutoscalerStatus(conditions=conditions))
    there = [
        msgspec.convert(
            {"metadata": {"name": f"p{number}", "labels": {"app": "a"}}, "status": {"phase": "Running"}},
            Pod,
            dec_hook=dec_hook,
        )
        for number in range(pods)
    ]
    around = TargetFacts(ScaleTarget(current, current, "app=a"), there, [reading])
    return concluded(one, decide(one, around, AutoscalerHistory(), settings, NOW), settings, NOW)


def types(result: PassResult) -> set[str]:
    return {each.type for each in result.status.conditions}


def test_a_metric_below_zero_is_remembered_as_a_wish_for_no_replicas() -> None:
    result = ended(3, MetricReading(values_milli=(-50_000,)), AutoscalerSettings())
    assert [each.replicas for each in result.history.recommendations or ()] == [3, 0]


def test_a_target_that_the_autoscaler_took_to_zero_comes_back_to_a_higher_minimum_with_a_reason() -> None:
    result = ended(0, MetricReading(values_milli=(0,)), WITH_ZERO, (SCALED,), least=2)
    assert result.status.desired_replicas == 2
    said = [each.message for each in result.events if each.reason == "SuccessfulRescale"]
    assert said == ["New size: 2; reason: Current number of replicas below Spec.MinReplicas"]


def test_the_note_about_zero_goes_with_the_next_change_where_the_feature_is_off() -> None:
    off = AutoscalerSettings()
    assert SCALED_TO_ZERO in types(ended(3, MetricReading(values_milli=(30_000,)), off, (SCALED,)))
    assert SCALED_TO_ZERO not in types(ended(3, MetricReading(values_milli=(90_000,)), off, (SCALED,)))
    assert SCALED_TO_ZERO not in types(ended(0, MetricReading(values_milli=(90_000,)), off, (SCALED,)))


def test_pods_without_a_sample_do_not_count_while_the_others_are_exactly_at_the_target() -> None:
    samples = tuple((f"p{number}", MetricSample(10_000, NOW.timestamp())) for number in range(2))
    result = ended(4, MetricReading(samples=samples), AutoscalerSettings(), metric=RATE, pods=4)
    assert result.status.desired_replicas == 4


def test_a_target_that_is_to_grow_does_not_shrink_to_a_low_recommendation_of_the_window() -> None:
    behavior = Behavior(ScalingRules(300), ScalingRules(0))
    kept = (Recommendation(2, NOW.timestamp() - 100),)
    settled = stabilized(9, 4, kept, with_defaults(behavior, AutoscalerSettings()), NOW.timestamp())
    assert (settled.replicas, settled.reason) == (4, "ScaleUpStabilized")


def test_a_target_that_is_to_shrink_does_not_grow_to_a_high_recommendation_of_the_window() -> None:
    kept = (Recommendation(12, NOW.timestamp() - 100),)
    settled = stabilized(2, 4, kept, with_defaults(Behavior(), AutoscalerSettings()), NOW.timestamp())
    assert (settled.replicas, settled.reason) == (4, "ScaleDownStabilized")
