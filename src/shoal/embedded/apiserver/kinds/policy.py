"""PodDisruptionBudgets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shoal.embedded.apiserver.field_errors import FieldError, bad_value, not_supported
from shoal.embedded.apiserver.kinds.complaints import Errors, Obj, add_negative
from shoal.embedded.apiserver.kinds.labels import check_selector
from shoal.embedded.apiserver.kinds.workloads.templates import check_count_or_share, check_share_of_all
from shoal.embedded.apiserver.strategy import Strategy

_UNREADY = ("AlwaysAllow", "IfHealthyBudget")
_COUNTS = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")


class DisruptionBudgetStrategy(Strategy):
    needs_version = True
    has_status = True
    counts_generation = True

    initial_status: Mapping[str, Any] = {
        "currentHealthy": 0,
        "desiredHealthy": 0,
        "disruptionsAllowed": 0,
        "expectedPods": 0,
    }

    def default(self, obj: Obj) -> None:
        obj.setdefault("spec", {})

    def validate(self, obj: Obj) -> list[FieldError]:
        errors: Errors = []
        spec = obj["spec"]
        if "minAvailable" in spec and "maxUnavailable" in spec:
            errors.append(bad_value("spec", spec, "minAvailable and maxUnavailable cannot be both set"))
        for key in ("minAvailable", "maxUnavailable"):
            if (value := spec.get(key)) is not None:
                check_count_or_share(value, f"spec.{key}", errors)
                check_share_of_all(value, f"spec.{key}", errors)
        check_selector(spec.get("selector"), "spec.selector", errors)
        unready = spec.get("unhealthyPodEvictionPolicy")
        if unready is not None and unready not in _UNREADY:
            errors.append(not_supported("spec.unhealthyPodEvictionPolicy", unready, _UNREADY))
        return errors

    def validate_status(self, new: Obj, old: Obj) -> list[FieldError]:  # noqa: ARG002 - the signature is the strategy's
        errors: Errors = []
        for key in _COUNTS:
            add_negative(errors, f"status.{key}", (new.get("status") or {}).get(key))
        return errors
