"""Decides the size of a ScaledObject's target beside its autoscaler: from and to zero, the idle and the minimum count.

A target becomes active at once, and inactive after its cooldown. It never goes to zero because a trigger fails.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from msgspec import Struct

from shoal.api.conditions import Condition
from shoal.autoscale.scaled_objects.annotations import (
    is_activation_forced,
    is_paused,
    is_scale_in_paused,
    is_scale_out_paused,
)
from shoal.autoscale.scaled_objects.spec import USUAL_COOLDOWN_S, ScaledObjectSpec

READY = Condition("Ready", "True", "ScaledObjectReady", "ScaledObject is defined correctly and is ready for scaling")
_PAUSED = Condition("Paused", "True", "ScaledObjectPaused", "ScaledObject is paused")
_ACTIVE = Condition("Active", "True", "ScalerActive", "Scaling is performed because triggers are active")
_FORCED = Condition(
    "Active", "True", "ScalerActive", "Scaling is performed because activation is being forced by annotation"
)
_INACTIVE = Condition("Active", "False", "ScalerNotActive", "Scaling is not performed because triggers are not active")
_COOLING = Condition("Active", "False", "ScalerCooldown", "Scaler cooling down because triggers are not active")
_PARTLY = Condition(
    "Ready", "Unknown", "PartialTriggerError", "Some triggers defined in ScaledObject are not working correctly"
)
_FAILING = Condition("Ready", "False", "TriggerError", "Triggers defined in ScaledObject are not working correctly")


class TriggerState(Struct, frozen=True):
    """What the triggers of a ScaledObject said in one poll."""

    is_active: bool
    has_error: bool = False


class Target(Struct, frozen=True):
    """The scaled target, and what is known of its past."""

    replicas: int
    created: datetime
    last_active: datetime | None = None


class ActivationDecision(Struct, frozen=True):
    conditions: tuple[Condition, ...]
    replicas: int | None = None
    """The size to write, if any."""
    notes_activity: bool = False
    """Whether this moment is written as the time of the last activity, once the size has been written."""
    reason: str = ""
    """Of the Event about the written size, which has none if it is raised to the minimum."""


def activation(
    spec: ScaledObjectSpec, annotations: Mapping[str, str], triggers: TriggerState, target: Target, now: datetime
) -> ActivationDecision:
    if is_paused(annotations):
        return ActivationDecision((READY, _PAUSED))
    is_forced = is_activation_forced(annotations)
    if triggers.is_active or is_forced:
        return _active(spec, annotations, triggers, target.replicas, _FORCED if is_forced else _ACTIVE)
    return _inactive(spec, annotations, triggers, target, now)


def _active(
    spec: ScaledObjectSpec,
    annotations: Mapping[str, str],
    triggers: TriggerState,
    replicas: int,
    active: Condition,
) -> ActivationDecision:
    least = spec.min_replica_count or 0
    if replicas == 0 or (spec.idle_replica_count is not None and replicas < least):
        if is_scale_out_paused(annotations):
            return ActivationDecision((READY, active))
        return ActivationDecision((READY, active), max(least, 1), True, "KEDAScaleTargetActivated")
    if triggers.has_error:
        return ActivationDecision((_PARTLY, active))
    return ActivationDecision((READY, active), notes_activity=True)


def _inactive(
    spec: ScaledObjectSpec, annotations: Mapping[str, str], triggers: TriggerState, target: Target, now: datetime
) -> ActivationDecision:
    least, idle, replicas = spec.min_replica_count or 0, spec.idle_replica_count, target.replicas
    if triggers.has_error and spec.fallback is not None and spec.fallback.replicas != 0:
        # An autoscaler is switched off at zero, and could not come to the count of the fallback.
        return ActivationDecision((READY, _INACTIVE))
    if triggers.has_error and spec.fallback is None:
        return ActivationDecision((_FAILING, _INACTIVE))
    if (idle is not None and replicas > idle) or (replicas > 0 and least == 0):
        if is_scale_in_paused(annotations):
            return ActivationDecision((READY, _INACTIVE))
        if not _has_cooled_down(spec, target, now):
            return ActivationDecision((READY, _COOLING))
        size = least if idle is None else idle
        return ActivationDecision((READY, _INACTIVE), size, reason="KEDAScaleTargetDeactivated")
    if idle is None and replicas < least:
        return ActivationDecision((READY, _INACTIVE), least)
    return ActivationDecision((READY, _INACTIVE))


def _has_cooled_down(spec: ScaledObjectSpec, target: Target, now: datetime) -> bool:
    """A target that was never active was scaled by something else: it only waits for the initial cooldown."""
    if target.last_active is None:
        return (now - target.created).total_seconds() >= (spec.initial_cooldown_period or 0)
    cooldown_s = USUAL_COOLDOWN_S if spec.cooldown_period is None else spec.cooldown_period
    return (now - target.last_active).total_seconds() >= cooldown_s


def autoscaler_health(conditions: tuple[Condition, ...] | None) -> Condition | None:
    """HPAActive from the conditions of the autoscaler; `None`: nothing was observed and the condition stays."""
    found = next((one for one in conditions or () if one.type == "ScalingActive"), None)
    if found is None:
        return None
    if found.is_true():
        return Condition("HPAActive", "True", "HPAActive", "HPA is actively scaling")
    if found.reason == "ScalingDisabled":
        return Condition("HPAActive", "True", "ScalingDisabled", found.message)
    reason = found.reason or "HPAMetricsUnavailable"
    return Condition("HPAActive", "False", reason, f"HPA is not actively scaling: {found.message}")
