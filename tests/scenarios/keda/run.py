"""Decides a case about a ScaledObject by the code that the controller runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

import msgspec

from shoal.api.conditions import Condition
from shoal.autoscale.scaled_objects import annotations as notes
from shoal.autoscale.scaled_objects.activation import (
    READY,
    Target,
    TriggerState,
    activation,
    autoscaler_health,
)
from shoal.autoscale.scaled_objects.admission import admitted, is_finalizer_removal
from shoal.autoscale.scaled_objects.cron import CronError, cron_activity, cron_metric_name, read_cron
from shoal.autoscale.scaled_objects.fallback import PolledMetric, ScalerReading, TargetSize, with_fallback
from shoal.autoscale.scaled_objects.modifiers import composite_metric, formula_inputs
from shoal.autoscale.scaled_objects.spec import AdvancedOptions, ScaledObjectSpec, ScalingModifiers

from .case import (
    NOW,
    Case,
    facts_of,
    fallback_of,
    health_of,
    moment,
    scaled_object_of,
    spec_of,
    values_of,
)

Answer = dict[str, Any]


def decided(case: Case) -> Answer:
    return _LEVELS[case.level](case)


def _webhook(case: Case) -> Answer:
    if case.operation == "update" and case.old is not None and is_finalizer_removal(case.old, case.object):
        return {"accepted": True, "message": "", "warnings": []}
    verdict = admitted(scaled_object_of(case.object), facts_of(case.existing), is_dry_run=case.dry_run)
    return {"accepted": not verdict.message, "message": verdict.message, "warnings": list(verdict.warnings)}


def _cron_activity(case: Case) -> Answer:
    try:
        found = cron_activity(read_cron(case.metadata), datetime.fromisoformat(case.at))
    except CronError as error:
        return {"error": str(error)}
    return {"active": found.is_active, "value": found.value}


def _cron_metadata(case: Case) -> Answer:
    try:
        read_cron(case.metadata)
    except CronError as error:
        return {"valid": False, "message": str(error)}
    return {"valid": True}


def _metric_name(case: Case) -> Answer:
    assert case.trigger["type"] == "cron"
    return {"name": cron_metric_name(read_cron(case.trigger["metadata"]), case.trigger_index)}


def _fallback(case: Case) -> Answer:
    modifiers = msgspec.convert(case.scaling_modifiers or {}, ScalingModifiers)
    spec = ScaledObjectSpec(fallback=fallback_of(case.fallback), advanced=AdvancedOptions(scaling_modifiers=modifiers))
    metric = PolledMetric("some-metric", float(case.target["value"]), case.target["type"])
    reading = (
        ScalerReading(error="the scaler failed")
        if case.scaler.get("error")
        else ScalerReading(round(case.scaler["value"] * 1000))
    )
    size = TargetSize(case.current_replicas, case.ready_replicas)
    found = with_fallback(spec, metric, reading, health_of(case.health), size)
    answer: Answer = (
        {"error": True} if found.error else {"valueMilli": found.value_milli, "usedFallback": found.is_fallback}
    )
    answer["health"] = {name: msgspec.to_builtins(one) for name, one in found.health.items()}
    if found.has_fallback is not None:
        answer["fallbackCondition"] = "True" if found.has_fallback else "False"
    return answer


def _formula(case: Case) -> Answer:
    modifiers = ScalingModifiers(formula=case.formula, target=case.target or "")
    found = composite_metric(modifiers, values_of(case), fallback_of(case.fallback))
    if found.error:
        return {"error": found.error}
    return {"metricName": found.name, "valueMilli": found.value_milli}


def _formula_input(case: Case) -> Answer:
    return {"inputs": formula_inputs(values_of(case), fallback_of(case.fallback))}


def _executor(case: Case) -> Answer:
    created = moment(case.creation_timestamp)
    assert created is not None
    target = Target(case.current_replicas or 0, created, moment(case.status.get("lastActiveTime")))
    triggers = TriggerState(case.active, case.error)
    found = activation(spec_of({"fallback": case.fallback, **case.spec}), case.annotations, triggers, target, NOW)
    return {
        "replicas": target.replicas if found.replicas is None else found.replicas,
        "conditions": [_condition(one) for one in found.conditions if one != READY],
        "lastActiveTimeSet": found.notes_activity,
    }


def _condition(one: Condition) -> Answer:
    return {"type": one.type, "status": one.status, "reason": one.reason}


def _hpa_health(case: Case) -> Answer:
    conditions = None if case.hpa_conditions is None else msgspec.convert(case.hpa_conditions, tuple[Condition, ...])
    found = autoscaler_health(conditions)
    return {"hpaActive": None if found is None else {"status": found.status, "reason": found.reason}}


def _pause(case: Case) -> Answer:
    return {
        "hasPausedAnnotation": notes.has_paused_annotation(case.annotations),
        "paused": notes.is_paused(case.annotations),
        "scaleInPaused": notes.is_scale_in_paused(case.annotations),
        "scaleOutPaused": notes.is_scale_out_paused(case.annotations),
        "forceActivation": notes.is_activation_forced(case.annotations),
    }


_LEVELS: Mapping[str, Callable[[Case], Answer]] = {
    "webhook": _webhook,
    "cron-activity": _cron_activity,
    "cron-metadata": _cron_metadata,
    "metric-name": _metric_name,
    "fallback": _fallback,
    "formula": _formula,
    "formula-input": _formula_input,
    "executor": _executor,
    "hpa-health": _hpa_health,
    "pause-annotations": _pause,
}
