"""Fallback, activation and admission: each rule in a row, and the laws that no row may break."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from build.depth import examples
from shoal.api.conditions import Condition
from shoal.autoscale.scaled_objects.activation import Target, TriggerState, activation, autoscaler_health
from shoal.autoscale.scaled_objects.admission import (
    ExistingAutoscaler,
    NamedScaledObject,
    NamespaceFacts,
    RequestedResources,
    admitted,
)
from shoal.autoscale.scaled_objects.annotations import is_paused, paused_replicas
from shoal.autoscale.scaled_objects.fallback import PolledMetric, ScalerReading, TargetSize, with_fallback
from shoal.autoscale.scaled_objects.spec import Fallback, Health, ScaledObjectSpec, TriggerTarget
from shoal.units.errors import UserError
from shoal.units.quantity import Quantity

NOW = datetime(2026, 11, 27, tzinfo=UTC)
METRIC = PolledMetric("s0-x", 10.0)


def spec(**fields: Any) -> ScaledObjectSpec:
    triggers = [{"type": "cron"}]
    return msgspec.convert({"scaleTargetRef": {"name": "w"}, "triggers": triggers, **fields}, ScaledObjectSpec)


def fallback(behavior: str = "") -> ScaledObjectSpec:
    return spec(fallback={"failureThreshold": 2, "replicas": 5, "behavior": behavior})


# -- fallback -------------------------------------------------------------------------------------------------------

WANTED = [("", 5), ("static", 5), ("currentReplicas", 8), ("currentReplicasIfHigher", 8), ("currentReplicasIfLower", 5)]


@pytest.mark.parametrize(("behavior", "replicas"), WANTED)
def test_after_enough_failures_the_metric_asks_for_the_replicas_of_the_fallback(behavior: str, replicas: int) -> None:
    health: dict[str, Health] = {}
    for failures in (1, 2, 3):
        found = with_fallback(fallback(behavior), METRIC, ScalerReading(error="away"), health, TargetSize(8))
        health = dict(found.health)
        assert health["s0-x"] == Health(failures, "Failing")
        assert (found.error, found.is_fallback) == (("away", False) if failures < 3 else ("", True))
        assert found.has_fallback is (failures == 3)
    assert found.value_milli == replicas * 10_000
    healthy = with_fallback(fallback(behavior), METRIC, ScalerReading(4000), health, TargetSize(8))
    assert (healthy.value_milli, healthy.has_fallback) == (4000, False)
    assert healthy.health["s0-x"] == Health(0, "Happy")


def test_a_size_that_is_needed_and_unknown_passes_the_error_on() -> None:
    health = {"s0-x": Health(9, "Failing")}
    found = with_fallback(fallback("currentReplicas"), METRIC, ScalerReading(error="away"), health, TargetSize())
    assert (found.error, found.is_fallback) == ("away", False)
    value = PolledMetric("s0-x", 10.0, "Value")
    found = with_fallback(fallback(), value, ScalerReading(error="away"), health, TargetSize(8, 0))
    assert found.error == "error performing fallback"
    found = with_fallback(fallback(), value, ScalerReading(error="away"), health, TargetSize(8, 4))
    assert found.value_milli == 12_500


def test_without_a_valid_fallback_nothing_is_counted() -> None:
    modifiers = {"scalingModifiers": {"formula": "x", "target": "2.5"}}
    invalid = spec(fallback={"failureThreshold": 0, "replicas": 5}, advanced=modifiers)
    for one in (spec(), invalid):
        found = with_fallback(one, METRIC, ScalerReading(error="away"), {}, TargetSize(8))
        assert (found.error, found.health, found.has_fallback) == ("away", {}, None)


# -- activation -----------------------------------------------------------------------------------------------------

SPECS = st.builds(
    ScaledObjectSpec,
    initial_cooldown_period=st.none() | st.integers(0, 600),
    cooldown_period=st.none() | st.integers(0, 600),
    idle_replica_count=st.none() | st.integers(0, 2),
    min_replica_count=st.none() | st.integers(0, 5),
    fallback=st.none() | st.builds(Fallback, st.integers(0, 3), st.integers(0, 3)),
)
ANNOTATIONS = st.dictionaries(
    st.sampled_from(
        [
            f"autoscaling.keda.sh/{name}"
            for name in ("paused", "paused-scale-in", "paused-scale-out", "force-activation")
        ]
    ),
    st.sampled_from(["true", "false", "yes"]),
)
TARGETS = st.builds(
    Target,
    st.integers(0, 8),
    st.integers(0, 900).map(lambda ago: NOW - timedelta(seconds=ago)),
    st.none() | st.integers(0, 900).map(lambda ago: NOW - timedelta(seconds=ago)),
)


@settings(max_examples=examples(300))
@given(SPECS, ANNOTATIONS, st.booleans(), st.booleans(), TARGETS)
def test_sizes_are_written_only_where_the_annotations_and_the_triggers_allow_it(
    one: ScaledObjectSpec, notes: dict[str, str], is_active: bool, has_error: bool, target: Target
) -> None:
    found = activation(one, notes, TriggerState(is_active, has_error), target, NOW)
    on = {name.rpartition("/")[2] for name, value in notes.items() if value != "false"}
    size, least = found.replicas, one.min_replica_count or 0
    if "paused" in on:
        assert (size, found.notes_activity) == (None, False)
        return
    if is_active or "force-activation" in on:
        assert size is None or (size == max(least, 1) and size > target.replicas)
        assert size is None or "paused-scale-out" not in on
        assert target.replicas > 0 or size is not None or "paused-scale-out" in on
    elif size is not None and size < target.replicas:
        assert "paused-scale-in" not in on
        assert not (has_error and one.fallback is None), "a trigger that fails does not scale in"
        wait_s = one.initial_cooldown_period or 0
        since = target.created
        if target.last_active is not None:
            since = target.last_active
            wait_s = 300 if one.cooldown_period is None else one.cooldown_period
        assert (NOW - since).total_seconds() >= wait_s
        assert size == (least if one.idle_replica_count is None else one.idle_replica_count)
    assert not found.notes_activity or is_active or "force-activation" in on


def test_a_target_is_active_before_it_is_scaled_in_and_stays_for_its_cooldown() -> None:
    one, target = spec(cooldownPeriod=60), Target(3, NOW, NOW)
    sizes = [
        activation(one, {}, TriggerState(False), target, NOW + timedelta(seconds=wait_s)).replicas
        for wait_s in (0, 59, 60)
    ]
    assert sizes == [None, None, 0]


HEALTH = [
    (None, None),
    ((), None),
    ((Condition("ScalingActive", "True", "ValidMetricFound"),), ("True", "HPAActive")),
    ((Condition("ScalingActive", "False", "ScalingDisabled"),), ("True", "ScalingDisabled")),
    ((Condition("ScalingActive", "False", "FailedGetExternalMetric"),), ("False", "FailedGetExternalMetric")),
    ((Condition("ScalingActive", "Unknown"),), ("False", "HPAMetricsUnavailable")),
]


@pytest.mark.parametrize(("conditions", "wanted"), HEALTH)
def test_the_health_of_the_autoscaler(conditions: tuple[Condition, ...] | None, wanted: tuple[str, str] | None) -> None:
    found = autoscaler_health(conditions)
    assert (None if found is None else (found.status, found.reason)) == wanted


def test_a_number_of_paused_replicas_pauses_and_has_to_be_one() -> None:
    assert is_paused({"autoscaling.keda.sh/paused": "false", "autoscaling.keda.sh/paused-replicas": "2"})
    assert paused_replicas({"autoscaling.keda.sh/paused-replicas": "2"}) == 2
    assert paused_replicas({}) is None
    for wrong in ("two", "-1", "4294967296"):
        with pytest.raises(UserError, match="is not a number of replicas"):
            paused_replicas({"autoscaling.keda.sh/paused-replicas": wrong})


# -- admission ------------------------------------------------------------------------------------------------------

CPU = {"triggers": [{"type": "cpu"}], "minReplicaCount": 1}
REQUESTED = RequestedResources({"cpu": Quantity.of_milli(100)})
OWN = ("ScaledObject", "a")
HPA = ExistingAutoscaler("h", TriggerTarget("w", "apps/v1", "Deployment"))


def workload(resources: RequestedResources) -> NamespaceFacts:
    return NamespaceFacts(workloads={("Deployment", "w"): {"c": resources}})


VERDICTS: list[tuple[str, dict[str, Any], NamespaceFacts, str]] = [
    ("nothing against it", {}, NamespaceFacts(), ""),
    ("no triggers", {"triggers": []}, NamespaceFacts(), "no triggers defined"),
    (
        "two triggers of one name",
        {"triggers": [{"type": "cron", "name": "x"}, {"type": "cron", "name": "x"}]},
        NamespaceFacts(),
        'triggerName "x" is defined multiple times',
    ),
    (
        "a cached cron trigger",
        {"triggers": [{"type": "cron", "useCachedMetrics": True}]},
        NamespaceFacts(),
        'property "useCachedMetrics" is not supported for "cron" scaler',
    ),
    (
        "a minimum above the maximum",
        {"minReplicaCount": 3, "maxReplicaCount": 2},
        NamespaceFacts(),
        "MinReplicaCount=3 must be less than MaxReplicaCount=2",
    ),
    ("an idle count of zero without a minimum", {"idleReplicaCount": 0}, NamespaceFacts(), "IdleReplicaCount=0 must"),
    (
        "an idle count of zero with a written minimum",
        {"idleReplicaCount": 0, "minReplicaCount": 0},
        NamespaceFacts(),
        "",
    ),
    (
        "a fallback of cpu only",
        {**CPU, "fallback": {"failureThreshold": 1, "replicas": 1}},
        workload(REQUESTED),
        "at least one trigger (that is not cpu or memory)",
    ),
    (
        "the same target",
        {},
        NamespaceFacts([NamedScaledObject("b", spec())]),
        "the workload 'w' of type 'apps/v1.Deployment' is already managed by the ScaledObject 'b'",
    ),
    (
        "the same name of an autoscaler",
        {"advanced": {"horizontalPodAutoscalerConfig": {"name": "keda-hpa-b"}}},
        NamespaceFacts([NamedScaledObject("b", spec(scaleTargetRef={"name": "other"}))]),
        "the HPA 'keda-hpa-b' is already managed by the ScaledObject 'b'",
    ),
    (
        "an autoscaler of the target",
        {},
        NamespaceFacts(autoscalers=[HPA]),
        "the workload 'w' of type 'apps/v1.Deployment' is already managed by the hpa 'h'",
    ),
    ("its own autoscaler", {}, NamespaceFacts(autoscalers=[msgspec.structs.replace(HPA, owners=(OWN,))]), ""),
    (
        "a formula for the fallback that is not there",
        {"fallback": {"failureThreshold": 1, "replicas": 1, "behavior": "scalingModifiers"}},
        NamespaceFacts(),
        "requires scalingModifiers.formula to be defined",
    ),
    ("a cpu trigger without a request", CPU, workload(RequestedResources()), "doesn't have the cpu request defined"),
    ("a cpu trigger with a request", CPU, workload(REQUESTED), ""),
    (
        "a cpu trigger with a default request",
        CPU,
        NamespaceFacts(workloads={("Deployment", "w"): {"c": RequestedResources()}}, container_defaults=[REQUESTED]),
        "",
    ),
    ("a cpu trigger without its workload", CPU, NamespaceFacts(), 'deployments.apps "w" not found'),
    (
        "a cpu trigger that goes to zero",
        {**CPU, "minReplicaCount": 0},
        workload(REQUESTED),
        "scale to zero doesn't work",
    ),
    (
        "a cpu trigger for a kind without a known template",
        {**CPU, "scaleTargetRef": {"name": "w", "apiVersion": "x.io/v1", "kind": "W"}},
        NamespaceFacts(),
        "",
    ),
]


@pytest.mark.parametrize(("_name", "fields", "facts", "part"), VERDICTS, ids=[row[0] for row in VERDICTS])
def test_a_scaled_object_is_admitted_or_refused(
    _name: str, fields: dict[str, Any], facts: NamespaceFacts, part: str
) -> None:
    message = admitted(NamedScaledObject("a", spec(**fields)), facts).message
    assert part in message
    assert bool(message) == bool(part)


def test_a_transfer_of_the_autoscaler_has_to_name_it() -> None:
    notes = {"scaledobject.keda.sh/transfer-hpa-ownership": "true"}
    facts = NamespaceFacts(autoscalers=[HPA])
    assert "must be specified by name" in admitted(NamedScaledObject("a", spec(), notes), facts).message
    named = spec(advanced={"horizontalPodAutoscalerConfig": {"name": "h"}})
    assert admitted(NamedScaledObject("a", named, notes), facts).message == ""
    assert "already managed" in admitted(NamedScaledObject("a", named), facts).message
    unchecked = msgspec.structs.replace(HPA, annotations={"validations.keda.sh/hpa-ownership": "false"})
    assert admitted(NamedScaledObject("a", spec()), NamespaceFacts(autoscalers=[unchecked])).message == ""


def test_a_dry_run_does_not_look_at_workloads() -> None:
    assert admitted(NamedScaledObject("a", spec(**CPU)), NamespaceFacts(), is_dry_run=True).message == ""


def test_names_that_become_labels_are_not_too_long() -> None:
    assert "63 characters because" in admitted(NamedScaledObject("a" * 64, spec()), NamespaceFacts()).message
    assert "derived from scaledobject" in admitted(NamedScaledObject("a" * 55, spec()), NamespaceFacts()).message
    assert admitted(NamedScaledObject("a" * 54, spec()), NamespaceFacts()).message == ""
