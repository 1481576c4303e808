"""Reads what the admission of a ScaledObject depends on: other ScaledObjects, autoscalers, requests of the target."""

from __future__ import annotations

from typing import Any

import msgspec

from shoal.api.wire import to_quantity
from shoal.autoscale.scaled_objects.admission import (
    ExistingAutoscaler,
    NamedScaledObject,
    NamespaceFacts,
    RequestedResources,
)
from shoal.autoscale.scaled_objects.spec import RESOURCE_TRIGGERS, ScaledObjectSpec, TriggerTarget
from shoal.client.context import Context
from shoal.client.ecosystem_kinds import SCALED_OBJECTS
from shoal.client.item import Item, Key, Obj
from shoal.client.kind import AUTOSCALERS, DEPLOYMENTS, STATEFUL_SETS, Kind
from shoal.client.refusals import NotFoundError

LIMIT_RANGES = Kind("", "v1", "limitranges", "LimitRange")
_TEMPLATES = (DEPLOYMENTS, STATEFUL_SETS)


class NamespaceReader:
    def __init__(self, context: Context) -> None:
        self._api = context.api
        self._scaled = context.informers.of(SCALED_OBJECTS).index("namespace", lambda item: (item.namespace,))
        self._autoscalers = context.informers.of(AUTOSCALERS).index("namespace", lambda item: (item.namespace,))

    async def facts(self, key: Key, spec: ScaledObjectSpec) -> NamespaceFacts:
        namespace = key[0]
        others = [read for item in self._scaled[namespace] if (read := named(item)) is not None]
        autoscalers = [_autoscaler(item.obj()) for item in self._autoscalers[namespace]]
        if not any(one.type in RESOURCE_TRIGGERS for one in spec.triggers):
            return NamespaceFacts(others, autoscalers)
        workloads, defaults = await self._containers(namespace, spec.scale_target_ref), []
        for item in (await self._api.list(LIMIT_RANGES, namespace)).items:
            limits = item.obj().get("spec", {}).get("limits") or ()
            defaults += [
                _resources(one.get("defaultRequest"), one.get("default"))
                for one in limits
                if one.get("type") == "Container"
            ]
        return NamespaceFacts(others, autoscalers, workloads, defaults)

    async def _containers(
        self, namespace: str, target: TriggerTarget
    ) -> dict[tuple[str, str], dict[str, RequestedResources]]:
        kind = next((one for one in _TEMPLATES if one.name == (target.kind or DEPLOYMENTS.name)), None)
        if kind is None:
            return {}
        try:
            obj = (await self._api.get(kind, namespace, target.name)).obj()
        except NotFoundError:
            return {}
        containers = obj["spec"]["template"]["spec"].get("containers") or ()
        return {(kind.name, target.name): {one["name"]: _of_container(one) for one in containers}}


def named(item: Item) -> NamedScaledObject | None:
    """None if the object is not of the form of a ScaledObject."""
    obj = item.obj()
    try:
        spec = msgspec.convert(obj.get("spec") or {}, ScaledObjectSpec)
    except msgspec.ValidationError:
        return None
    return NamedScaledObject(item.name, spec, obj["metadata"].get("annotations") or {})


def _autoscaler(obj: Obj) -> ExistingAutoscaler:
    meta = obj["metadata"]
    owners = tuple((one["kind"], one["name"]) for one in meta.get("ownerReferences") or ())
    target = msgspec.convert(obj["spec"]["scaleTargetRef"], TriggerTarget)
    return ExistingAutoscaler(meta["name"], target, meta.get("annotations") or {}, owners)


def _of_container(one: Obj) -> RequestedResources:
    resources = one.get("resources") or {}
    return _resources(resources.get("requests"), resources.get("limits"))


def _resources(requests: Any, limits: Any) -> RequestedResources:
    def amounts(written: Any) -> dict[str, Any]:
        return {name: to_quantity(text) for name, text in (written or {}).items()}

    return RequestedResources(amounts(requests), amounts(limits))
