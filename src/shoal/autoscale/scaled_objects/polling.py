"""Combines what the triggers of a ScaledObject said in one poll: fallback, formula, activity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from shoal.autoscale.scaled_objects.fallback import PolledMetric, ScalerReading, TargetSize, with_fallback
from shoal.autoscale.scaled_objects.metric_names import COMPOSITE
from shoal.autoscale.scaled_objects.modifiers import (
    CompositeMetric,
    TriggerValue,
    composite_metric,
    is_active_by_formula,
)
from shoal.autoscale.scaled_objects.spec import Health, ScaledObjectSpec, ScalingModifiers
from shoal.autoscale.scaled_objects.trigger_sources import ReadTrigger


class PolledTrigger(Struct, frozen=True):
    trigger: ReadTrigger
    reading: ScalerReading
    is_active: bool = False


class Polled(Struct, frozen=True):
    """What the triggers of one ScaledObject said."""

    values_milli: Mapping[str, int] = {}
    """By the name of the external metric."""
    errors: Mapping[str, str] = {}
    is_active: bool = False
    active: tuple[str, ...] = ()
    """The metrics of the triggers that are active."""
    health: Mapping[str, Health] = {}
    has_fallback: bool | None = None
    """The status of the condition Fallback; `None`: it stays as it is."""

    @property
    def has_error(self) -> bool:
        return bool(self.errors)


def combined(
    spec: ScaledObjectSpec, found: Sequence[PolledTrigger], before: Mapping[str, Health], size: TargetSize
) -> Polled:
    """`before`: the health of the metrics; `size`: of the target, for fallbacks that depend on it.

    Triggers without an external metric, cpu and memory, are read by the autoscaler. A target that has no others is
    always active. A trigger whose value is replaced by the fallback is active and has no error.
    """
    external = [one for one in found if one.trigger.name]
    health = {name: one for name, one in before.items() if any(one_.trigger.name == name for one_ in external)}
    values, errors, active = dict[str, int](), dict[str, str](), list[str]()
    has_fallback: bool | None = None
    replaced: int | None = None
    for one in external:
        name = one.trigger.name
        metric = PolledMetric(name, one.trigger.target, one.trigger.target_type)
        result = with_fallback(spec, metric, one.reading, health, size)
        health, has_fallback = dict(result.health), result.has_fallback
        if result.error:
            errors[name] = result.error
            continue
        values[name] = result.value_milli
        if result.is_fallback:
            replaced = result.value_milli
        if result.is_fallback or one.is_active:
            active.append(name)
    modifiers = spec.modifiers()
    if modifiers is None:
        return Polled(values, errors, bool(active) or not external, tuple(active), health, has_fallback)
    composite = _composite(spec, modifiers, external, health, replaced)
    is_active = not errors and is_active_by_formula(modifiers, composite)
    if composite.error and not errors:
        errors[COMPOSITE] = composite.error
    value = {} if errors else {COMPOSITE: composite.value_milli}
    return Polled(value, errors, is_active, (COMPOSITE,) if is_active else (), health, has_fallback)


def _composite(
    spec: ScaledObjectSpec,
    modifiers: ScalingModifiers,
    external: Sequence[PolledTrigger],
    health: Mapping[str, Health],
    replaced: int | None,
) -> CompositeMetric:
    if replaced is not None:
        return CompositeMetric(replaced)
    values = {
        one.trigger.trigger_name: TriggerValue(
            None if one.reading.error else one.reading.value_milli / 1000,
            health[one.trigger.name].number_of_failures if one.trigger.name in health else None,
        )
        for one in external
        if one.trigger.trigger_name
    }
    return composite_metric(modifiers, values, spec.fallback)
