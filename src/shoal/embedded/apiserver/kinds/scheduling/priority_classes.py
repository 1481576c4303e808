"""PriorityClasses. Names beginning with `system-` are the system's own."""

from __future__ import annotations

from shoal.embedded.apiserver.field_errors import FieldError, not_allowed, not_supported
from shoal.embedded.apiserver.kinds.complaints import Errors, Obj, add_changed
from shoal.embedded.apiserver.strategy import Strategy

_SYSTEM = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}
_PREFIX = "system-"
_HIGHEST = 1_000_000_000
_POLICIES = ("PreemptLowerPriority", "Never")


class PriorityClassStrategy(Strategy):
    counts_generation = True

    def default(self, obj: Obj) -> None:
        obj.setdefault("preemptionPolicy", "PreemptLowerPriority")
        obj.setdefault("value", 0)

    def deletion_fault(self, name: str) -> str:
        return "this is a system priority class and cannot be deleted" if name in _SYSTEM else ""

    def generation_changed(self, new: Obj, old: Obj) -> bool:  # noqa: ARG002 - the signature is the strategy's
        """What matters of a class never changes, so it stays the first generation."""
        return False

    def validate(self, obj: Obj) -> list[FieldError]:
        errors: Errors = []
        name, value = obj["metadata"].get("name", ""), obj.get("value", 0)
        if name.startswith(_PREFIX):
            if fault := _system_fault(obj, name):
                words = "priority class names with 'system-' prefix are reserved for system use only. error: " + fault
                errors.append(not_allowed("metadata.name", words))
        elif value > _HIGHEST:
            words = f"maximum allowed value of a user defined priority is {_HIGHEST}"
            errors.append(not_allowed("value", words))
        policy = obj.get("preemptionPolicy")
        if policy is not None and policy not in _POLICIES:
            errors.append(not_supported("preemptionPolicy", policy, _POLICIES))
        return errors

    def validate_update(self, new: Obj, old: Obj) -> list[FieldError]:
        errors: Errors = []
        if new.get("value", 0) != old.get("value", 0):
            errors.append(not_allowed("value", "may not be changed in an update."))
        add_changed(errors, "preemptionPolicy", new.get("preemptionPolicy"), old.get("preemptionPolicy"))
        return errors


def _system_fault(obj: Obj, name: str) -> str:
    if name not in _SYSTEM:
        return f"{name} is not a known system priority class"
    if obj.get("value", 0) != _SYSTEM[name]:
        return f"value of {name} PriorityClass must be {_SYSTEM[name]}"
    if obj.get("globalDefault"):
        return f"globalDefault of {name} PriorityClass must be false"
    return ""
