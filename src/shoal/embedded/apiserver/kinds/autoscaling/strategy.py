"""HorizontalPodAutoscalers: what is filled in and refused. The rules are those of v2; v1 is checked as its v2 twin."""

from __future__ import annotations

from typing import Any

from shoal.embedded.apiserver.field_errors import FieldError, bad_value, required
from shoal.embedded.apiserver.kinds.autoscaling.behavior import check_behavior, default_behavior
from shoal.embedded.apiserver.kinds.autoscaling.conversion import convert
from shoal.embedded.apiserver.kinds.autoscaling.metrics import check_metrics, check_target, group_fault
from shoal.embedded.apiserver.kinds.complaints import Errors, Obj, add_negative
from shoal.embedded.apiserver.strategy import Strategy

_V1, _V2 = "autoscaling/v1", "autoscaling/v2"
_USUAL_UTILIZATION = 80


class AutoscalerStrategy(Strategy):
    has_status = True
    counts_generation = False

    def default(self, obj: Obj) -> None:
        spec = obj.setdefault("spec", {})
        spec.setdefault("minReplicas", 1)
        if obj.get("apiVersion") == _V1:
            # Of v1 the usual target is filled in with the conversion: other metrics may stand in an annotation.
            return
        if not spec.get("metrics"):
            target: dict[str, Any] = {"type": "Utilization", "averageUtilization": _USUAL_UTILIZATION}
            spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
        if "behavior" in spec:
            default_behavior(spec["behavior"])

    def prepare_create(self, obj: Obj) -> None:
        if obj.get("apiVersion") == _V1:
            obj["status"] = {"currentReplicas": 0, "desiredReplicas": 0}
        else:
            obj["status"] = {"currentMetrics": None, "desiredReplicas": 0}

    def validate(self, obj: Obj) -> list[FieldError]:
        return self._errors(obj, None)

    def validate_update(self, new: Obj, old: Obj) -> list[FieldError]:
        return self._errors(new, old)

    def _errors(self, obj: Obj, old: Obj | None) -> list[FieldError]:
        errors: Errors = []
        target = obj["spec"].get("scaleTargetRef") or {}
        is_kept = old is not None and _type_of(old["spec"].get("scaleTargetRef") or {}) == _type_of(target)
        if obj.get("apiVersion") == _V1:
            obj = convert(obj, _V1, _V2)
        spec = obj["spec"]
        least, most = spec.get("minReplicas"), spec.get("maxReplicas", 0)
        if least is not None and least < 1:
            # Zero is allowed only where scaling from an outside signal is switched on, which it is not by default.
            errors.append(bad_value("spec.minReplicas", least, "must be greater than or equal to 1"))
        if not most:
            errors.append(required("spec.maxReplicas", "must be set and greater than 0"))
        elif most < 0:
            errors.append(bad_value("spec.maxReplicas", most, "must be greater than or equal to 1"))
        if least is not None and most < least:
            errors.append(bad_value("spec.maxReplicas", most, "must be greater than or equal to `minReplicas`"))
        check_target(target, "spec.scaleTargetRef", errors)
        # Only of this kind in the core group there are scales; and an autoscaler that was stored before may stay so.
        fault = "" if is_kept else group_fault(target, may_be_core=target.get("kind") == "ReplicationController")
        if fault:
            errors.append(bad_value("spec.scaleTargetRef.apiVersion", target.get("apiVersion", ""), fault))
        check_metrics(spec.get("metrics") or [], "spec.metrics", errors)
        if behavior := spec.get("behavior"):
            check_behavior(behavior, "spec.behavior", errors)
        return errors

    def validate_status(self, new: Obj, old: Obj) -> list[FieldError]:  # noqa: ARG002 - the signature is the strategy's
        errors: Errors = []
        for key in ("currentReplicas", "desiredReplicas"):
            add_negative(errors, f"status.{key}", (new.get("status") or {}).get(key))
        return errors


def _type_of(reference: Obj) -> tuple[str, str]:
    return reference.get("apiVersion", ""), reference.get("kind", "")
