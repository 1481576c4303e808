"""ResourceSlices: the devices that a driver has, one piece of a pool at a time."""

from __future__ import annotations

from collections.abc import Mapping

from shoal.embedded.apiserver.field_errors import FieldError, bad_value, required, too_many
from shoal.embedded.apiserver.kinds.complaints import Errors, Obj, add_changed, add_faults
from shoal.embedded.apiserver.kinds.pods.placement import check_node_selector
from shoal.embedded.apiserver.kinds.resource.devices import check_counters, check_device
from shoal.embedded.apiserver.kinds.resource.names import check_driver, check_label, check_pool
from shoal.embedded.apiserver.kinds.resource.requests import check_unique
from shoal.embedded.apiserver.kinds.spellings import subdomain_faults
from shoal.embedded.apiserver.strategy import Strategy

_PLACES = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")
_LISTED = ", ".join(f"`{place}`" for place in _PLACES)
_MOST_DEVICES, _MOST_SPECIAL_DEVICES = 128, 64
_MOST_COUNTER_SETS = 8


class ResourceSliceStrategy(Strategy):
    counts_generation = True
    returns_deleted = True

    def default(self, obj: Obj) -> None:
        spec = obj.setdefault("spec", {})
        spec.setdefault("pool", {}).setdefault("generation", 0)

    def validate(self, obj: Obj) -> list[FieldError]:
        errors: Errors = []
        spec = obj["spec"]
        check_driver(spec.get("driver", ""), "spec.driver", errors)
        _check_pool(spec["pool"], "spec.pool", errors)
        _check_place(spec, "spec", errors)
        devices, counters = spec.get("devices"), spec.get("sharedCounters")
        if devices and counters:
            words = "only one of `sharedCounters` or `devices` is allowed"
            errors.append(bad_value("spec", "", words))
        _check_devices(devices or [], bool(spec.get("perDeviceNodeSelection")), errors)
        _check_counter_sets(counters or [], "spec.sharedCounters", errors)
        return errors

    def validate_update(self, new: Obj, old: Obj) -> list[FieldError]:
        errors = self.validate(new)
        spec, before = new["spec"], old["spec"]
        add_changed(errors, "spec.pool.name", spec["pool"].get("name"), (before.get("pool") or {}).get("name"))
        for key in ("driver", "nodeName"):
            add_changed(errors, f"spec.{key}", spec.get(key), before.get(key))
        return errors

    def fields(self, obj: Obj) -> Mapping[str, str]:
        spec = obj.get("spec") or {}
        return {"spec.nodeName": spec.get("nodeName") or "", "spec.driver": spec.get("driver", "")}

    def selectable(self) -> tuple[str, ...]:
        return ("spec.nodeName", "spec.driver")


def _check_pool(pool: Obj, path: str, errors: Errors) -> None:
    check_pool(pool.get("name", ""), f"{path}.name", errors)
    count, generation = pool.get("resourceSliceCount", 0), pool.get("generation", 0)
    if count <= 0:
        errors.append(bad_value(f"{path}.resourceSliceCount", count, "must be greater than zero"))
    if generation < 0:
        errors.append(bad_value(f"{path}.generation", generation, "must be greater than or equal to zero"))


def _check_place(spec: Obj, path: str, errors: Errors) -> None:
    """Where the devices can be reached from: said in exactly one way."""
    given = [key for key in _PLACES if spec.get(key)]
    if (node := spec.get("nodeName")) is not None:
        if node:
            add_faults(errors, f"{path}.nodeName", node, subdomain_faults(node))
        else:
            words = "must be either unset or set to a non-empty string"
            errors.append(bad_value(f"{path}.nodeName", node, words))
    if (selector := spec.get("nodeSelector")) is not None:
        check_node_selector(selector, f"{path}.nodeSelector", errors)
        terms = selector.get("nodeSelectorTerms") or []
        if len(terms) != 1:
            words = "must have exactly one node selector term"
            errors.append(bad_value(f"{path}.nodeSelector.nodeSelectorTerms", terms, words))
    for key in ("allNodes", "perDeviceNodeSelection"):
        if spec.get(key) is False:
            errors.append(bad_value(f"{path}.{key}", False, "must be either unset or set to true"))
    if not given:
        errors.append(required(path, f"exactly one of {_LISTED} is required"))
    elif len(given) > 1:
        shown = "{" + ", ".join(f"`{key}`" for key in given) + "}"
        words = f"exactly one of {_LISTED} is required, but multiple fields are set"
        errors.append(bad_value(path, shown, words))


def _check_devices(devices: list[Obj], is_placed: bool, errors: Errors) -> None:
    path = "spec.devices"
    is_special = any(one.get("taints") or one.get("consumesCounters") for one in devices)
    most = _MOST_SPECIAL_DEVICES if is_special else _MOST_DEVICES
    if len(devices) > most:
        errors.append(too_many(path, len(devices), most))
        return
    for place, device in enumerate(devices):
        check_device(device, is_placed, f"{path}[{place}]", errors)
    check_unique([one.get("name", "") for one in devices], path, errors)


def _check_counter_sets(sets: list[Obj], path: str, errors: Errors) -> None:
    if len(sets) > _MOST_COUNTER_SETS:
        errors.append(too_many(path, len(sets), _MOST_COUNTER_SETS))
        return
    for place, one in enumerate(sets):
        check_label(one.get("name", ""), f"{path}[{place}].name", errors)
        check_counters(one.get("counters") or {}, f"{path}[{place}].counters", errors)
    check_unique([one.get("name", "") for one in sets], path, errors)
