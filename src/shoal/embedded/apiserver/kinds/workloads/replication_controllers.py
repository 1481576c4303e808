"""ReplicationControllers, the oldest way to keep a number of pods: the selector is a plain map."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shoal.embedded.apiserver.field_errors import FieldError, bad_value, required
from shoal.embedded.apiserver.kinds.complaints import Errors, Obj, add_negative
from shoal.embedded.apiserver.kinds.workloads.deployments import TemplateStrategy
from shoal.embedded.apiserver.kinds.workloads.statuses import PARTS_OF_SETS, SETS, check_counts
from shoal.embedded.apiserver.kinds.workloads.templates import MISMATCH, check_running_template, check_template


class ReplicationControllerStrategy(TemplateStrategy):
    orphans_by_default = True
    initial_status: Mapping[str, Any] = {"replicas": 0}

    def default(self, obj: Obj) -> None:
        spec = obj.setdefault("spec", {})
        spec.setdefault("replicas", 1)
        if "template" not in spec:
            return
        super().default(obj)
        labels = spec["template"]["metadata"].get("labels")
        if labels:
            if not spec.get("selector"):
                spec["selector"] = dict(labels)
            metadata = obj.setdefault("metadata", {})
            if not metadata.get("labels"):
                metadata["labels"] = dict(labels)

    def validate(self, obj: Obj) -> list[FieldError]:
        errors: Errors = []
        spec = obj["spec"]
        add_negative(errors, "spec.minReadySeconds", spec.get("minReadySeconds"))
        selector = spec.get("selector") or {}
        if not selector:
            errors.append(required("spec.selector"))
        add_negative(errors, "spec.replicas", spec.get("replicas"))
        template = spec.get("template")
        if template is None:
            errors.append(required("spec.template"))
            return errors
        labels = (template.get("metadata") or {}).get("labels") or {}
        if any(labels.get(key) != value for key, value in selector.items()):
            errors.append(bad_value("spec.template.metadata.labels", labels, MISMATCH))
        check_template(template, "spec.template", errors)
        check_running_template(template, "spec.template", "ReplicationController", errors)
        return errors

    def validate_status(self, new: Obj, old: Obj) -> list[FieldError]:
        return check_counts(new, old, SETS, PARTS_OF_SETS)

    def warnings(self, new: Obj, old: Obj | None) -> list[str]:
        return super().warnings(new, old) if new["spec"].get("template") else []

    def fields(self, obj: Obj) -> Mapping[str, str]:
        return {"status.replicas": str((obj.get("status") or {}).get("replicas", 0))}

    def selectable(self) -> tuple[str, ...]:
        return ("status.replicas",)
