"""Checks objects by the rules that are marked for admission, each in the mode that it has in the namespace."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Final

import msgspec

from shoal.policy.admission_rules.modes import ENFORCE, MODE_LABEL, OFF, Mode, RuleModes, rule_label
from shoal.policy.advice import Advice, Obj, RuleContext
from shoal.policy.catalogue import at_admission, checks, policy_checks, rules
from shoal.policy.declarations import Check
from shoal.policy.fields import dig, string_keys
from shoal.policy.kinds import CLUSTER_WIDE, NAMESPACE, POD, GroupKind
from shoal.policy.object_set import key_of, kind_of

_MOST_KINDS: Final = 256
"""Users choose the kinds of objects in files, so that a cache of them is bounded."""


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
    if mode != ENFORCE or at_admission()[reason] != "warning" or labels.get(rule_label(reason)) == ENFORCE:
        return mode
    is_named = MODE_LABEL not in labels and modes.rules.get(reason) == ENFORCE
    return "enforce" if is_named else "warn"


@lru_cache(maxsize=_MOST_KINDS)
def webhook_checks(kind: GroupKind) -> tuple[Check, ...]:
    """The checks for objects of the kind that need other objects or tables."""
    return tuple(each for each in checks() if kind in each.kinds_at_admission and _is_marked(each))


def reviewed_kinds() -> list[GroupKind]:
    """The kinds for which the webhook is called: pods first, then by group and name."""
    found = {kind for each in checks() if _is_marked(each) for kind in each.kinds_at_admission} - CLUSTER_WIDE
    return sorted(found, key=lambda kind: (kind != POD, kind))


def findings(
    obj: Obj, context: RuleContext, modes: RuleModes, *, has_policies: bool = False
) -> Iterator[AdmissionFinding]:
    """`has_policies`: the API server checks the rules that are policies itself."""
    namespace, _ = key_of(obj)
    if namespace in modes.excluded:
        return
    found = context.find(NAMESPACE, "", namespace)
    labels = {key: str(value) for key, value in string_keys(dig(found, "metadata", "labels")).items()}
    for each, wanted in check_pairs(obj, has_policies=has_policies):
        by_reason = {reason: mode_of(reason, modes, namespace, labels) for reason in wanted}
        if all(mode == OFF for mode in by_reason.values()):
            continue
        for advice in each(obj, context):
            mode = by_reason.get(advice.reason, "off")
            if mode != OFF:
                yield _finding(advice, mode)


def check_pairs(obj: Obj, *, has_policies: bool = False) -> tuple[tuple[Check, tuple[str, ...]], ...]:
    """The checks of an object that is created, each with the rules that count of what it reports."""
    return _check_pairs(kind_of(obj), has_policies)


@lru_cache(maxsize=_MOST_KINDS)
def _check_pairs(kind: GroupKind, has_policies: bool) -> tuple[tuple[Check, tuple[str, ...]], ...]:
    stateless = () if has_policies else policy_checks()
    return tuple(
        (each, tuple(reason for reason in each.reasons if _is_checked(reason, each)))
        for each in (*stateless, *webhook_checks(kind))
    )


def _is_checked(reason: str, check: Check) -> bool:
    """A policy's rule is checked by its own function only, so that expression and check agree."""
    place = at_admission().get(reason)
    return place is not None and (place != "policy" or check.is_policy)


def _is_marked(check: Check) -> bool:
    return any(at_admission().get(reason) in ("webhook", "warning") for reason in check.reasons)


def _finding(advice: Advice, mode: Mode) -> AdmissionFinding:
    rule = rules()[advice.reason]
    fix = advice.fix_at_admission or advice.fix
    return AdmissionFinding(rule.id, advice.reason, mode, advice.path, advice.what, fix)
