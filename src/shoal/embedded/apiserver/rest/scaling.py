"""The subresource `scale`: an object read and written as a Scale.

A write is worked out on the Scale, and its replicas are then put into the object, as Kubernetes does. The Scale has
those managers of the object that own its replicas, and no others, so that a server-side apply of a Scale meets the
conflicts that it meets elsewhere.

Rejected: applying to the object itself a configuration that sets only the replicas. It has other conflicts where no
manager owns the replicas, and its refusals name the object's kind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from shoal.embedded.apiserver import field_errors, status
from shoal.embedded.apiserver.apply.applying import Applier, apply
from shoal.embedded.apiserver.apply.entries import ManagedFieldsEntry, Manager, Managers, decoded, encoded
from shoal.embedded.apiserver.apply.fieldset import Fields, difference, has, whole
from shoal.embedded.apiserver.apply.tracking import track
from shoal.embedded.apiserver.calls import Call
from shoal.embedded.apiserver.crds.scale import AccessError, number_at, text_at
from shoal.embedded.apiserver.label_selectors import text_of
from shoal.embedded.apiserver.patches.copying import copied
from shoal.embedded.apiserver.resource import Obj
from shoal.embedded.apiserver.rest import codec
from shoal.embedded.apiserver.rest.changing import change
from shoal.embedded.apiserver.rest.context import ServerContext
from shoal.embedded.apiserver.rest.incoming import still_at_home
from shoal.embedded.apiserver.schema.node import Schema
from shoal.embedded.apiserver.state.record import Record
from shoal.embedded.apiserver.status import ApiError

SCALE = "scale"
VERSION, KIND = "autoscaling/v1", "Scale"
_REPLICAS = whole([("spec", "replicas")])
_BUILT_IN_PATHS = (".spec.replicas", ".status.replicas", ".spec.selector")


async def read_scale(context: ServerContext, call: Call) -> Obj:
    record = context.state.get(call.resource.ref(call.namespace, call.name))
    if record is None:
        raise status.not_found(call.resource.plural, call.resource.group, call.name)
    obj = await codec.shown(context, call, record)
    scale = scale_of(call, obj)
    path = _paths(call)[0]
    if call.resource.scale_paths and number_at(obj, path) is None:
        raise status.internal(f'the spec replicas field "{path}" does not exist')
    return scale


async def change_scale(context: ServerContext, call: Call, schema: Schema, make: Callable[[Obj], Obj]) -> Obj:
    """Set the replicas to those of the Scale that `make` makes of its own copy of the present one."""

    def tracked(present: Obj) -> Obj:
        scale = make(copied(present))
        track(
            scale,
            present,
            manager=call.field_manager,
            api_version=VERSION,
            now=context.clock.text(),
            schema=schema,
            subresource=SCALE,
        )
        return scale

    return await _changed(context, call, tracked)


async def apply_to_scale(context: ServerContext, call: Call, schema: Schema, config: Obj) -> Obj:
    """Set the replicas to those of the Scale that comes of applying the configuration to the present one."""
    applier = Applier(call.field_manager, VERSION, schema, force=call.force, subresource=SCALE)
    return await _changed(context, call, lambda present: apply(present, config, applier, now=context.clock.text()))


async def _changed(context: ServerContext, call: Call, make: Callable[[Obj], Obj]) -> Obj:
    async def make_whole(present: Obj) -> Obj:
        owners = _Owners(call, present)
        before = scale_of(call, present)
        if owners.of_replicas:
            before["metadata"]["managedFields"] = encoded(owners.of_replicas)
        scale = make(before)
        still_at_home(call, scale)
        replicas = (scale.get("spec") or {}).get("replicas") or 0
        if not isinstance(replicas, int) or replicas < 0:
            error = field_errors.bad_value("spec.replicas", replicas, "must be greater than or equal to 0")
            raise status.invalid(KIND, "autoscaling", call.name, [error])
        for name in ("resourceVersion", "uid"):
            if scale["metadata"].get(name):
                present["metadata"][name] = scale["metadata"][name]
        _put_replicas(call, present, replicas)
        owners.give_back(present, scale)
        return present

    whole_call = msgspec.structs.replace(call, subresource="", verb="update", through_scale=True)
    changed = await change(context, whole_call, make_whole, applied=True)
    if isinstance(changed, Record):
        changed = await codec.shown(context, call, changed)
    return scale_of(call, changed)


class _Owners:
    """The managers of an object as its Scale shows them: those that own the replicas, and of them nothing else."""

    def __init__(self, call: Call, obj: Obj) -> None:
        self._api_version = call.resource.api_version
        self._path = whole([_steps(_paths(call)[0])])
        self._all = decoded(obj["metadata"].get("managedFields"), is_ours=True) or {}
        self.of_replicas: Managers = {
            _in_version(manager, VERSION): ManagedFieldsEntry(VERSION, _REPLICAS, entry.time)
            for manager, entry in self._all.items()
            if self._owns(entry.fields)
        }

    def _owns(self, fields: Fields) -> bool:
        return has(fields, tuple(_keys(self._path)))

    def give_back(self, obj: Obj, scale: Obj) -> None:
        """Set the managers of the object after a write of its Scale."""
        found = decoded(scale["metadata"].get("managedFields"), is_ours=True) or {}
        left = {manager for manager, entry in found.items() if has(entry.fields, tuple(_keys(_REPLICAS)))}
        after: Managers = {}
        for manager, entry in self._all.items():
            seen_as = _in_version(manager, VERSION)
            if self._owns(entry.fields) and seen_as not in left:
                fields = difference(entry.fields, self._path)
                if fields:
                    after[manager] = entry._replace(fields=fields)
            else:
                after[manager] = entry
        for manager in left - self.of_replicas.keys():
            here = _in_version(manager, self._api_version)
            known = self._all.get(here)
            after[here] = ManagedFieldsEntry(self._api_version, self._path, known.time if known else None)
        obj["metadata"].pop("managedFields", None)
        if after:
            obj["metadata"]["managedFields"] = encoded(after)


def _in_version(manager: Manager, api_version: str) -> Manager:
    """Who updates is another manager for each version; who applies is the same one."""
    return manager._replace(api_version=api_version) if manager.api_version else manager


def _keys(path: Fields) -> list[str]:
    """The keys of a set of one path."""
    keys = []
    while path:
        ((key, path),) = path.items()
        keys.append(key)
    return keys


def scale_of(call: Call, obj: Obj) -> Obj:
    spec_path, status_path, selector_path = _paths(call)
    metadata = obj["metadata"]
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    scale: Obj = {
        "kind": KIND,
        "apiVersion": VERSION,
        "metadata": {key: metadata[key] for key in kept if key in metadata},
        "spec": {},
        "status": {},
    }
    if call.resource.scale_paths:
        try:
            replicas, present = number_at(obj, spec_path), number_at(obj, status_path)
            selector: Any = text_at(obj, selector_path) if selector_path else None
        except AccessError as error:
            # The definition got its subresource after the object was written.
            raise ApiError(500, "", str(error)) from None
    else:
        replicas, present, selector = (_at(obj, path) for path in (spec_path, status_path, selector_path))
    scale["status"]["replicas"] = present or 0
    if replicas:
        scale["spec"]["replicas"] = replicas
    if selector:
        scale["status"]["selector"] = selector if isinstance(selector, str) else _selector_text(selector)
    return scale


def _paths(call: Call) -> tuple[str, str, str]:
    return call.resource.scale_paths or _BUILT_IN_PATHS


def _steps(path: str) -> list[str]:
    return [step for step in path.split(".") if step]


def _at(obj: Any, path: str) -> Any:
    for step in _steps(path):
        if not isinstance(obj, Mapping):
            return None
        obj = obj.get(step)
    return obj


def _put_replicas(call: Call, obj: Obj, value: int) -> None:
    *front, last = _steps(_paths(call)[0])
    for depth, step in enumerate(front, 1):
        below = obj.setdefault(step, {})
        if not isinstance(below, dict):
            # Only null can be there; for anything else the present Scale cannot be worked out.
            path = ".".join(front[:depth])
            raise ApiError(500, "", f"value cannot be set because .{path} is not a map[string]interface{{}}")
        obj = below
    obj[last] = value


def _selector_text(selector: Mapping[str, Any]) -> str:
    """Of a label selector, or of the plain labels that older kinds have in its place."""
    is_plain = "matchLabels" not in selector and "matchExpressions" not in selector
    return text_of({"matchLabels": selector} if is_plain else selector)
