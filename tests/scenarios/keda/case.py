"""A case about a ScaledObject as it is in the files, without its expectation, and its parts as our types."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from shoal.api.wire import to_quantity
from shoal.autoscale.scaled_objects.admission import (
    ExistingAutoscaler,
    NamedScaledObject,
    NamespaceFacts,
    RequestedResources,
)
from shoal.autoscale.scaled_objects.modifiers import TriggerValue
from shoal.autoscale.scaled_objects.spec import Fallback, Health, ScaledObjectSpec, TriggerTarget

NOW = datetime(2026, 11, 27, 12, tzinfo=UTC)
LONG_AGO_S = -10 * 365 * 86400


class Case(msgspec.Struct, rename="camel"):
    id: str
    level: str
    operation: str = "create"
    dry_run: bool = False
    object: dict[str, Any] = {}
    old: dict[str, Any] | None = None
    existing: list[dict[str, Any]] = []
    metadata: dict[str, str] = {}
    at: str = ""
    trigger: dict[str, Any] = {}
    trigger_index: int = 0
    target: Any = None
    fallback: dict[str, Any] | None = None
    health: dict[str, Any] = {}
    scaler: dict[str, Any] = {}
    current_replicas: int | None = None
    ready_replicas: int | None = None
    scaling_modifiers: dict[str, Any] | None = None
    formula: str = ""
    triggers: dict[str, dict[str, Any]] = {}
    spec: dict[str, Any] = {}
    annotations: dict[str, str] = {}
    status: dict[str, Any] = {}
    creation_timestamp: float = LONG_AGO_S
    active: bool = False
    error: bool = False
    hpa_conditions: list[dict[str, Any]] | None = None


def fallback_of(written: dict[str, Any] | None) -> Fallback | None:
    return None if written is None else msgspec.convert(written, Fallback)


def spec_of(written: dict[str, Any]) -> ScaledObjectSpec:
    return msgspec.convert(written, ScaledObjectSpec)


def health_of(written: dict[str, Any]) -> dict[str, Health]:
    return {name: msgspec.convert(one, Health) for name, one in written.items()}


def values_of(case: Case) -> dict[str, TriggerValue]:
    return {name: TriggerValue(one.get("value"), one.get("numberOfFailures")) for name, one in case.triggers.items()}


def moment(offset_s: float | None) -> datetime | None:
    return None if offset_s is None else NOW + timedelta(seconds=offset_s)


def scaled_object_of(written: dict[str, Any]) -> NamedScaledObject:
    meta = written["metadata"]
    return NamedScaledObject(meta["name"], spec_of(written["spec"]), meta.get("annotations") or {})


def facts_of(existing: list[dict[str, Any]]) -> NamespaceFacts:
    def of_kind(kind: str) -> list[dict[str, Any]]:
        return [one for one in existing if one["kind"] == kind]

    workloads = {
        (one["kind"], one["metadata"]["name"]): {
            container["name"]: _resources(container.get("resources") or {}) for container in one.get("containers") or ()
        }
        for one in existing
        if "containers" in one
    }
    limits = [limit for one in of_kind("LimitRange") for limit in one["limits"] if limit["type"] == "Container"]
    return NamespaceFacts(
        [scaled_object_of(one) for one in of_kind("ScaledObject")],
        [_autoscaler(one) for one in of_kind("HorizontalPodAutoscaler")],
        workloads,
        [_resources({"requests": one.get("defaultRequest"), "limits": one.get("default")}) for one in limits],
    )


def _autoscaler(one: dict[str, Any]) -> ExistingAutoscaler:
    meta = one["metadata"]
    owners = tuple((owner["kind"], owner["name"]) for owner in meta.get("ownerReferences") or ())
    target = msgspec.convert(one["spec"]["scaleTargetRef"], TriggerTarget)
    return ExistingAutoscaler(meta["name"], target, meta.get("annotations") or {}, owners)


def _resources(written: dict[str, Any]) -> RequestedResources:
    def amounts(key: str) -> dict[str, Any]:
        return {name: to_quantity(text) for name, text in (written.get(key) or {}).items()}

    return RequestedResources(amounts("requests"), amounts("limits"))
