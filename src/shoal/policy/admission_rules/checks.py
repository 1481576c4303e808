"""Checks objects by the rules that are marked for admission, each in the mode that it has in the namespace."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Final

import msgspec

from shoal.policy.admission_rules.modes import ENFORCE, MODE_LABEL, OFF, Mode, RuleModes, rule_label
from shoal.policy.admission_rules.policy_rules import POLICY_RULES
from shoal.policy.admission_rules.quota_rule import over_quota
from shoal.policy.advice import Advice, Obj, Rule, RuleContext
from shoal.policy.catalogue import AT_ADMISSION, entries
from shoal.policy.fields import dig, string_keys
from shoal.policy.kinds import (
    AUTOSCALER,
    CONFIG_MAP,
    LIMIT_RANGE,
    NAMESPACE,
    NETWORK_POLICY,
    RESOURCE_QUOTA,
    SERVICE,
    GroupKind,
)
from shoal.policy.object_set import key_of, kind_of
from shoal.policy.pod_rules import usual_omissions
from shoal.policy.rules import TABLE

OTHER_KINDS: Final = (SERVICE, AUTOSCALER, RESOURCE_QUOTA, LIMIT_RANGE, NETWORK_POLICY)
"""Kinds without pods that are checked as well."""
_POLICY: Final = {row.reason: row.rule for row in POLICY_RULES}


class AdmissionFinding(msgspec.Struct, frozen=True, rename="camel"):
    """What a rule found in an object that is created."""

    id: str
    rule: str
    mode: Mode
    """What follows: a warning, or a refusal."""
    field: str
    message: str
    fix: str

    @property
    def text(self) -> str:
        return f"{self.message} ({self.id} {self.rule}: {self.field}; {self.fix})"


def mode_of(reason: str, modes: RuleModes, namespace: str, labels: Mapping[str, str]) -> Mode:
    """The mode of a rule. `enforce` for all rules does not include rules that are only warnings."""
    mode = modes.mode(reason, namespace, labels)
    if mode != ENFORCE or AT_ADMISSION[reason] != "warning" or labels.get(rule_label(reason)) == ENFORCE:
        return mode
    is_named = MODE_LABEL not in labels and modes.rules.get(reason) == ENFORCE
    return "enforce" if is_named else "warn"


@cache
def webhook_rules(kind: GroupKind) -> tuple[Rule, ...]:
    """The rules for objects of the kind that need other objects or tables."""
    row = next((row for row in TABLE if row.kind == kind), None)
    if row is None or kind == CONFIG_MAP:
        return ()
    marked = tuple(each for each in row.rules if _has_reason(each))
    if kind in OTHER_KINDS or not marked:
        return marked
    return (*marked, usual_omissions, over_quota)


def reviewed_kinds() -> list[GroupKind]:
    """The kinds for which the webhook is called."""
    cluster_wide = {"ClusterPolicy", "NodePool", "ClusterQueue", "ResourceFlavor", "WorkloadPriorityClass", "Queue"}
    return [row.kind for row in TABLE if webhook_rules(row.kind) and row.kind.name not in cluster_wide]


def findings(
    obj: Obj, context: RuleContext, modes: RuleModes, *, has_policies: bool = False
) -> Iterator[AdmissionFinding]:
    """`has_policies`: the API server checks the rules that are policies itself."""
    namespace, _ = key_of(obj)
    if namespace in modes.excluded:
        return
    found = context.find(NAMESPACE, "", namespace)
    labels = {key: str(value) for key, value in string_keys(dig(found, "metadata", "labels")).items()}
    rules = () if has_policies else tuple(row.rule for row in POLICY_RULES)
    for each in (*rules, *webhook_rules(kind_of(obj))):
        wanted = [reason for reason in each.reasons if _is_checked(reason, each)]
        by_reason = {reason: mode_of(reason, modes, namespace, labels) for reason in wanted}
        if all(mode == OFF for mode in by_reason.values()):
            continue
        for advice in each(obj, context):
            mode = by_reason.get(advice.reason, "off")
            if mode != OFF:
                yield _finding(advice, mode)


def _is_checked(reason: str, rule: Rule) -> bool:
    """A policy's rule is checked by its own function only, so that expression and check agree."""
    place = AT_ADMISSION.get(reason)
    return place is not None and (place != "policy" or _POLICY[reason] is rule)


def _has_reason(rule: Rule) -> bool:
    return any(AT_ADMISSION.get(reason) in ("webhook", "warning") for reason in rule.reasons)


def _finding(advice: Advice, mode: Mode) -> AdmissionFinding:
    entry = entries()[advice.reason]
    return AdmissionFinding(entry.id, advice.reason, mode, advice.path, advice.what, advice.fix)
