"""Leases: heartbeats of nodes and who leads."""

from __future__ import annotations

from shoal.embedded.apiserver.field_errors import FieldError, bad_value
from shoal.embedded.apiserver.kinds.complaints import NOT_POSITIVE, Errors, Obj, add_negative
from shoal.embedded.apiserver.strategy import Strategy

_GATED = ("strategy", "preferredHolder")
"""Fields of coordinated leader election, which is off by default: what is sent in them is dropped."""


class LeaseStrategy(Strategy):
    counts_generation = False
    creates_on_update = True
    needs_version = True
    """Whether a PUT has to say which version it replaces: two leaders must not overwrite each other."""

    def default(self, obj: Obj) -> None:
        obj.setdefault("spec", {})

    def prepare_create(self, obj: Obj) -> None:
        _drop_gated(obj)

    def prepare_update(self, new: Obj, old: Obj) -> None:
        super().prepare_update(new, old)
        _drop_gated(new)

    def validate(self, obj: Obj) -> list[FieldError]:
        spec = obj.get("spec")
        errors: Errors = []
        if not spec:
            return errors
        duration_s = spec.get("leaseDurationSeconds")
        if duration_s is not None and duration_s <= 0:
            errors.append(bad_value("spec.leaseDurationSeconds", duration_s, NOT_POSITIVE))
        add_negative(errors, "spec.leaseTransitions", spec.get("leaseTransitions"))
        return errors


def _drop_gated(obj: Obj) -> None:
    for key in _GATED:
        (obj.get("spec") or {}).pop(key, None)
