"""Nodes: what a kubelet registers, and what may change about it later."""

from __future__ import annotations

from collections.abc import Mapping

from shoal.embedded.apiserver.field_errors import FieldError, duplicate, not_allowed, required
from shoal.embedded.apiserver.kinds.addresses import range_faults
from shoal.embedded.apiserver.kinds.amounts import check_amount, check_resource_name
from shoal.embedded.apiserver.kinds.complaints import Errors, Obj, add_faults
from shoal.embedded.apiserver.kinds.pods.placement import check_effect
from shoal.embedded.apiserver.kinds.pods.strategy import keep_all_but_status
from shoal.embedded.apiserver.kinds.spellings import label_key_faults, label_value_faults
from shoal.embedded.apiserver.strategy import Strategy

_INFO = (
    "machineID", "systemUUID", "bootID", "kernelVersion", "osImage", "containerRuntimeVersion", "kubeletVersion",
    "kubeProxyVersion", "operatingSystem", "architecture",
)  # fmt: skip
_FIXED_ONCE = {"podCIDR": "podCIDRs", "providerID": "providerID"}
"""What is set once, and the field that Kubernetes names when it changes."""
_TAINTS = "metadata.taints"
"""Sic: Kubernetes gives this path for `spec.taints`."""
_FREE = ("taints", "unschedulable", "configSource", "externalID", "podCIDRs", *_FIXED_ONCE)
_FROZEN_WORDS = "node updates may only change labels, taints, or capacity"


class NodeStrategy(Strategy):
    """The status may come with the creation: that is how a kubelet registers."""

    has_status = True
    counts_generation = False

    def default(self, obj: Obj) -> None:
        spec = obj.setdefault("spec", {})
        ranges = spec.get("podCIDRs")
        if (one := spec.get("podCIDR")) and (not ranges or ranges[0] != one):
            spec["podCIDRs"] = [one]
        elif ranges and not one:
            spec["podCIDR"] = ranges[0]
        status = obj.setdefault("status", {})
        if "allocatable" not in status and status.get("capacity"):
            status["allocatable"] = dict(status["capacity"])
        status.setdefault("daemonEndpoints", {}).setdefault("kubeletEndpoint", {"Port": 0})
        info = status.setdefault("nodeInfo", {})
        for key in _INFO:
            info.setdefault(key, "")

    def prepare_create(self, obj: Obj) -> None:
        """Nothing is taken away."""

    def prepare_status(self, new: Obj, old: Obj) -> None:
        """Labels and annotations may come along: kubelets and device agents send both at once."""
        keep_all_but_status(new, old)

    def validate(self, obj: Obj) -> list[FieldError]:
        errors: Errors = []
        check_taints(obj["spec"].get("taints") or [], _TAINTS, errors)
        status = obj.get("status") or {}
        _check_ranges(obj["spec"], errors)
        for key in ("capacity", "allocatable"):
            for name, amount in (status.get(key) or {}).items():
                path = f"status.{key}.{name}"
                check_resource_name(name, path, errors)
                check_amount(name, amount, path, errors)
        return errors

    def validate_update(self, new: Obj, old: Obj) -> list[FieldError]:
        errors = self.validate(new)
        spec, before = new["spec"], old.get("spec") or {}
        check_taints(spec.get("taints") or [], _TAINTS, errors)
        _check_ranges(spec, errors)
        for key, where in _FIXED_ONCE.items():
            if before.get(key) and spec.get(key) != before[key]:
                words = f'node updates may not change {key} except from "" to valid'
                errors.append(not_allowed(f"spec.{where}", words))
        if any(spec.get(key) != before.get(key) for key in {*spec, *before}.difference(_FREE)):
            errors.append(not_allowed("", _FROZEN_WORDS))
        return errors

    def validate_status(self, new: Obj, old: Obj) -> list[FieldError]:  # noqa: ARG002 - the signature is the strategy's
        errors: Errors = []
        status = new.get("status") or {}
        for key in ("capacity", "allocatable"):
            for name, amount in (status.get(key) or {}).items():
                check_amount(name, amount, f"status.{key}.{name}", errors)
        seen: set[tuple[str, str]] = set()
        for place, one in enumerate(status.get("addresses") or ()):
            key_of = (one.get("type", ""), one.get("address", ""))
            if key_of in seen:
                errors.append(duplicate(f"status.addresses[{place}]", one))
            seen.add(key_of)
        return errors

    def fields(self, obj: Obj) -> Mapping[str, str]:
        return {"spec.unschedulable": "true" if (obj.get("spec") or {}).get("unschedulable") else "false"}

    def selectable(self) -> tuple[str, ...]:
        return ("spec.unschedulable",)


def _check_ranges(spec: Obj, errors: Errors) -> None:
    """Only that each is a range. The first is also `podCIDR`, which is not checked by itself."""
    for place, one in enumerate(spec.get("podCIDRs") or ()):
        add_faults(errors, f"spec.podCIDRs[{place}]", one, range_faults(one))


def check_taints(taints: list[Obj], path: str, errors: Errors) -> None:
    seen: set[tuple[str, str]] = set()
    for place, taint in enumerate(taints):
        key, value, effect = taint.get("key", ""), taint.get("value", ""), taint.get("effect", "")
        here = f"{path}[{place}]"
        add_faults(errors, f"{here}.key", key, label_key_faults(key))
        if faults := label_value_faults(value):
            add_faults(errors, f"{here}.value", value, (";".join(faults),))
        if not effect:
            errors.append(required(f"{here}.effect"))
        else:
            check_effect(effect, f"{here}.effect", errors)
        if (key, effect) in seen:
            errors.append(_twice(here, taint))
        seen.add((key, effect))


def _twice(path: str, taint: Obj) -> FieldError:
    found = duplicate(path, taint)
    words = "taints must be unique by key and effect pair"
    return FieldError(found.reason, found.words, path, taint, words)
