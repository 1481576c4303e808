"""Lists the rules at admission with what the catalogue says about them."""

from __future__ import annotations

import msgspec

from shoal.policy.admission_rules.policies import failure_policy
from shoal.policy.catalogue import at_admission, faults, rules
from shoal.policy.declarations import Place, Severity


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
    found = []
    for reason, place in at_admission().items():
        rule = rules()[reason]
        failure = "Ignore" if rule.policy is None else failure_policy(rule.policy)
        fault = rule.fault if rule.policy is not None else faults().get(reason, rule.fault)
        found.append(ListedRule(rule.id, reason, rule.severity, place, failure, fault, rule.effect))
    return found
