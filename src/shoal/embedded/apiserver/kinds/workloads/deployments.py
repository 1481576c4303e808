"""Deployments and ReplicaSets: the same template and selector, one with a way to change them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shoal.embedded.apiserver.field_errors import FieldError, bad_value, not_allowed, not_supported, required
from shoal.embedded.apiserver.kinds.complaints import Errors, Obj, add_negative
from shoal.embedded.apiserver.kinds.pods.defaults import default_template
from shoal.embedded.apiserver.kinds.pods.warnings import pod_warnings
from shoal.embedded.apiserver.kinds.workloads.statuses import (
    DEPLOYMENTS,
    PARTS_OF_DEPLOYMENTS,
    PARTS_OF_SETS,
    SETS,
    check_counts,
)
from shoal.embedded.apiserver.kinds.workloads.templates import (
    amount_of,
    check_count_or_share,
    check_running_template,
    check_selects_template,
    check_share_of_all,
    check_template,
    check_workload_selector,
)
from shoal.embedded.apiserver.strategy import Strategy

_EMPTY_SELECTOR = "empty selector is invalid for deployment"
"""Kubernetes says so of replica sets as well."""


class TemplateStrategy(Strategy):
    """Of workloads whose spec holds a pod template."""

    has_status = True
    counts_generation = True
    initial_status: Mapping[str, Any] = {}

    def default(self, obj: Obj) -> None:
        default_template(obj.setdefault("spec", {}).setdefault("template", {}))

    def warnings(self, new: Obj, old: Obj | None) -> list[str]:
        template = new["spec"]["template"]
        if old is not None and old["spec"].get("template") == template:
            return []
        return pod_warnings(template.get("metadata") or {}, template["spec"], "spec.template.")


class DeploymentStrategy(TemplateStrategy):
    immutable_fields = ("spec.selector",)

    def default(self, obj: Obj) -> None:
        super().default(obj)
        spec = obj["spec"]
        spec.setdefault("replicas", 1)
        spec.setdefault("revisionHistoryLimit", 10)
        spec.setdefault("progressDeadlineSeconds", 600)
        strategy = spec.setdefault("strategy", {})
        if not strategy.get("type"):
            strategy["type"] = "RollingUpdate"
        if strategy["type"] == "RollingUpdate":
            rolling = strategy.setdefault("rollingUpdate", {})
            rolling.setdefault("maxUnavailable", "25%")
            rolling.setdefault("maxSurge", "25%")

    def validate(self, obj: Obj) -> list[FieldError]:
        errors: Errors = []
        spec = obj["spec"]
        check_replicated(spec, errors)
        _check_strategy(spec.get("strategy") or {}, "spec.strategy", errors)
        add_negative(errors, "spec.minReadySeconds", spec.get("minReadySeconds"))
        add_negative(errors, "spec.revisionHistoryLimit", spec.get("revisionHistoryLimit"))
        if (deadline := spec.get("progressDeadlineSeconds")) is not None:
            add_negative(errors, "spec.progressDeadlineSeconds", deadline)
            if deadline <= spec.get("minReadySeconds", 0):
                words = "must be greater than minReadySeconds"
                errors.append(bad_value("spec.progressDeadlineSeconds", deadline, words))
        return errors

    def validate_status(self, new: Obj, old: Obj) -> list[FieldError]:
        return check_counts(new, old, DEPLOYMENTS, PARTS_OF_DEPLOYMENTS)


class ReplicaSetStrategy(TemplateStrategy):
    initial_status: Mapping[str, Any] = {"replicas": 0}

    immutable_fields = ("spec.selector",)

    def default(self, obj: Obj) -> None:
        super().default(obj)
        obj["spec"].setdefault("replicas", 1)

    def validate(self, obj: Obj) -> list[FieldError]:
        errors: Errors = []
        check_replicated(obj["spec"], errors)
        add_negative(errors, "spec.minReadySeconds", obj["spec"].get("minReadySeconds"))
        return errors

    def validate_status(self, new: Obj, old: Obj) -> list[FieldError]:
        return check_counts(new, old, SETS, PARTS_OF_SETS)

    def fields(self, obj: Obj) -> Mapping[str, str]:
        return {"status.replicas": str((obj.get("status") or {}).get("replicas", 0))}

    def selectable(self) -> tuple[str, ...]:
        return ("status.replicas",)


def check_replicated(spec: Obj, errors: Errors) -> None:
    add_negative(errors, "spec.replicas", spec.get("replicas"))
    if not check_workload_selector(spec, "spec", _EMPTY_SELECTOR, errors):
        # What selects nothing cannot be compared with the template, and Kubernetes does not look at it then.
        errors.append(bad_value("spec.selector", spec["selector"], "invalid label selector"))
        return
    check_selects_template(spec, "spec", errors)
    check_template(spec["template"], "spec.template", errors)
    check_running_template(spec["template"], "spec.template", "ReplicaSet", errors)


def _check_strategy(strategy: Obj, path: str, errors: Errors) -> None:
    kind, rolling = strategy.get("type", ""), strategy.get("rollingUpdate")
    if kind == "Recreate":
        if rolling is not None:
            words = "may not be specified when strategy `type` is 'Recreate'"
            errors.append(not_allowed(f"{path}.rollingUpdate", words))
    elif kind != "RollingUpdate":
        errors.append(not_supported(path, strategy, ("Recreate", "RollingUpdate")))
    elif rolling is None:
        errors.append(required(f"{path}.rollingUpdate", "this should be defaulted and never be nil"))
    else:
        _check_rolling(rolling, f"{path}.rollingUpdate", errors)


def _check_rolling(rolling: Obj, path: str, errors: Errors) -> None:
    gone, extra = rolling.get("maxUnavailable"), rolling.get("maxSurge")
    check_count_or_share(gone, f"{path}.maxUnavailable", errors)
    check_count_or_share(extra, f"{path}.maxSurge", errors)
    if amount_of(gone) == 0 and amount_of(extra) == 0:
        errors.append(bad_value(f"{path}.maxUnavailable", gone, "may not be 0 when `maxSurge` is 0"))
    check_share_of_all(gone, f"{path}.maxUnavailable", errors)
