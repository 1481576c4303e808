"""Leases: heartbeats of nodes and who leads."""

from __future__ import annotations

from shoal.cluster.field_errors import FieldError, bad_value, not_allowed, not_supported
from shoal.cluster.kinds.complaints import NOT_POSITIVE, Errors, Obj, add_faults, add_negative
from shoal.cluster.kinds.spellings import label_key_faults
from shoal.cluster.strategy import Strategy

_STRATEGIES = ("OldestEmulationVersion",)


class LeaseStrategy(Strategy):
    counts_generation = False
    creates_on_update = True
    needs_version = True
    """Whether a PUT has to say which version it replaces: two leaders must not overwrite each other."""

    def default(self, obj: Obj) -> None:
        obj.setdefault("spec", {})

    def validate(self, obj: Obj) -> list[FieldError]:
        spec = obj.get("spec")
        errors: Errors = []
        if not spec:
            return errors
        duration_s = spec.get("leaseDurationSeconds")
        if duration_s is not None and duration_s <= 0:
            errors.append(bad_value("spec.leaseDurationSeconds", duration_s, NOT_POSITIVE))
        add_negative(errors, "spec.leaseTransitions", spec.get("leaseTransitions"))
        strategy = spec.get("strategy")
        if strategy is not None:
            path = "spec.strategy.strategy"
            if "/" in strategy:
                add_faults(errors, path, strategy, label_key_faults(strategy))
            elif strategy not in _STRATEGIES:
                errors.append(not_supported(path, strategy, _STRATEGIES))
        if spec.get("preferredHolder") and not strategy:
            words = "may only be specified if `strategy` is defined"
            errors.append(not_allowed("spec.preferredHolder", words))
        return errors
