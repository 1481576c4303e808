"""Replaces the metric of a trigger that fails, after as many failures in a row as the ScaledObject allows."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, structs

from shoal.autoscale.scaled_objects.metric_names import COMPOSITE
from shoal.autoscale.scaled_objects.spec import (
    AVERAGE_VALUE,
    BY_FORMULA,
    CURRENT_IF_HIGHER,
    CURRENT_IF_LOWER,
    CURRENT_REPLICAS,
    VALUE,
    Fallback,
    Health,
    ScaledObjectSpec,
)

HAPPY, FAILING = "Happy", "Failing"
NO_READY_PODS = "error performing fallback"

PLACEHOLDER_MILLI = -1000
"""Of a failing trigger that the formula sees as nil."""


class ScalerReading(Struct, frozen=True):
    """What a trigger returned: a value, or an error."""

    value_milli: int = 0
    error: str = ""


class PolledMetric(Struct, frozen=True):
    name: str
    target: float
    target_type: str = AVERAGE_VALUE


class TargetSize(Struct, frozen=True):
    """`None`: it cannot be read."""

    current: int | None = None
    ready: int | None = None


class FallbackResult(Struct, frozen=True):
    health: Mapping[str, Health]
    value_milli: int = 0
    is_fallback: bool = False
    name: str = ""
    error: str = ""
    has_fallback: bool | None = None
    """The status of the condition Fallback; `None`: it stays as it is."""


def is_valid_fallback(spec: ScaledObjectSpec) -> bool:
    fallback, modifiers = spec.fallback, spec.modifiers()
    if fallback is None or fallback.failure_threshold < 0 or fallback.replicas < 0:
        return False
    return modifiers is None or _whole_target(modifiers.target) > 0


def _whole_target(text: str) -> int:
    try:
        return int(text) if text.strip() == text and "_" not in text else 0
    except ValueError:
        return 0


def with_fallback(
    spec: ScaledObjectSpec,
    metric: PolledMetric,
    reading: ScalerReading,
    health: Mapping[str, Health],
    size: TargetSize,
) -> FallbackResult:
    fallback = spec.fallback
    if fallback is None or not is_valid_fallback(spec):
        return FallbackResult(health, reading.value_milli, name=metric.name, error=reading.error)
    if not reading.error:
        noted = {**health, metric.name: Health(0, HAPPY)}
        return FallbackResult(noted, reading.value_milli, name=metric.name, has_fallback=_exceeds(noted, fallback))
    failures = (health.get(metric.name, Health()).number_of_failures or 0) + 1
    noted = {**health, metric.name: Health(failures, FAILING)}
    result = FallbackResult(noted, name=metric.name, has_fallback=_exceeds(noted, fallback))
    if failures <= fallback.failure_threshold:
        return structs.replace(result, error=reading.error)
    if fallback.behavior == BY_FORMULA:
        return structs.replace(result, value_milli=PLACEHOLDER_MILLI)
    if size.current is None and fallback.behavior in (CURRENT_REPLICAS, CURRENT_IF_HIGHER, CURRENT_IF_LOWER):
        return structs.replace(result, error=reading.error)
    return _replaced(spec, metric, fallback, size, result)


def _exceeds(health: Mapping[str, Health], fallback: Fallback) -> bool:
    return any(
        one.status == FAILING and (one.number_of_failures or 0) > fallback.failure_threshold for one in health.values()
    )


def _replaced(
    spec: ScaledObjectSpec, metric: PolledMetric, fallback: Fallback, size: TargetSize, result: FallbackResult
) -> FallbackResult:
    """A value with which the autoscaler comes to the wanted number of replicas."""
    modifiers = spec.modifiers()
    replicas = float(_wanted(fallback, size.current or 0))
    kind = modifiers.metric_type if modifiers is not None else metric.target_type
    if kind == VALUE:
        if not size.ready:
            return structs.replace(result, error=NO_READY_PODS)
        replicas /= size.ready
    target = float(modifiers.target) if modifiers is not None else metric.target
    name = COMPOSITE if modifiers is not None else metric.name
    return structs.replace(result, value_milli=int(target * 1000 * replicas), is_fallback=True, name=name)


def _wanted(fallback: Fallback, current: int) -> int:
    if fallback.behavior == CURRENT_REPLICAS:
        return current
    if fallback.behavior == CURRENT_IF_HIGHER:
        return max(current, fallback.replicas)
    if fallback.behavior == CURRENT_IF_LOWER:
        return min(current, fallback.replicas)
    return fallback.replicas
