"""What the rules of the catalogue find in the objects of a readiness check.

Guarantees: a check with a finding fails, with the id of the rule as evidence, also where it would not apply: a
misplaced object is used by nothing. A check that would pass is not run if objects that its rules need may not be read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from shoal.policy.advice import Obj
from shoal.policy.catalogue import checks, rules
from shoal.policy.checks import Warned, warnings_by
from shoal.policy.declarations import Check
from shoal.policy.diagnosis.cluster_facts import text_of
from shoal.policy.kinds import GroupKind
from shoal.policy.object_set import key_of
from shoal.policy.readiness.gpu_software import gpu_namespaces
from shoal.policy.readiness.outcomes import Outcome, ReadinessCheck, ReadinessFacts, not_run

_MOST_SHOWN = 3


def kinds_of_rules(check: ReadinessCheck) -> list[GroupKind]:
    """The kinds whose objects the rules of the check judge."""
    return list(dict.fromkeys(kind for each in _checks(check) for kind in each.kinds or check.needs))


def with_rules(check: ReadinessCheck, found: Outcome, facts: ReadinessFacts) -> Outcome:
    """The outcome of the check itself, and of its rules."""
    if not check.rules or found.state not in ("pass", "fail", "not applicable"):
        return found
    ids = ", ".join(rules()[reason].id for reason in check.rules)
    told = list(_findings(check, facts))
    if told:
        more = (f"and {len(told) - _MOST_SHOWN} more",) if len(told) > _MOST_SHOWN else ()
        shown = tuple(_words(one) for one in told[:_MOST_SHOWN])
        evidence = (*(found.evidence if found.state == "fail" else ()), *shown, *more)
        command = "shoal lint --live " + " ".join(f"--rule {id_}" for id_ in dict.fromkeys(map(_id, told)))
        fixes = dict.fromkeys(part for part in (found.fix, told[0].fix) if part)
        return Outcome("fail", evidence, "; ".join(fixes), (*found.commands, command), found.corrections)
    refused = next((why for kind in kinds_of_rules(check) if (why := facts.cluster.refusal(kind))), "")
    if found.state == "pass" and refused:
        return not_run(f"{ids}: {refused}")
    if found.state == "not applicable":
        return found
    return msgspec.structs.replace(found, evidence=(*found.evidence, f"{ids}: no finding"))


def _findings(check: ReadinessCheck, facts: ReadinessFacts) -> Iterator[Warned]:
    tenants = set(gpu_namespaces(facts.cluster)) if check.is_of_tenants else None
    for each in _checks(check):
        for kind in each.kinds or check.needs:
            objects = (obj for obj in facts.cluster.all(kind) if tenants is None or key_of(obj)[0] in tenants)
            yield from warnings_by((each,), _without_sources(objects), facts.cluster.set, check.rules)


def _checks(check: ReadinessCheck) -> list[Check]:
    return [each for each in checks() if not each.reasons.keys().isdisjoint(check.rules)]


def _without_sources(objects: Iterable[Obj]) -> Iterator[tuple[str, Obj]]:
    return (("", obj) for obj in objects)


def _id(found: Warned) -> str:
    return rules()[found.rule].id


def _words(found: Warned) -> str:
    return text_of(f"{_id(found)} {found.rule}: {found.object}, {found.field}: {found.message}")
