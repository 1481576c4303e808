"""DaemonSets: one pod on every node, changed node by node."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shoal.embedded.apiserver.field_errors import FieldError, bad_value, not_supported, required
from shoal.embedded.apiserver.kinds.complaints import Errors, Obj, add_negative
from shoal.embedded.apiserver.kinds.labels import check_selector
from shoal.embedded.apiserver.kinds.workloads.deployments import TemplateStrategy
from shoal.embedded.apiserver.kinds.workloads.statuses import DAEMON_SETS, check_counts
from shoal.embedded.apiserver.kinds.workloads.templates import (
    amount_of,
    check_count_or_share,
    check_running_template,
    check_selects_template,
    check_share_of_all,
    check_template,
)
from shoal.embedded.apiserver.label_selectors import is_empty
from shoal.units.numbers import whole_of

_GENERATION = "deprecated.daemonset.template.generation"


class DaemonSetStrategy(TemplateStrategy):
    initial_status: Mapping[str, Any] = {
        "currentNumberScheduled": 0,
        "numberMisscheduled": 0,
        "desiredNumberScheduled": 0,
        "numberReady": 0,
    }

    immutable_fields = ("spec.selector",)

    def default(self, obj: Obj) -> None:
        super().default(obj)
        spec = obj["spec"]
        spec.setdefault("revisionHistoryLimit", 10)
        strategy = spec.setdefault("updateStrategy", {})
        if not strategy.get("type"):
            strategy["type"] = "RollingUpdate"
        if strategy["type"] == "RollingUpdate":
            rolling = strategy.setdefault("rollingUpdate", {})
            rolling.setdefault("maxUnavailable", 1)
            rolling.setdefault("maxSurge", 0)

    def prepare_create(self, obj: Obj) -> None:
        super().prepare_create(obj)
        _count_template(obj, 1)

    def prepare_update(self, new: Obj, old: Obj) -> None:
        super().prepare_update(new, old)
        written = whole_of((old["metadata"].get("annotations") or {}).get(_GENERATION, ""))
        count = 1 if written is None else written
        _count_template(new, count + (new["spec"]["template"] != old["spec"].get("template")))

    def validate(self, obj: Obj) -> list[FieldError]:
        errors: Errors = []
        spec = obj["spec"]
        selector = spec.get("selector")
        if selector is None:
            errors.append(required("spec.selector"))
        before = len(errors)
        check_selector(selector, "spec.selector", errors)
        if len(errors) == before:
            check_selects_template(spec, "spec", errors)
        if selector is not None and is_empty(selector):
            errors.append(bad_value("spec.selector", selector, "empty selector is invalid for daemonset"))
        check_template(spec["template"], "spec.template", errors)
        check_running_template(spec["template"], "spec.template", "DaemonSet", errors)
        add_negative(errors, "spec.minReadySeconds", spec.get("minReadySeconds"))
        _check_strategy(spec.get("updateStrategy") or {}, "spec.updateStrategy", errors)
        add_negative(errors, "spec.revisionHistoryLimit", spec.get("revisionHistoryLimit"))
        return errors

    def validate_status(self, new: Obj, old: Obj) -> list[FieldError]:
        return check_counts(new, old, DAEMON_SETS)


def _count_template(obj: Obj, count: int) -> None:
    """An old field of the spec that lives on as an annotation, and that clients still see."""
    metadata = obj["metadata"]
    metadata["annotations"] = {**(metadata.get("annotations") or {}), _GENERATION: str(count)}


def _check_strategy(strategy: Obj, path: str, errors: Errors) -> None:
    kind = strategy.get("type", "")
    if kind == "OnDelete":
        return
    if kind != "RollingUpdate":
        errors.append(not_supported(path, strategy, ("RollingUpdate", "OnDelete")))
        return
    rolling = strategy.get("rollingUpdate")
    if rolling is None:
        errors.append(required(f"{path}.rollingUpdate"))
        return
    gone, extra = rolling.get("maxUnavailable"), rolling.get("maxSurge")
    path = f"{path}.rollingUpdate"
    check_count_or_share(gone, f"{path}.maxUnavailable", errors)
    check_share_of_all(gone, f"{path}.maxUnavailable", errors)
    check_count_or_share(extra, f"{path}.maxSurge", errors)
    check_share_of_all(extra, f"{path}.maxSurge", errors)
    if amount_of(gone) and amount_of(extra):
        errors.append(bad_value(f"{path}.maxSurge", extra, "may not be set when maxUnavailable is non-zero"))
    elif not amount_of(gone) and not amount_of(extra):
        errors.append(required(f"{path}.maxUnavailable", "cannot be 0 when maxSurge is 0"))
