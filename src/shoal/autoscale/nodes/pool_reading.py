"""Reads node pools: Karpenter's NodePool of v1 and v1beta1, and the Provisioner of v1alpha5.

Older versions are translated, with a warning for each. What cannot be read is an error that names the field.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final, cast

from shoal.api.resources import amounts
from shoal.api.taints import Taint, check_taints
from shoal.api.wire import to_quantity
from shoal.autoscale.nodes.instance_types import MOST_INTERRUPTIONS
from shoal.autoscale.nodes.pools import (
    SPEND_LIMIT,
    SPOT_INTERRUPTIONS,
    ConsolidationPolicy,
    DisruptionBudget,
    DisruptionReason,
    DisruptionRules,
    NodePool,
)
from shoal.autoscale.requirements import RequirementSet, admitted_values, current_label, requirement_set
from shoal.autoscale.requirements.admitted import RequirementOperator
from shoal.units.durations import DurationError, nanoseconds
from shoal.units.errors import UserError, Where, excerpt
from shoal.units.numbers import whole_of
from shoal.units.schedules import ScheduleError, read_schedule

Raw = Mapping[str, Any]

_NEVER: Final = "Never"
_SOME_TIME: Final = datetime(2026, 1, 1, tzinfo=UTC)
_DEFAULT_EXPIRY_S: Final = 720 * 3600.0
_DEFAULT_BUDGETS: Final = (DisruptionBudget("10%"),)
_POLICIES: Final[Mapping[str, ConsolidationPolicy]] = {
    "": "WhenEmptyOrUnderutilized",
    "WhenEmpty": "WhenEmpty",
    "WhenEmptyOrUnderutilized": "WhenEmptyOrUnderutilized",
    "WhenUnderutilized": "WhenEmptyOrUnderutilized",
    "Balanced": "Balanced",
}
_REASONS: Final = ("Empty", "Underutilized", "Drifted")
_MOST_MIN_VALUES: Final = 50


def pool_of(raw: Raw, *, has_defaults: bool = True, warnings: list[str] | None = None) -> NodePool:
    """The pool that an object describes. Without `has_defaults` absent fields have no defaults: a pool without budgets
    has no bound, and its nodes do not expire.
    """
    warned = [] if warnings is None else warnings
    version, kind = str(raw.get("apiVersion", "karpenter.sh/v1")), str(raw.get("kind", "NodePool"))
    where = Where(obj=f"{kind} {(raw.get('metadata') or {}).get('name', '')}")
    if kind == "Provisioner":
        warned.append(f"{where}: {kind} of {version} is read as a NodePool of karpenter.sh/v1")
        raw, version = _of_provisioner(raw), "karpenter.sh/v1"
    elif version.endswith("/v1beta1"):
        warned.append(f"{where}: version {version} is read as karpenter.sh/v1")
        raw = _of_beta(raw)
    pool = _pool(raw, where, has_defaults=has_defaults)
    warned += [f"{where}: {each}" for each in _probable_mistakes(pool)]
    return pool


def _probable_mistakes(pool: NodePool) -> list[str]:
    """What is valid and allows less than it seems to."""
    found = []
    for budget in pool.disruption.budgets:
        if bool(budget.schedule) != (budget.duration_s is not None):
            found.append("a budget has a schedule or a duration alone, so it allows no disruption; write both or none")
        elif budget.schedule:
            try:
                if read_schedule(budget.schedule).next(_SOME_TIME) is None:
                    found.append(f"budget schedule {excerpt(budget.schedule)} is never due")
            except ScheduleError as error:
                found.append(f"budget schedule {excerpt(budget.schedule)} allows no disruption: {error}")
        if whole_of(budget.nodes.removesuffix("%")) is None:
            found.append(f"budget nodes {excerpt(budget.nodes)} is no number, so it allows no disruption")
    found += [f"limit {name} allows no node" for name, limit in pool.limits.items() if limit <= 0]
    return found


def _pool(raw: Raw, where: Where, *, has_defaults: bool) -> NodePool:
    spec: Raw = raw.get("spec") or {}
    template: Raw = spec.get("template") or {}
    node: Raw = template.get("spec") or {}
    at = where.below("spec")
    labels = {current_label(key): str(value) for key, value in _labels(template).items()}
    expire = duration_s(node.get("expireAfter"), at.below("template.spec.expireAfter"))
    return NodePool(
        name=str(raw["metadata"]["name"]),
        requirements=requirements_of(node.get("requirements") or (), at.below("template.spec.requirements")),
        labels=labels,
        taints=taints_of(node.get("taints") or (), at.below("template.spec.taints")),
        startup_taints=taints_of(node.get("startupTaints") or (), at.below("template.spec.startupTaints")),
        weight=int(spec.get("weight") or 0),
        limits=_limits(spec.get("limits") or {}),
        replicas=spec.get("replicas"),
        disruption=_disruption(spec.get("disruption") or {}, at.below("disruption"), has_defaults=has_defaults),
        expire_after_s=_DEFAULT_EXPIRY_S if has_defaults and "expireAfter" not in node else expire,
        termination_grace_s=duration_s(
            node.get("terminationGracePeriod"), at.below("template.spec.terminationGracePeriod")
        ),
        spot_interruptions_per_hour=_rate((raw["metadata"].get("annotations") or {}).get(SPOT_INTERRUPTIONS), where),
        node_class=str((node.get("nodeClassRef") or {}).get("kind") or ""),
    )


def _rate(text: Any, where: Where) -> float | None:
    if text is None:
        return None
    try:
        rate = float(text)
    except (TypeError, ValueError):
        rate = -1.0
    if not 0 <= rate <= MOST_INTERRUPTIONS:
        here = where.below("metadata.annotations").key(SPOT_INTERRUPTIONS)
        raise UserError(f"{excerpt(str(text))} is no rate per hour", where=here, fix="write for example '0.02'")
    return rate


def _labels(template: Raw) -> Raw:
    return (template.get("metadata") or {}).get("labels") or {}


def requirements_of(raw: Any, where: Where) -> RequirementSet:
    """Requirements as a NodePool writes them."""
    found = []
    for index, each in enumerate(raw):
        here = where.below(f"[{index}]")
        least = each.get("minValues")
        if least is not None and not 1 <= int(least) <= _MOST_MIN_VALUES:
            raise UserError(f"must be from 1 to {_MOST_MIN_VALUES}, got {least}", where=here.below("minValues"))
        values = tuple(str(value) for value in each.get("values") or ())
        operator = cast(RequirementOperator, each.get("operator"))
        if operator in ("In", "NotIn") and not values:
            raise UserError(f"operator {operator} needs at least one value", where=here.below("values"))
        try:
            found.append((str(each["key"]), admitted_values(operator, values, least)))
        except UserError as error:
            raise error.at(here) from error
    return requirement_set(found)


def taints_of(raw: Any, where: Where) -> tuple[Taint, ...]:
    """Taints as an object writes them."""
    taints = tuple(Taint(each["key"], each["effect"], str(each.get("value") or "")) for each in raw)
    check_taints(taints, where)
    return taints


def _limits(raw: Raw) -> dict[str, int]:
    found = amounts({name: to_quantity(value) for name, value in raw.items() if name != SPEND_LIMIT})
    if SPEND_LIMIT in raw:
        found[SPEND_LIMIT] = to_quantity(raw[SPEND_LIMIT]).milli_value()
    return found


def _disruption(raw: Raw, where: Where, *, has_defaults: bool) -> DisruptionRules:
    written = str(raw.get("consolidationPolicy") or "")
    policy = _POLICIES.get(written)
    if policy is None:
        raise UserError(
            f"unknown policy {excerpt(written)}",
            where=where.below("consolidationPolicy"),
            fix="use WhenEmpty, WhenEmptyOrUnderutilized or Balanced",
        )
    after: float | None = 0.0
    if raw.get("consolidateAfter") is not None:
        after = duration_s(raw["consolidateAfter"], where.below("consolidateAfter"))
    budgets = raw.get("budgets")
    read = tuple(_budget(each, where.below(f"budgets[{index}]")) for index, each in enumerate(budgets or ()))
    return DisruptionRules(policy, after, _DEFAULT_BUDGETS if budgets is None and has_defaults else read)


def _budget(raw: Raw, where: Where) -> DisruptionBudget:
    reasons = tuple(raw.get("reasons") or ())
    for reason in reasons:
        if reason not in _REASONS:
            raise UserError(
                f"unknown reason {excerpt(str(reason))}",
                where=where.below("reasons"),
                fix=f"use {', '.join(_REASONS)}",
            )
    return DisruptionBudget(
        nodes=str(raw.get("nodes", "10%")),
        reasons=cast(tuple[DisruptionReason, ...], reasons),
        schedule=str(raw.get("schedule") or ""),
        duration_s=duration_s(raw.get("duration"), where.below("duration")),
    )


def duration_s(raw: Any, where: Where) -> float | None:
    """Seconds; None where there is no end."""
    if raw is None or raw == _NEVER:
        return None
    try:
        return nanoseconds(str(raw)) / 1e9
    except DurationError as error:
        raise UserError(str(error), where=where, fix="write for example 30m or 720h, or Never") from error


def _of_beta(raw: Raw) -> Raw:
    """v1beta1 had the expiry among the rules of disruption."""
    spec = dict(raw.get("spec") or {})
    template = dict(spec.get("template") or {})
    node = dict(template.get("spec") or {})
    disruption = dict(spec.get("disruption") or {})
    if "expireAfter" in disruption:
        node.setdefault("expireAfter", disruption.pop("expireAfter"))
    template["spec"] = node
    return {**raw, "spec": {**spec, "template": template, "disruption": disruption}}


def _of_provisioner(raw: Raw) -> Raw:
    """v1alpha5 had all fields of the nodes at the top, and times to live instead of a policy."""
    old: Raw = raw.get("spec") or {}
    node: dict[str, Any] = {key: old[key] for key in ("requirements", "taints", "startupTaints") if key in old}
    until = old.get("ttlSecondsUntilExpired")
    node["expireAfter"] = _NEVER if until is None else f"{until}s"
    disruption: dict[str, Any] = {"consolidationPolicy": "WhenEmpty", "consolidateAfter": _NEVER}
    if (old.get("consolidation") or {}).get("enabled"):
        disruption = {"consolidationPolicy": "WhenEmptyOrUnderutilized"}
    elif old.get("ttlSecondsAfterEmpty") is not None:
        disruption["consolidateAfter"] = f"{old['ttlSecondsAfterEmpty']}s"
    if "providerRef" in old:
        node["nodeClassRef"] = {"kind": old["providerRef"].get("kind") or "AWSNodeTemplate"}
    spec: dict[str, Any] = {
        "template": {"metadata": {"labels": old.get("labels") or {}}, "spec": node},
        "disruption": disruption,
        "limits": (old.get("limits") or {}).get("resources") or {},
    }
    if old.get("weight") is not None:
        spec["weight"] = old["weight"]
    return {"metadata": raw["metadata"], "spec": spec}
