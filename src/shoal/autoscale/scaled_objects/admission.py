"""Admits or refuses a ScaledObject as KEDA's webhook does, in its words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from shoal.autoscale.scaled_objects.annotations import OWNERSHIP_CHECK, TRANSFER_OWNERSHIP
from shoal.autoscale.scaled_objects.modifiers import modifiers_fault
from shoal.autoscale.scaled_objects.spec import (
    BY_FORMULA,
    CRON,
    RESOURCE_TRIGGERS,
    ScaledObjectSpec,
    Trigger,
    TriggerTarget,
)
from shoal.units.quantity import Quantity

_LONGEST_NAME = 63
"""Of a label value, which the name becomes."""


class NamedScaledObject(Struct, frozen=True):
    name: str
    spec: ScaledObjectSpec
    annotations: Mapping[str, str] = {}


class ExistingAutoscaler(Struct, frozen=True):
    name: str
    target: TriggerTarget
    annotations: Mapping[str, str] = {}
    owners: tuple[tuple[str, str], ...] = ()
    """Kind and name."""


class RequestedResources(Struct, frozen=True):
    requests: Mapping[str, Quantity] = {}
    limits: Mapping[str, Quantity] = {}

    def has(self, resource: str) -> bool:
        nothing = Quantity(0)
        return self.requests.get(resource, nothing) > nothing or self.limits.get(resource, nothing) > nothing


class NamespaceFacts(Struct, frozen=True):
    """The other objects of the namespace that admission reads."""

    scaled_objects: Sequence[NamedScaledObject] = ()
    autoscalers: Sequence[ExistingAutoscaler] = ()
    workloads: Mapping[tuple[str, str], Mapping[str, RequestedResources]] = {}
    """The containers of Deployments and StatefulSets, by kind and name."""
    container_defaults: Sequence[RequestedResources] = ()
    """Of the LimitRanges: what they give to containers."""


class Verdict(Struct, frozen=True):
    """Empty message: accepted."""

    message: str = ""
    warnings: tuple[str, ...] = ()


def admitted(new: NamedScaledObject, facts: NamespaceFacts, *, is_dry_run: bool = False) -> Verdict:
    for check in _CHECKS:
        if fault := check(new, facts):
            return Verdict(fault)
    if not is_dry_run and (fault := _resource_trigger_fault(new, facts)):
        return Verdict(fault)
    return Verdict(warnings=tuple(_warnings(new.spec)))


def is_finalizer_removal(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """An update that only takes finalizers away is not checked, so that an invalid object can be deleted."""
    before, after = (len(one["metadata"].get("finalizers") or ()) for one in (old, new))
    return after < before and old.get("spec") == new.get("spec")


# -- one subject each -----------------------------------------------------------------------------------------------


def _name_fault(new: NamedScaledObject, _facts: NamespaceFacts) -> str:
    if len(new.name) > _LONGEST_NAME:
        return (
            f'scaledobject name "{new.name}" is {len(new.name)} characters long; must be no more than {_LONGEST_NAME} '
            'characters because it is used as the "scaledobject.keda.sh/name" label value'
        )
    name = new.spec.autoscaler_name(new.name)
    if len(name) > _LONGEST_NAME:
        return (
            f'HPA name "{name}" derived from scaledobject is {len(name)} characters long; must be no more than '
            f"{_LONGEST_NAME} characters; set spec.advanced.horizontalPodAutoscalerConfig.name to a shorter name or "
            "shorten the scaledobject name"
        )
    return ""


def trigger_fault(triggers: Sequence[Trigger]) -> str:
    if not triggers:
        return "no triggers defined in the ScaledObject/ScaledJob"
    names = set()
    for trigger in triggers:
        if trigger.use_cached_metrics and trigger.type in (*RESOURCE_TRIGGERS, CRON):
            return f'property "useCachedMetrics" is not supported for "{trigger.type}" scaler'
        if trigger.name and trigger.name in names:
            return (
                f'triggerName "{trigger.name}" is defined multiple times in the ScaledObject/ScaledJob, but it must be '
                "unique"
            )
        names.add(trigger.name)
    return ""


def _bounds_fault(new: NamedScaledObject, _facts: NamespaceFacts) -> str:
    spec = new.spec
    least = 0 if spec.min_replica_count is None else spec.autoscaler_min()
    most, idle = spec.autoscaler_max(), spec.idle_replica_count
    if least > most:
        return f"MinReplicaCount={least} must be less than MaxReplicaCount={most}"
    if idle is not None and idle >= least:
        return f"IdleReplicaCount={idle} must be less than MinReplicaCount={least}"
    return ""


def _fallback_fault(new: NamedScaledObject, _facts: NamespaceFacts) -> str:
    fallback = new.spec.fallback
    if fallback is None:
        return ""
    if fallback.failure_threshold < 0 or fallback.replicas < 0:
        return (
            f"FailureThreshold={fallback.failure_threshold} & Replicas={fallback.replicas} must both be greater than "
            "or equal to 0"
        )
    if new.spec.modifiers() is None and all(one.type in RESOURCE_TRIGGERS for one in new.spec.triggers):
        return (
            "at least one trigger (that is not cpu or memory) has to have the `AverageValue` type for the fallback to "
            "be enabled"
        )
    return ""


def _conflict(new: NamedScaledObject, facts: NamespaceFacts) -> str:
    target, kind = new.spec.scale_target_ref, new.spec.scale_target_ref.group_version_kind()
    others = [one for one in facts.scaled_objects if one.name != new.name]
    for other in others:
        its = other.spec.scale_target_ref
        if its.name == target.name and its.group_version_kind() == kind:
            return f"the workload '{its.name}' of type '{kind}' is already managed by the ScaledObject '{other.name}'"
    name = new.spec.autoscaler_name(new.name)
    for other in others:
        if other.spec.autoscaler_name(other.name) == name:
            return f"the HPA '{name}' is already managed by the ScaledObject '{other.name}'"
    return ""


def _autoscaler_conflict(new: NamedScaledObject, facts: NamespaceFacts) -> str:
    target, kind = new.spec.scale_target_ref, new.spec.scale_target_ref.group_version_kind()
    for one in facts.autoscalers:
        is_checked = one.annotations.get(OWNERSHIP_CHECK) != "false"
        is_same = one.target.name == target.name and one.target.group_version_kind() == kind
        if not is_checked or not is_same or ("ScaledObject", new.name) in one.owners:
            continue
        if new.annotations.get(TRANSFER_OWNERSHIP) != "true":
            return f"the workload '{target.name}' of type '{kind}' is already managed by the hpa '{one.name}'"
        config = new.spec.advanced.horizontal_pod_autoscaler_config if new.spec.advanced is not None else None
        if config is None or config.name != one.name:
            return (
                f"the existing hpa '{one.name}' for workload '{target.name}' of type '{kind}' must be specified by "
                "name in advanced settings to enable ownership transfer"
            )
    return ""


def _formula_fault(new: NamedScaledObject, _facts: NamespaceFacts) -> str:
    if fault := modifiers_fault(new.spec):
        return fault
    fallback, modifiers = new.spec.fallback, new.spec.modifiers()
    if fallback is not None and fallback.behavior == BY_FORMULA and (modifiers is None or not modifiers.formula):
        return "scalingModifiers fallback behavior requires scalingModifiers.formula to be defined"
    return ""


_CHECKS: tuple[Callable[[NamedScaledObject, NamespaceFacts], str], ...] = (
    _name_fault,
    lambda new, _facts: trigger_fault(new.spec.triggers),
    _bounds_fault,
    _fallback_fault,
    _conflict,
    _autoscaler_conflict,
    _formula_fault,
)


# -- cpu and memory -------------------------------------------------------------------------------------------------

_TEMPLATES = {"apps/v1.Deployment": "Deployment", "apps/v1.StatefulSet": "StatefulSet"}
_ONLY_RESOURCES = (
    "scaledobject has only cpu/memory triggers AND minReplica is 0 (scale to zero doesn't work in this case)"
)
_RESOURCES = {"Deployment": "deployments.apps", "StatefulSet": "statefulsets.apps"}


def _resource_trigger_fault(new: NamedScaledObject, facts: NamespaceFacts) -> str:
    triggers = [one for one in new.spec.triggers if one.type in RESOURCE_TRIGGERS]
    kind = _TEMPLATES.get(new.spec.scale_target_ref.group_version_kind())
    if not triggers or kind is None:
        return ""
    name = new.spec.scale_target_ref.name
    containers = facts.workloads.get((kind, name))
    if containers is None:
        return f'{_RESOURCES[kind]} "{name}" not found'
    for trigger in triggers:
        if fault := _request_fault(trigger, containers, facts.container_defaults):
            return fault
        if len(triggers) == len(new.spec.triggers) and not new.spec.min_replica_count:
            return _ONLY_RESOURCES
    return ""


def _request_fault(
    trigger: Trigger, containers: Mapping[str, RequestedResources], defaults: Iterable[RequestedResources]
) -> str:
    named = trigger.metadata.get("containerName", "")
    for name, resources in containers.items():
        if named and name != named:
            continue
        if not resources.has(trigger.type) and not any(one.has(trigger.type) for one in defaults):
            return (
                f"the scaledobject has a {trigger.type} trigger but the container {name} doesn't have the "
                f"{trigger.type} request defined"
            )
    return ""


# -- warnings -------------------------------------------------------------------------------------------------------


def _warnings(spec: ScaledObjectSpec) -> Iterator[str]:
    """Settings without an effect, because the target never goes to zero or to an idle count."""
    if not spec.min_replica_count or spec.idle_replica_count is not None:
        return
    if spec.polling_interval is not None and not any(one.use_cached_metrics for one in spec.triggers):
        yield (
            "PollingInterval is configured but is not relevant. PollingInterval is only relevant when minReplicaCount "
            "= 0, idleReplicaCount is set, or useCachedMetrics is enabled"
        )
    if spec.cooldown_period is not None:
        yield (
            "CooldownPeriod is configured but is not relevant. CooldownPeriod is only relevant when minReplicaCount = "
            "0 or idleReplicaCount is set"
        )
