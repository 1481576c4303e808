"""Which pods of the past the admission rules would have refused, from what a history keeps of new pods.

The history keeps the ids of the rules that a pod broke, and no pod template: a template has secrets in its variables,
and is hundreds of times as large. So a rule that is newer than a pod is not known to be broken by it, and rules about
objects that are looked up, such as quotas and claims, are not in the history.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from shoal.policy.admission_rules.checks import check_pairs, mode_of
from shoal.policy.admission_rules.modes import ENFORCE, OFF, Mode, RuleModes
from shoal.policy.advice import Obj, RuleContext
from shoal.policy.catalogue import at_admission, reason_of, rules
from shoal.policy.fields import string_keys

HOUR_MS = 3_600_000


class CreatedPods(msgspec.Struct, frozen=True):
    """Pods of one workload that were created in the same hour and break the same rules."""

    namespace: str
    kind: str
    """Of the workload; `Pod` for a pod without one."""
    name: str
    start_ms: int
    """When the first one was created."""
    end_ms: int
    pods: int
    rules: tuple[str, ...] = ()
    """The ids of the rules."""


class PastLine(msgspec.Struct, frozen=True, rename="camel"):
    id: str
    rule: str
    namespace: str
    mode: Mode
    """What would have followed: a warning, or a refusal."""
    pods: int
    workloads: int
    example: str
    """The workload with the most pods: kind and name."""


class PastPreview(msgspec.Struct, frozen=True, rename="camel"):
    pods: int
    """Created in the window."""
    refused: int
    warned: int
    """Pods that would have been created, with warnings."""
    lines: Sequence[PastLine]


def broken_rules(pod: Obj, context: RuleContext) -> tuple[str, ...]:
    """The ids of the admission rules that a pod breaks, whatever their modes are. The node that the scheduler chose is
    left out: a pod that its creator bound does not have to select nodes."""
    spec: dict[str, Any] = {key: value for key, value in string_keys(pod.get("spec")).items() if key != "nodeName"}
    created = {**pod, "spec": spec}
    found = {
        advice.reason
        for check, reasons in check_pairs(created)
        for advice in check(created, context)
        if advice.reason in reasons
    }
    return tuple(sorted(rules()[reason].id for reason in found))


def past_preview(created: Iterable[CreatedPods], modes: RuleModes) -> PastPreview:
    """By rule and namespace: refusals first, then the rules with most pods. Labels of namespaces are not known."""
    groups: dict[tuple[str, str], list[CreatedPods]] = {}
    pods = refused = warned = 0
    for one in created:
        pods += one.pods
        modes_here = {id_: _mode(id_, modes, one.namespace) for id_ in one.rules}
        refused += one.pods if ENFORCE in modes_here.values() else 0
        warned += one.pods if {*modes_here.values()} - {OFF} and ENFORCE not in modes_here.values() else 0
        for id_, mode in modes_here.items():
            if mode != OFF:
                groups.setdefault((id_, one.namespace), []).append(one)
    lines = [_line(id_, namespace, those, _mode(id_, modes, namespace)) for (id_, namespace), those in groups.items()]
    lines.sort(key=lambda line: (line.mode != ENFORCE, -line.pods, line.id, line.namespace))
    return PastPreview(pods, refused, warned, lines)


def _mode(id_: str, modes: RuleModes, namespace: str) -> Mode:
    """A rule of an earlier version that there is no more has no effect."""
    reason = reason_of(id_)
    return mode_of(reason, modes, namespace, {}) if reason in at_admission() else "off"


def _line(id_: str, namespace: str, those: Sequence[CreatedPods], mode: Mode) -> PastLine:
    counts: dict[tuple[str, str], int] = {}
    for one in those:
        counts[one.kind, one.name] = counts.get((one.kind, one.name), 0) + one.pods
    most = min(counts, key=lambda workload: (-counts[workload], workload))
    return PastLine(id_, reason_of(id_), namespace, mode, sum(counts.values()), len(counts), " ".join(most))
