"""Limits how fast a replica count changes, and keeps it between the minimum and the maximum."""

from __future__ import annotations

import math

from msgspec import Struct

from shoal.autoscale.replicas.behavior import DISABLED, MIN_CHANGE, PODS
from shoal.autoscale.replicas.history import AutoscalerHistory, change_within
from shoal.autoscale.replicas.spec import Behavior, ScalingPolicy, ScalingRules

MAX_REPLICAS = 2**31 - 1
_ALWAYS_ALLOWED = 4


class LimitedSize(Struct, frozen=True):
    replicas: int
    reason: str
    """Of ScalingLimited."""
    message: str


class SizeBounds(Struct, frozen=True):
    least: int
    most: int


class PastSizes(Struct, frozen=True):
    """The size now, and how it came about."""

    current: int
    history: AutoscalerHistory
    now_s: float

    def start(self, period_s: float) -> int:
        """The size at the start of the period."""
        added = change_within(self.history.ups, period_s, self.now_s)
        removed = change_within(self.history.downs, period_s, self.now_s)
        return self.current - added + removed


_FASTER = ("ScaleUpLimit", "the desired replica count is increasing faster than the maximum scale rate")
_SLOWER = ("ScaleDownLimit", "the desired replica count is decreasing faster than the maximum scale rate")
_TOO_MANY = ("TooManyReplicas", "the desired replica count is more than the maximum replica count")
_TOO_FEW = ("TooFewReplicas", "the desired replica count is less than the minimum replica count")
_WITHIN = ("DesiredWithinRange", "the desired count is within the acceptable range")


def limited_without_behavior(desired: int, current: int, bounds: SizeBounds, growth_factor: float) -> LimitedSize:
    growth = int(max(growth_factor * current, _ALWAYS_ALLOWED))
    most, why = (growth, _FASTER) if bounds.most > growth else (bounds.most, _TOO_MANY)
    if desired < bounds.least:
        return LimitedSize(bounds.least, *_TOO_FEW)
    if desired > most:
        return LimitedSize(most, *why)
    return LimitedSize(desired, *_WITHIN)


def limited(desired: int, bounds: SizeBounds, behavior: Behavior, past: PastSizes) -> LimitedSize:
    """`behavior` has been filled in."""
    current = past.current
    if desired > current:
        limit = max(_limit(past, behavior.scale_up or ScalingRules(), is_up=True), current)
        most, why = (limit, _FASTER) if bounds.most > limit else (bounds.most, _TOO_MANY)
        if desired > most:
            return LimitedSize(most, *why)
    elif desired < current:
        limit = min(_limit(past, behavior.scale_down or ScalingRules(), is_up=False), current)
        least, why = (limit, _SLOWER) if bounds.least < limit else (bounds.least, _TOO_FEW)
        if desired < least:
            return LimitedSize(least, *why)
    return LimitedSize(desired, *_WITHIN)


def _limit(past: PastSizes, rules: ScalingRules, *, is_up: bool) -> int:
    """`Max` selects the policy with the largest change, `Min` the one with the smallest."""
    if rules.select_policy == DISABLED or not rules.policies:
        return past.current
    sizes = [_size(policy, past.start(policy.period_seconds), is_up=is_up) for policy in rules.policies]
    return max(sizes) if is_up == (rules.select_policy != MIN_CHANGE) else min(sizes)


def _size(policy: ScalingPolicy, start: int, *, is_up: bool) -> int:
    """Growth by percent is rounded up, because a small target would never grow otherwise; the remainder is cut off."""
    change = policy.value if is_up else -policy.value
    if policy.type == PODS:
        return start + change
    size = start * (1 + change / 100)
    return math.ceil(size) if is_up else int(size)
