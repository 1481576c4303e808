"""Decides one pass over a HorizontalPodAutoscaler: the new size of its target, conditions, Events and its memory.

`decide` says what to write to the scale of the target; `concluded` takes the outcome of that write and gives the status
of the autoscaler. Between the two is the only call that changes anything. A pass in which metrics fail never shrinks
the target; it grows it if the metrics that work ask for that.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from msgspec import structs

from shoal.api.conditions import is_condition_true
from shoal.api.selector_text import parse_label_selector
from shoal.api.selectors import Selector
from shoal.autoscale.replicas.behavior import tolerances_of, with_defaults
from shoal.autoscale.replicas.history import AutoscalerHistory, first_seen, with_rescale
from shoal.autoscale.replicas.metrics import EXTERNAL, OBJECT, MeasuredMetric, UnmeasuredMetric, measured
from shoal.autoscale.replicas.passes import (
    ABLE_TO_SCALE,
    NORMAL,
    SCALED_TO_ZERO,
    SCALING_ACTIVE,
    SCALING_LIMITED,
    WARNING,
    AutoscalerEvent,
    Computation,
    PassResult,
    ScaleDecision,
    TargetFacts,
    with_condition,
)
from shoal.autoscale.replicas.proposals import PassFacts
from shoal.autoscale.replicas.rate_limits import PastSizes, SizeBounds, limited, limited_without_behavior
from shoal.autoscale.replicas.spec import Autoscaler, AutoscalerSettings, AutoscalerStatus, Behavior
from shoal.autoscale.replicas.stabilization import stabilized, stabilized_globally
from shoal.units.errors import UserError

_BELOW = "Current number of replicas below Spec.MinReplicas"

# -- a target that cannot be read -----------------------------------------------------------------------------------


def without_scale(
    autoscaler: Autoscaler, history: AutoscalerHistory, fault: str, now: datetime, *, is_spec_error: bool = False
) -> ScaleDecision:
    """The scale of the target could not be read: nothing is known and nothing changes."""
    words = f"the HPA controller was unable to get the target's current scale: {fault}"
    return ScaleDecision(
        with_condition(autoscaler.status, ABLE_TO_SCALE, (False, "FailedGetScale", words), now),
        history,
        events=(AutoscalerEvent(WARNING, "FailedGetScale", fault),),
        error=fault,
        is_spec_error=is_spec_error,
        has_failed=True,
    )


def api_version_fault(api_version: str) -> str:
    """What is wrong with the API version of a target reference, or nothing."""
    return f"unexpected GroupVersion string: {api_version}" if api_version.count("/") > 1 else ""


# -- the decision ---------------------------------------------------------------------------------------------------


def decide(
    autoscaler: Autoscaler, around: TargetFacts, history: AutoscalerHistory, settings: AutoscalerSettings, now: datetime
) -> ScaleDecision:
    pass_ = _Pass(autoscaler, around, settings, now)
    pass_.history = first_seen(history, around.target.replicas, now.timestamp())
    return pass_.decided()


class _Pass:
    def __init__(
        self, autoscaler: Autoscaler, around: TargetFacts, settings: AutoscalerSettings, now: datetime
    ) -> None:
        self._spec = autoscaler.spec
        self._autoscaler = autoscaler
        self._around = around
        self._settings = settings
        self._now = now
        self._status = autoscaler.status
        self._events: list[AutoscalerEvent] = []
        self._computations: list[Computation] = []
        self._metrics: tuple[dict[str, Any], ...] | None = None
        self._error = ""
        self._min = 1 if self._spec.min_replicas is None else self._spec.min_replicas
        self.history = AutoscalerHistory()

    def decided(self) -> ScaleDecision:
        current, spec = self._around.target.replicas, self._spec
        words = "the HPA controller was able to get the target's current scale"
        self._set(ABLE_TO_SCALE, True, "SucceededGetScale", words)
        if current == 0 and not needs_metrics(self._autoscaler, current, self._settings):
            words = "scaling is disabled since the replica count of the target is zero"
            self._set(SCALING_ACTIVE, False, "ScalingDisabled", words)
            if not self._settings.has_scale_to_zero:
                self._status = _without_zero_note(self._status)
            return self._result(current, "")
        if current > spec.max_replicas:
            return self._result(spec.max_replicas, "Current number of replicas above Spec.MaxReplicas")
        if 0 < current < self._min:
            return self._result(self._min, _BELOW)
        return self._by_metrics(current)

    def _by_metrics(self, current: int) -> ScaleDecision:
        found = self._computed()
        if found is None:
            self._event(WARNING, "FailedComputeMetricsReplicas", self._error)
            return structs.replace(self._result(current, ""), has_failed=True)
        # A metric below zero asks for no replicas.
        proposed, label = max(found[0], 0), found[1]
        reason = ""
        if proposed > current:
            reason = f"{label} above target"
        elif proposed < current:
            reason = "All metrics below target"
        desired = self._normalized(proposed, current)
        if current == 0 and desired < self._min:
            desired = self._min
            reason = reason or _BELOW
        return self._result(desired, reason)

    # -- metrics ----------------------------------------------------------------------------------------------------

    def _computed(self) -> tuple[int, str] | None:
        """The highest proposal and its metric. `None`: none can be relied on, as `_error` and the conditions say."""
        selector = self._checked_selector()
        if selector is None:
            return None
        target, spec = self._around.target, self._spec
        pods = [pod for pod in self._around.pods if selector.matches(pod.metadata.labels)]
        tolerances = tolerances_of(spec.behavior, self._settings)
        about = PassFacts(target.replicas, target.reported, pods, tolerances, self._settings, self._now.timestamp())
        namespace = self._autoscaler.namespace
        results = [
            measured(metric, reading, about, namespace)
            for metric, reading in zip(spec.metrics, self._around.readings, strict=True)
        ]
        self._metrics = tuple(one.status if isinstance(one, MeasuredMetric) else {"type": ""} for one in results)
        self._note(results)
        replicas, label = 0, ""
        for one in results:
            if isinstance(one, MeasuredMetric) and (replicas == 0 or one.proposal.replicas > replicas):
                replicas, label = one.proposal.replicas, one.label
        faults = [one for one in results if isinstance(one, UnmeasuredMetric)]
        if faults:
            count = f"{len(faults)} invalid out of {len(results)}"
            self._error = f"invalid metrics ({count}), first error is: {faults[0].error}"
        if len(faults) >= len(results) or (faults and replicas < target.replicas):
            if faults:
                words = f"the HPA was unable to compute the replica count: {faults[0].fault}"
                self._set(SCALING_ACTIVE, False, faults[0].reason, words)
            return None
        words = f"the HPA was able to successfully calculate a replica count from {label}"
        self._set(SCALING_ACTIVE, True, "ValidMetricFound", words)
        return replicas, label

    def _note(self, results: Sequence[MeasuredMetric | UnmeasuredMetric]) -> None:
        before = self._autoscaler.status.current_replicas
        for metric, one in zip(self._spec.metrics, results, strict=True):
            if isinstance(one, UnmeasuredMetric):
                self._event(WARNING, one.reason, one.fault)
                self._computations.append(Computation(metric.type, "none", "spec" if one.is_spec else "internal"))
            else:
                self._computations.append(Computation(metric.type, action_of(before, one.proposal.replicas), "none"))

    def _checked_selector(self) -> Selector | None:
        written = self._around.target.selector
        if not written:
            self._error = "selector is required"
            self._event(WARNING, "SelectorRequired", self._error)
            self._set(SCALING_ACTIVE, False, "InvalidSelector", "the HPA target's scale is missing a selector")
            return None
        try:
            selector = parse_label_selector(written)
        except UserError as error:
            self._error = f"couldn't convert selector into a corresponding internal selector object: {error}"
            self._event(WARNING, "InvalidSelector", self._error)
            self._set(SCALING_ACTIVE, False, "InvalidSelector", self._error)
            return None
        pods = [pod.metadata.labels for pod in self._around.pods if selector.matches(pod.metadata.labels)]
        others = [name for name, other in self._around.others.items() if any(map(other.matches, pods))]
        if others and pods:
            names = sorted(f"{self._autoscaler.namespace}/{name}" for name in (self._autoscaler.name, *others))
            self._error = f"pods by selector {written} are controlled by multiple HPAs: [{' '.join(names)}]"
            self._event(WARNING, "AmbiguousSelector", self._error)
            self._set(SCALING_ACTIVE, False, "AmbiguousSelector", self._error)
            return None
        return selector

    # -- stabilization and limits -----------------------------------------------------------------------------------

    def _normalized(self, proposed: int, current: int) -> int:
        now_s, kept = self._now.timestamp(), self.history.recommendations or ()
        bounds = SizeBounds(self._min, self._spec.max_replicas)
        behavior = self._behavior()
        if behavior is None:
            settled = stabilized_globally(proposed, kept, self._settings.downscale_stabilization_s, now_s)
            limit = limited_without_behavior(settled.replicas, current, bounds, self._settings.growth_factor)
        else:
            settled = stabilized(proposed, current, kept, behavior, now_s)
            limit = limited(settled.replicas, bounds, behavior, PastSizes(current, self.history, now_s))
        self.history = structs.replace(self.history, recommendations=settled.kept)
        if settled.replicas != proposed:
            self._set(ABLE_TO_SCALE, True, settled.reason, settled.message)
        else:
            self._set(ABLE_TO_SCALE, True, "ReadyForNewScale", "recommended size matches current size")
        self._set(SCALING_LIMITED, limit.replicas != settled.replicas, limit.reason, limit.message)
        return limit.replicas

    def _behavior(self) -> Behavior | None:
        return None if self._spec.behavior is None else with_defaults(self._spec.behavior, self._settings)

    # -- results ----------------------------------------------------------------------------------------------------

    def _result(self, desired: int, reason: str) -> ScaleDecision:
        current = self._around.target.replicas
        return ScaleDecision(
            self._status,
            self.history,
            current,
            desired,
            desired != current,
            reason,
            tuple(self._events),
            tuple(self._computations),
            self._error,
            metrics=self._metrics,
        )

    def _set(self, name: str, is_so: bool, reason: str, message: str) -> None:
        self._status = with_condition(self._status, name, (is_so, reason, message), self._now)

    def _event(self, kind: str, reason: str, message: str) -> None:
        self._events.append(AutoscalerEvent(kind, reason, message))


def needs_metrics(autoscaler: Autoscaler, replicas: int, settings: AutoscalerSettings) -> bool:
    """Whether the size of a target of this many replicas depends on its metrics.

    A target at zero is switched off, unless the autoscaler itself has scaled it to zero.
    """
    spec = autoscaler.spec
    least = 1 if spec.min_replicas is None else spec.min_replicas
    if replicas == 0:
        is_own = settings.has_scale_to_zero and is_condition_true(autoscaler.status.conditions, SCALED_TO_ZERO)
        return is_own and (least != 0 or has_outside_metric(autoscaler))
    return least <= replicas <= spec.max_replicas


def has_outside_metric(autoscaler: Autoscaler) -> bool:
    """Whether a metric exists without pods, so that the target can be at zero."""
    return any(metric.type in (OBJECT, EXTERNAL) for metric in autoscaler.spec.metrics)


def action_of(before: int, after: int) -> str:
    if after == before:
        return "none"
    return "scale_up" if after > before else "scale_down"


# -- after the write ------------------------------------------------------------------------------------------------


def concluded(
    autoscaler: Autoscaler,
    decision: ScaleDecision,
    settings: AutoscalerSettings,
    now: datetime,
    write_fault: str = "",
) -> PassResult:
    """`write_fault`: why the scale could not be written, if so."""
    if decision.has_failed:
        return _failed(decision)
    status, events, size = decision.status, decision.events, decision.desired
    if decision.rescales and write_fault:
        words = f"the HPA controller was unable to update the target scale: {write_fault}"
        said = f"New size: {size}; reason: {decision.rescale_reason}; error: {write_fault}"
        status = with_condition(status, ABLE_TO_SCALE, (False, "FailedUpdateScale", words), now)
        events = (*events, AutoscalerEvent(WARNING, "FailedRescale", said))
        return _failed(structs.replace(decision, status=status, events=events, error=write_fault))
    history = decision.history
    if decision.rescales:
        words = f"the HPA controller was able to update the target scale to {size}"
        status = with_condition(status, ABLE_TO_SCALE, (True, "SucceededRescale", words), now)
        said = f"New size: {size}; reason: {decision.rescale_reason}"
        events = (*events, AutoscalerEvent(NORMAL, "SuccessfulRescale", said))
        status = _with_zero_noted(autoscaler, status, decision, settings, now)
        behavior = autoscaler.spec.behavior
        rules = None if behavior is None else with_defaults(behavior, settings)
        history = with_rescale(history, rules, (decision.current, size), now.timestamp())
    status = structs.replace(
        status,
        current_replicas=decision.current,
        desired_replicas=size,
        last_scale_time=now if decision.rescales else status.last_scale_time,
        current_metrics=decision.metrics,
    )
    action = action_of(decision.current, size) if decision.rescales else "none"
    return PassResult(
        status, history, events, action, decision.error, decision.is_spec_error, rescaled=decision.rescales
    )


def _failed(decision: ScaleDecision) -> PassResult:
    """The desired size stays what it was; the current one is shown if the scale of the target was read."""
    status = decision.status
    if decision.current or decision.metrics is not None:
        status = structs.replace(status, current_replicas=decision.current, current_metrics=decision.metrics)
    return PassResult(
        status, decision.history, decision.events, error=decision.error, is_spec_error=decision.is_spec_error
    )


def _with_zero_noted(
    autoscaler: Autoscaler,
    status: AutoscalerStatus,
    decision: ScaleDecision,
    settings: AutoscalerSettings,
    now: datetime,
) -> AutoscalerStatus:
    if not settings.has_scale_to_zero:
        return _without_zero_note(status)
    if decision.current > 0 and decision.desired == 0 and has_outside_metric(autoscaler):
        says = (True, SCALED_TO_ZERO, "the HPA controller scaled the workload to zero")
    else:
        says = (False, "NotScaledToZero", "the HPA controller did not scale the workload to zero")
    return with_condition(status, SCALED_TO_ZERO, says, now)


def _without_zero_note(status: AutoscalerStatus) -> AutoscalerStatus:
    return structs.replace(status, conditions=tuple(one for one in status.conditions if one.type != SCALED_TO_ZERO))
