"""Computes the composite metric of a ScaledObject by its formula, and whether it is active by it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from msgspec import Struct

from shoal.autoscale.scaled_objects.formula import Formula
from shoal.autoscale.scaled_objects.formula_functions import FormulaError
from shoal.autoscale.scaled_objects.metric_names import COMPOSITE
from shoal.autoscale.scaled_objects.spec import (
    BY_FORMULA,
    RESOURCE_TRIGGERS,
    UTILIZATION,
    Fallback,
    ScaledObjectSpec,
    ScalingModifiers,
    Trigger,
)

_DUMMY = -1.0
"""Of every trigger when a formula is checked."""


class TriggerValue(Struct, frozen=True):
    value: float | None
    """`None`: the trigger failed."""
    failures: int | None = None
    """In a row, if they are known."""


class CompositeMetric(Struct, frozen=True):
    value_milli: int = 0
    error: str = ""
    name: str = COMPOSITE


def formula_names(triggers: Iterable[Trigger]) -> list[str]:
    """The triggers that a formula may name: those with a name that an external metric belongs to."""
    return [one.name for one in triggers if one.name and one.type not in RESOURCE_TRIGGERS]


def formula_inputs(values: Mapping[str, TriggerValue], fallback: Fallback | None) -> dict[str, float | None]:
    """A trigger is nil if it has failed too often and the fallback is left to the formula."""
    return {name: None if _has_failed(one, fallback) else one.value for name, one in values.items()}


def _has_failed(one: TriggerValue, fallback: Fallback | None) -> bool:
    if fallback is None or fallback.behavior != BY_FORMULA or one.failures is None:
        return False
    return one.failures > fallback.failure_threshold


def composite_metric(
    modifiers: ScalingModifiers, values: Mapping[str, TriggerValue], fallback: Fallback | None
) -> CompositeMetric:
    unknown = [name for name, one in values.items() if one.value is None and not _has_failed(one, fallback)]
    if unknown:
        return CompositeMetric(error=f"trigger {unknown[0]} has no value")
    try:
        found = Formula(modifiers.formula, values).evaluate(formula_inputs(values, fallback))
        if found is None:
            found = _of_fallback(modifiers, fallback)
    except FormulaError as error:
        return CompositeMetric(error=f"error trying to run custom formula: {error}")
    if not math.isfinite(found):
        return CompositeMetric(error=f"error trying to run custom formula: the result is {found}")
    return CompositeMetric(int(found * 1000))


def _of_fallback(modifiers: ScalingModifiers, fallback: Fallback | None) -> float:
    if fallback is None:
        raise FormulaError("scalingModifiers formula evaluated to nil but no fallback is configured")
    return fallback.replicas * target_of(modifiers)


def target_of(modifiers: ScalingModifiers) -> float:
    try:
        target = float(modifiers.target)
    except ValueError:
        target = math.nan
    if not target > 0:
        raise FormulaError("error converting target for scalingModifiers (string->float) to valid target")
    return target


def is_active_by_formula(modifiers: ScalingModifiers, metric: CompositeMetric) -> bool:
    """Whether the composite metric is above the activation target, which is 0 if none is set."""
    if metric.error:
        return False
    try:
        return metric.value_milli / 1000 > float(modifiers.activation_target or 0)
    except ValueError:
        return False


def modifiers_fault(spec: ScaledObjectSpec) -> str:
    """What is wrong with the modifiers of a ScaledObject; nothing if it has none."""
    modifiers = spec.modifiers()
    if modifiers is None:
        return ""
    if not modifiers.formula:
        return "error ScalingModifiers.Formula is mandatory"
    if not modifiers.target:
        return "error validating formula in ScalingModifiers\nformula is given but target is empty"
    names = formula_names(spec.triggers)
    try:
        Formula(modifiers.formula, names).evaluate(dict.fromkeys(names, _DUMMY))
    except FormulaError as error:
        return f"error validating formula in ScalingModifiers\n{error}"
    try:
        target_of(modifiers)
    except FormulaError as error:
        return f"error validating target in ScalingModifiers\n{error}"
    if modifiers.metric_type == UTILIZATION:
        return (
            "error validating target in ScalingModifiers\n"
            "error trigger type is Utilization, but it needs to be AverageValue or Value for external metrics"
        )
    return ""
