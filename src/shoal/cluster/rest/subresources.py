"""The doors below an object that are more than reading and writing it: binding, scale, finalize."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from shoal.cluster import field_errors, status
from shoal.cluster.calls import Admission, Call
from shoal.cluster.kinds.pods.binding import bind as bind_pod
from shoal.cluster.kinds.pods.binding import check_binding
from shoal.cluster.label_selectors import text_of
from shoal.cluster.resource import Home, Obj
from shoal.cluster.rest import codec
from shoal.cluster.rest.changing import change
from shoal.cluster.rest.stage import Stage
from shoal.cluster.state.record import Record, Write

PODS = Home("", "pods")


async def bind(stage: Stage, call: Call, binding: Obj) -> Obj:
    """Place a pod on a node; the binding's labels and annotations come with it, in one write."""
    pods = stage.catalog.builtin(PODS)
    name = call.name or binding.get("metadata", {}).get("name", "")
    ref = pods.ref(call.namespace, name)
    admission = Admission("CREATE", call, name, binding, None)
    if stage.dynamic.concerns(call, admission.operation):
        await stage.dynamic.mutate(admission)
        await stage.dynamic.validate(admission)
        binding = admission.written
    check_binding(binding, name)
    async with stage.state.lock(ref):
        record = stage.state.get(ref)
        if record is None:
            raise status.not_found("pods", "", name)
        pod = msgspec.json.decode(record.data)
        bind_pod(pod, binding, stage.clock.text())
        if not call.dry_run:
            labels = pod["metadata"].get("labels") or {}
            write = Write(ref, pod, record, record.uid, labels, pods.strategy.fields(pod))
            await stage.state.commit([write])
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


# -- scale ----------------------------------------------------------------------------------------------------------


async def read_scale(stage: Stage, call: Call) -> Obj:
    record = stage.state.get(call.resource.ref(call.namespace, call.name))
    if record is None:
        raise status.not_found(call.resource.plural, call.resource.group, call.name)
    return scale_of(call, await codec.shown(stage, record, call.resource))


async def write_scale(stage: Stage, call: Call, scale: Obj) -> Obj:
    """Set the replicas; everything else of the scale is read from the object."""
    return await change_scale(stage, call, lambda _: scale)


async def change_scale(stage: Stage, call: Call, make: Callable[[Obj], Obj]) -> Obj:
    """Set the replicas to those of the scale that `make` makes of the present one."""

    async def make_whole(present: Obj) -> Obj:
        scale = make(scale_of(call, present))
        replicas = (scale.get("spec") or {}).get("replicas", 0)
        if not isinstance(replicas, int) or replicas < 0:
            error = field_errors.bad_value("spec.replicas", replicas, "must be greater than or equal to 0")
            raise status.invalid("Scale", "autoscaling", call.name, [error])
        for name in ("resourceVersion", "uid"):
            said = (scale.get("metadata") or {}).get(name)
            if said:
                present["metadata"][name] = said
        put_replicas(call, present, replicas)
        return present

    whole = msgspec.structs.replace(call, subresource="", verb="update", through_scale=True)
    changed = await change(stage, whole, make_whole)
    if isinstance(changed, Record):
        changed = await codec.shown(stage, changed, call.resource)
    return scale_of(call, changed)


def scale_of(call: Call, obj: Obj) -> Obj:
    spec_path, status_path, selector_path = _paths(call)
    metadata = obj["metadata"]
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    scale: Obj = {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {key: metadata[key] for key in kept if key in metadata},
        "spec": {},
        "status": {"replicas": _at(obj, status_path) or 0},
    }
    replicas = _at(obj, spec_path)
    if replicas:
        scale["spec"]["replicas"] = replicas
    selector = _at(obj, selector_path) if selector_path else None
    if selector:
        scale["status"]["selector"] = selector if isinstance(selector, str) else _selector_text(selector)
    return scale


def _paths(call: Call) -> tuple[str, str, str]:
    return call.resource.scale_paths or (".spec.replicas", ".status.replicas", ".spec.selector")


def _steps(path: str) -> list[str]:
    return [step for step in path.split(".") if step]


def _at(obj: Any, path: str) -> Any:
    for step in _steps(path):
        if not isinstance(obj, Mapping):
            return None
        obj = obj.get(step)
    return obj


def put_replicas(call: Call, obj: Obj, value: Any) -> None:
    *front, last = _steps(_paths(call)[0])
    for step in front:
        obj = obj.setdefault(step, {})
    obj[last] = value


def _selector_text(selector: Mapping[str, Any]) -> str:
    """Of a label selector, or of the plain labels that older kinds have in its place."""
    is_plain = "matchLabels" not in selector and "matchExpressions" not in selector
    return text_of({"matchLabels": selector} if is_plain else selector)


# -- namespaces ------------------------------------------------------------------------------------------------------


async def finalize(stage: Stage, call: Call, wanted: Obj) -> Obj | Record:
    """Take finalizers from a namespace's spec; with the last one it goes."""

    async def make(present: Obj) -> Obj:
        version = wanted["metadata"].get("resourceVersion")
        if version:
            present["metadata"]["resourceVersion"] = version
        present["spec"] = wanted.get("spec") or {}
        return present

    return await change(stage, call, make)
