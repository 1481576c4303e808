"""Stabilizes a recommendation: a target grows no further than to the lowest, and shrinks no further than to the highest
one of the recent past."""

from __future__ import annotations

from msgspec import Struct

from shoal.autoscale.replicas.history import Recommendation, with_recommendation
from shoal.autoscale.replicas.spec import Behavior, ScalingRules

_HIGHEST = "recent recommendations were higher than current one, applying the highest recent recommendation"
_LOWEST = "recent recommendations were lower than current one, applying the lowest recent recommendation"


class StabilizedSize(Struct, frozen=True):
    replicas: int
    kept: tuple[Recommendation, ...]
    reason: str
    message: str
    """Reason and message of AbleToScale if the recommendation was changed."""


def stabilized_globally(
    recommendation: int, kept: tuple[Recommendation, ...], window_s: float, now_s: float
) -> StabilizedSize:
    """Of an autoscaler without `behavior`: only scaling down is stabilized, by the window of the flag."""
    recent = (one.replicas for one in kept if one.at_s > now_s - window_s)
    replicas = max((recommendation, *recent))
    return StabilizedSize(
        replicas, with_recommendation(kept, recommendation, window_s, now_s), "ScaleDownStabilized", _HIGHEST
    )


def stabilized(
    recommendation: int, current: int, kept: tuple[Recommendation, ...], behavior: Behavior, now_s: float
) -> StabilizedSize:
    """Of an autoscaler with `behavior`, whose windows have been filled in.

    Between the lowest recommendation of the window for scaling up and the highest of the one for scaling down the size
    stays as it is.
    """
    up_s, down_s = _window(behavior.scale_up), _window(behavior.scale_down)
    lowest = min((recommendation, *(one.replicas for one in kept if one.at_s > now_s - up_s)))
    highest = max((recommendation, *(one.replicas for one in kept if one.at_s > now_s - down_s)))
    is_up = recommendation >= current
    reason, message = ("ScaleUpStabilized", _LOWEST) if is_up else ("ScaleDownStabilized", _HIGHEST)
    return StabilizedSize(
        min(max(current, lowest), highest),
        with_recommendation(kept, recommendation, max(up_s, down_s), now_s),
        reason,
        message,
    )


def _window(rules: ScalingRules | None) -> int:
    return (rules.stabilization_window_seconds or 0) if rules is not None else 0
