"""Fills in the scaling behavior of an autoscaler and the tolerance of its metrics."""

from __future__ import annotations

from msgspec import Struct, structs

from shoal.autoscale.replicas.spec import AutoscalerSettings, Behavior, ScalingPolicy, ScalingRules
from shoal.units.quantity import NANO, Quantity

DISABLED = "Disabled"
MIN_CHANGE = "Min"
MAX_CHANGE = "Max"
PODS = "Pods"
PERCENT = "Percent"

DEFAULT_SCALE_UP = ScalingRules(0, MAX_CHANGE, (ScalingPolicy(PODS, 4, 15), ScalingPolicy(PERCENT, 100, 15)))
DEFAULT_SCALE_DOWN = ScalingRules(None, MAX_CHANGE, (ScalingPolicy(PERCENT, 100, 15),))


def with_defaults(behavior: Behavior, settings: AutoscalerSettings) -> Behavior:
    """Both directions are filled in as soon as `behavior` exists; the window of scaling down is that of the flag."""
    down = structs.replace(DEFAULT_SCALE_DOWN, stabilization_window_seconds=int(settings.downscale_stabilization_s))
    return Behavior(_filled(behavior.scale_up, DEFAULT_SCALE_UP), _filled(behavior.scale_down, down))


def _filled(rules: ScalingRules | None, usual: ScalingRules) -> ScalingRules:
    if rules is None:
        return usual
    window = rules.stabilization_window_seconds
    return ScalingRules(
        usual.stabilization_window_seconds if window is None else window,
        rules.select_policy or usual.select_policy,
        rules.policies or usual.policies,
        rules.tolerance,
    )


class Tolerances(Struct, frozen=True):
    scale_down: float
    scale_up: float

    def allow(self, ratio: float) -> bool:
        """Whether the ratio of usage and target is so close to one that the replica count stays."""
        return 1.0 - self.scale_down <= ratio <= 1.0 + self.scale_up


def tolerances_of(behavior: Behavior | None, settings: AutoscalerSettings) -> Tolerances:
    usual = settings.tolerance
    if behavior is None or not settings.has_own_tolerance:
        return Tolerances(usual, usual)
    return Tolerances(_tolerance(behavior.scale_down, usual), _tolerance(behavior.scale_up, usual))


def _tolerance(rules: ScalingRules | None, usual: float) -> float:
    if rules is None or rules.tolerance is None:
        return usual
    return _approximate(rules.tolerance)


def _approximate(quantity: Quantity) -> float:
    return quantity.nano / NANO
