"""Computes the replica count that one metric asks for, before stabilization, rate limits, minimum and maximum.

The arithmetic is that of Kubernetes, with its integer divisions and its floating-point products, because both decide
at the borders. Figures that would overflow there stay at the largest number.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from shoal.api.pod import Pod
from shoal.autoscale.replicas.behavior import Tolerances
from shoal.autoscale.replicas.rate_limits import MAX_REPLICAS
from shoal.autoscale.replicas.samples import CountedPods, MetricFault, MetricSample, grouped, is_ready, requests_of
from shoal.autoscale.replicas.spec import AutoscalerSettings
from shoal.units.quantity import MAX_INT64

_NO_PODS = MetricFault("no pods returned by selector while calculating replica count")
_NO_SAMPLES = MetricFault("did not receive metrics for targeted pods (pods might be unready)")
_STRANGERS = MetricFault("no metrics returned matched known pods")


class Proposal(Struct, frozen=True):
    replicas: int
    usage_milli: int
    """The average per pod, or the value of the whole."""
    utilization: int | None = None
    """In percent of the request."""


class UsageRatio(Struct, frozen=True):
    """The ratio of usage and target, and the figures that show it."""

    ratio: float
    average_milli: int
    utilization: int | None = None


class PassFacts(Struct, frozen=True):
    """What is equal for all metrics of one pass."""

    current: int
    """The replica count in the spec of the target."""
    reported: int
    """The replica count in the status of the target."""
    pods: Sequence[Pod]
    tolerances: Tolerances
    settings: AutoscalerSettings
    now_s: float


# -- averages over pods ---------------------------------------------------------------------------------------------


def utilization_proposal(
    samples: Mapping[str, MetricSample], resource: str, container: str, target: int, about: PassFacts
) -> Proposal | MetricFault:
    """`target`: in percent of the request."""
    groups = _groups(samples, resource, about)
    if isinstance(groups, MetricFault):
        return groups
    requests = requests_of(about.pods, resource, container, has_pod_level=about.settings.has_pod_level_resources)
    if isinstance(requests, MetricFault):
        return requests

    def missing_down(pod: str) -> int:
        return _quotient(requests[pod] * max(100, target), 100)

    def measure(values: Mapping[str, int]) -> UsageRatio | MetricFault:
        return utilization(values, requests, target)

    return _proposed(groups, measure, missing_down, about)


def average_proposal(
    samples: Mapping[str, MetricSample], resource: str, target_milli: int, about: PassFacts
) -> Proposal | MetricFault:
    """`resource` is empty for a metric of pods."""
    groups = _groups(samples, resource, about)
    if isinstance(groups, MetricFault):
        return groups
    return _proposed(groups, lambda values: average(values, target_milli), lambda _pod: target_milli, about)


def utilization(values: Mapping[str, int], requests: Mapping[str, int], target: int) -> UsageRatio | MetricFault:
    """Samples of pods without a request are not of this target and do not count."""
    known = [pod for pod in values if pod in requests]
    requested = sum(requests[pod] for pod in known)
    if requested == 0:
        return _STRANGERS
    used = sum(values[pod] for pod in known)
    percent = _quotient(used * 100, requested)
    return UsageRatio(_ratio(percent, target), _quotient(used, len(known)), percent)


def average(values: Mapping[str, int], target_milli: int) -> UsageRatio:
    mean = _quotient(sum(values.values()), len(values))
    return UsageRatio(_ratio(mean, target_milli), mean)


class _Grouped(Struct, frozen=True):
    groups: CountedPods
    values: dict[str, int]
    """The samples that count."""


def _groups(samples: Mapping[str, MetricSample], resource: str, about: PassFacts) -> _Grouped | MetricFault:
    if not about.pods:
        return _NO_PODS
    groups = grouped(about.pods, samples, resource, about.settings, about.now_s)
    left_out = groups.ignored | groups.unready
    values = {pod: sample.value_milli for pod, sample in samples.items() if pod not in left_out}
    return _Grouped(groups, values) if values else _NO_SAMPLES


def _proposed(
    counted: _Grouped,
    measure: Callable[[Mapping[str, int]], UsageRatio | MetricFault],
    missing_down: Callable[[str], int],
    about: PassFacts,
) -> Proposal | MetricFault:
    """Pods without a sample count so that the change is smaller: as idle if it grows, as busy if it shrinks.

    They do not count if the others are exactly at the target.
    """
    groups, values = counted.groups, dict(counted.values)
    usage = measure(values)
    if isinstance(usage, MetricFault):
        return usage
    ratio = usage.ratio

    def answer(replicas: int) -> Proposal:
        return Proposal(replicas, usage.average_milli, usage.utilization)

    grows_with_unready = bool(groups.unready) and ratio > 1.0
    if not grows_with_unready and not groups.missing:
        return answer(about.current if about.tolerances.allow(ratio) else whole(ratio * groups.counted))
    if ratio < 1.0:
        values |= {pod: missing_down(pod) for pod in groups.missing}
    elif ratio > 1.0:
        values |= dict.fromkeys(groups.missing, 0)
    if grows_with_unready:
        values |= dict.fromkeys(groups.unready, 0)
    again = measure(values)
    if isinstance(again, MetricFault):
        return again
    turns = (ratio < 1.0 < again.ratio) or (again.ratio < 1.0 < ratio)
    if turns or about.tolerances.allow(again.ratio):
        return answer(about.current)
    replicas = whole(again.ratio * len(values))
    if (again.ratio < 1.0 and replicas > about.current) or (again.ratio > 1.0 and replicas < about.current):
        return answer(about.current)
    return answer(replicas)


# -- values of a whole ----------------------------------------------------------------------------------------------


def value_proposal(value_milli: int, target_milli: int, about: PassFacts) -> Proposal | MetricFault:
    ratio = _ratio(value_milli, target_milli)
    if about.current == 0:
        return Proposal(whole(ratio), value_milli)
    if about.tolerances.allow(ratio):
        return Proposal(about.current, value_milli)
    if not about.pods:
        return MetricFault(f"unable to calculate ready pods: {_NO_PODS.message}")
    return Proposal(whole(ratio * sum(map(is_ready, about.pods))), value_milli)


def per_pod_proposal(value_milli: int, target_milli: int, about: PassFacts) -> Proposal:
    """The average is over the replica count in the status of the target; of no replicas it is the whole value."""
    replicas = about.reported
    if not about.tolerances.allow(_ratio(value_milli, target_milli * replicas)):
        replicas = whole(_ratio(value_milli, target_milli))
    average_milli = value_milli if about.reported == 0 else math.ceil(float(value_milli) / float(about.reported))
    return Proposal(replicas, min(average_milli, MAX_INT64))


def total(values_milli: Sequence[int]) -> int:
    return max(-MAX_INT64 - 1, min(sum(values_milli), MAX_INT64))


def whole(count: float) -> int:
    """Rounded up; a replica count is a 32-bit number."""
    if math.isnan(count):
        return 0
    return MAX_REPLICAS if count >= MAX_REPLICAS else max(-MAX_REPLICAS - 1, math.ceil(max(count, -float(2**31))))


def _ratio(value: int, target: int) -> float:
    if target == 0:
        return math.nan if value == 0 else math.copysign(math.inf, value)
    return float(value) / float(target)


def _quotient(value: int, divisor: int) -> int:
    """Without the remainder, also below zero."""
    return value // divisor if value >= 0 else -(-value // divisor)
