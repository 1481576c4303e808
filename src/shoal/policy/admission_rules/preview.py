"""What the admission rules would say about objects that exist, if they were created now.

An object whose controller is among the objects is left out: the rules refuse the object that a user wrote.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from shoal.policy.admission_rules.checks import AdmissionFinding, findings
from shoal.policy.admission_rules.modes import ENFORCE, RuleModes
from shoal.policy.advice import Obj, RuleContext
from shoal.policy.fields import dig, maps
from shoal.policy.kinds import CRON_JOB, DAEMON_SET, REPLICA_SET
from shoal.policy.object_set import key_of, with_namespace

MORE_KINDS: Final = (DAEMON_SET, REPLICA_SET, CRON_JOB)
"""Kinds that are checked here beside those of the advisor."""


class PreviewLine(msgspec.Struct, frozen=True, rename="camel"):
    namespace: str
    kind: str
    name: str
    finding: AdmissionFinding


class Preview(msgspec.Struct, frozen=True, rename="camel"):
    objects: int
    refused: int
    """Objects."""
    warned: int
    """Objects that would be created, with warnings."""
    lines: Sequence[PreviewLine]


def preview(objects: Iterable[Obj], context: RuleContext, modes: RuleModes) -> Preview:
    """Refusals first, then by namespace, kind and name."""
    every = [with_namespace(obj) for obj in objects]
    present = {(key_of(obj)[0], obj.get("kind"), key_of(obj)[1]) for obj in every}
    lines: list[PreviewLine] = []
    count = 0
    for obj in every:
        namespace, name = key_of(obj)
        if dig(obj, "metadata", "deletionTimestamp") or _is_owned(obj, namespace, present):
            continue
        count += 1
        found = dict.fromkeys(findings(obj, context, modes))
        lines += [PreviewLine(namespace, str(obj.get("kind")), name, one) for one in found]
    lines.sort(key=lambda one: (one.finding.mode != ENFORCE, one.namespace, one.kind, one.name, one.finding.id))
    refused = {_object(one) for one in lines if one.finding.mode == ENFORCE}
    return Preview(count, len(refused), len({_object(one) for one in lines} - refused), lines)


def _is_owned(obj: Obj, namespace: str, present: set[tuple[str, object, str]]) -> bool:
    owners = maps(dig(obj, "metadata", "ownerReferences"))
    return any(each.get("controller") and (namespace, each.get("kind"), each.get("name")) in present for each in owners)


def _object(line: PreviewLine) -> tuple[str, str, str]:
    return line.namespace, line.kind, line.name
