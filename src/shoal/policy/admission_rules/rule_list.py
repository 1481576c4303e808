"""Lists the rules at admission with what the catalogue says about them."""

from __future__ import annotations

import msgspec

from shoal.policy.admission_rules.policy_rules import POLICY_RULES
from shoal.policy.catalogue import AT_ADMISSION, Place, Severity, entries
from shoal.policy.checks import reasons


class ListedRule(msgspec.Struct, frozen=True, rename="camel"):
    id: str
    rule: str
    severity: Severity
    place: Place
    failure_policy: str
    """What happens to an object if the rule cannot be evaluated."""
    fault: str
    effect: str


def listed_rules() -> list[ListedRule]:
    """By id."""
    policies = {row.reason: row for row in POLICY_RULES}
    faults = {**reasons(), **{row.reason: row.rule.reasons[row.reason] for row in POLICY_RULES}}
    found = []
    for reason, place in AT_ADMISSION.items():
        row, entry = policies.get(reason), entries()[reason]
        failure = "Ignore" if row is None or row.has_failure_ignored else "Fail"
        found.append(ListedRule(entry.id, reason, entry.severity, place, failure, faults[reason], entry.effect))
    return sorted(found, key=lambda one: one.id)
