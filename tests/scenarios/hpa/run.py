"""Decides a case about a HorizontalPodAutoscaler by the code that the controller of the embedded cluster runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from shoal.api.selectors import LabelSelector
from shoal.autoscale.replicas.behavior import tolerances_of, with_defaults
from shoal.autoscale.replicas.history import change_within, first_seen, with_event
from shoal.autoscale.replicas.metrics import MeasuredMetric, measured
from shoal.autoscale.replicas.passes import PassResult, ScaleDecision, ScaleTarget, TargetFacts
from shoal.autoscale.replicas.proposals import PassFacts, average, utilization
from shoal.autoscale.replicas.rate_limits import PastSizes, SizeBounds, limited, limited_without_behavior
from shoal.autoscale.replicas.reconcile import api_version_fault, concluded, decide, without_scale
from shoal.autoscale.replicas.samples import MetricFault, grouped, requests_of
from shoal.autoscale.replicas.spec import AutoscalerStatus
from shoal.autoscale.replicas.stabilization import stabilized, stabilized_globally
from shoal.units.quantity import Quantity

from .case import (
    NOW,
    NOW_S,
    Case,
    autoscaler_of,
    behavior_of,
    events_of,
    history_of,
    pods_of,
    reading_of,
    rules_of,
    samples_of,
    settings_of,
)

Answer = dict[str, Any]


def decided(case: Case) -> Answer:
    return _LEVELS[case.level](case)


def _reconcile(case: Case) -> Answer:
    autoscaler, settings, scale = autoscaler_of(case), settings_of(case), case.scale
    history = history_of(case.history)
    version = autoscaler.spec.scale_target_ref.api_version
    if fault := api_version_fault(version):
        decision = without_scale(autoscaler, history, fault, NOW, is_spec_error=True)
    elif scale.get("getError"):
        decision = without_scale(autoscaler, history, "the scale cannot be read", NOW)
    else:
        around = TargetFacts(
            ScaleTarget(scale.get("specReplicas", 0), scale.get("statusReplicas", 0), scale.get("selector", "")),
            pods_of(case),
            [reading_of(metric, case.metrics) for metric in autoscaler.spec.metrics],
            {
                f"other-{number}": LabelSelector(match_labels=labels).selector()
                for number, labels in enumerate(case.other_hpa_selectors)
            },
        )
        decision = decide(autoscaler, around, history, settings, NOW)
    fault = "the scale cannot be written" if scale.get("updateError") else ""
    return _pass_answer(decision, concluded(autoscaler, decision, settings, NOW, fault))


def _pass_answer(decision: ScaleDecision, end: PassResult) -> Answer:
    error = "none" if not end.error else "spec" if end.is_spec_error else "internal"
    metrics = [_metric_status(one) for one in end.status.current_metrics or () if one["type"]]
    return {
        "desiredReplicas": end.status.desired_replicas,
        "rescaled": end.rescaled,
        "conditions": _conditions(end.status),
        "action": end.action,
        "errorClass": error,
        "metricComputation": {one.type: {"action": one.action, "error": one.error} for one in decision.computations},
        "cpuAverageUtilization": next(
            (one["averageUtilization"] for one in metrics if "averageUtilization" in one), None
        ),
        "metricsStatus": metrics,
    }


def _conditions(status: AutoscalerStatus) -> list[Answer]:
    return [{"type": one.type, "status": one.status, "reason": one.reason} for one in status.conditions]


def _metric_status(written: Answer) -> Answer:
    (source,) = (value for key, value in written.items() if key != "type")
    return {"type": written["type"], **_current(source["current"])}


def _current(current: Answer) -> Answer:
    shown = {f"{key}Milli": Quantity.parse(text).milli_value() for key, text in current.items() if key in _MILLI}
    return shown | {key: value for key, value in current.items() if key not in _MILLI}


_MILLI = frozenset({"averageValue", "value"})


def _proposal(case: Case) -> Answer:
    autoscaler, settings, scale = autoscaler_of(case), settings_of(case), case.scale
    (metric,) = autoscaler.spec.metrics
    about = PassFacts(
        scale.get("specReplicas", 0),
        scale.get("statusReplicas", 0),
        pods_of(case),
        tolerances_of(autoscaler.spec.behavior, settings),
        settings,
        NOW_S,
    )
    found = measured(metric, reading_of(metric, case.metrics), about, autoscaler.namespace)
    if not isinstance(found, MeasuredMetric):
        return {"error": True, "cause": found.fault}
    shown = _metric_status(found.status)
    return {"proposal": found.proposal.replicas, "current": {key: shown[key] for key in shown if key != "type"}}


def _rate_limit(case: Case) -> Answer:
    bounds, behavior = SizeBounds(case.min_replicas, case.max_replicas), behavior_of(case.behavior)
    if behavior is None:
        found = limited_without_behavior(case.recommendation, case.current_replicas, bounds, case.scale_up_limit_factor)
    else:
        past = PastSizes(case.current_replicas, history_of(case.history), NOW_S)
        found = limited(case.recommendation, bounds, with_defaults(behavior, settings_of(case)), past)
    return {"desiredReplicas": found.replicas, "reason": found.reason}


def _stabilise(case: Case) -> Answer:
    behavior, settings = behavior_of(case.behavior), settings_of(case)
    kept = first_seen(history_of(case.history), case.current_replicas, NOW_S).recommendations or ()
    if behavior is None:
        found = stabilized_globally(case.recommendation, kept, settings.downscale_stabilization_s, NOW_S)
    else:
        filled = with_defaults(behavior, settings)
        found = stabilized(case.recommendation, case.current_replicas, kept, filled, NOW_S)
    return {
        "stabilised": found.replicas,
        "storedCount": len(found.kept),
        "storedRecommendations": [one.replicas for one in found.kept],
    }


def _scale_events(case: Case) -> Answer:
    before = events_of(case.events_before)
    after = with_event(before, rules_of(case.scaling_rules), case.replica_change, NOW_S)
    return {"changeInLast60s": change_within(before, 60, NOW_S), "changesAfter": [one.change for one in after]}


def _classify(case: Case) -> Answer:
    groups = grouped(pods_of(case), samples_of(case.pod_metrics), case.resource, settings_of(case), NOW_S)
    return {
        "counted": groups.counted,
        "unready": sorted(groups.unready),
        "missing": sorted(groups.missing),
        "ignored": sorted(groups.ignored),
    }


def _pod_requests(case: Case) -> Answer:
    has_pod_level = settings_of(case).has_pod_level_resources
    found = requests_of(pods_of(case), case.resource, case.container, has_pod_level=has_pod_level)
    return {"error": found.message} if isinstance(found, MetricFault) else {"requestsMilli": found}


def _ratio(case: Case) -> Answer:
    if case.target_utilization is not None:
        found = utilization(case.pod_usage_milli, case.pod_request_milli, case.target_utilization)
    else:
        found = average(case.pod_usage_milli, case.target_average_milli or 0)
    if isinstance(found, MetricFault):
        return {"error": found.message}
    return {"ratio": found.ratio, "utilization": found.utilization, "averageValueMilli": found.average_milli}


_LEVELS: Mapping[str, Callable[[Case], Answer]] = {
    "reconcile": _reconcile,
    "proposal": _proposal,
    "rate-limit": _rate_limit,
    "stabilise": _stabilise,
    "scale-events": _scale_events,
    "classify-pods": _classify,
    "pod-requests": _pod_requests,
    "utilisation-ratio": _ratio,
}
