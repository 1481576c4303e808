"""Prints what the queues decided, as part of the text of `decision_text`.

Like there, rounds are folded: a workload that was admitted and preempted again is listed among the waiting ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from shoal.views.decision import Admitted, AdmittedPods, Decision, Preempted, Reason, Reserved, Waiting
from shoal.views.enumeration import few

_MOST_NAMES = 3
_NO_NODES = "no nodes available to schedule pods"
"""kube-scheduler's words."""

Line = tuple[str, ...]


def queue_counts(decision: Decision) -> list[tuple[int, str, str]]:
    """(count, words, colour) for the headline."""
    waiting = len(decision.rounds[-1].waiting)
    return [
        (len(_admitted(decision)), "admitted", "green"),
        (len(_preempted(decision)), "preempted", "yellow"),
        (waiting, "workload waiting" if waiting == 1 else "workloads waiting", "red"),
    ]


def is_blind(decision: Decision) -> bool:
    """Quota was decided without a single node: that no pod has a place is then no news about any of them."""
    speaks_of_queues = any(round_.admitted or round_.waiting for round_ in decision.rounds)
    refused = decision.rounds[-1].refused
    return speaks_of_queues and bool(refused) and all(_NO_NODES in each.reason.message for each in refused)


def admitted_lines(decision: Decision) -> list[Line]:
    unproven = {name for round_ in decision.rounds for name in round_.unproven or ()}
    return [
        (
            each.workload,
            f"by {each.queue}",
            f"{', '.join(map(_pods, each.pod_sets))}{_checks(each)}{_doubt(each, unproven)}",
        )
        for each in _admitted(decision)
    ]


def preempted_lines(decision: Decision) -> list[Line]:
    by_cause: dict[tuple[str, str], list[str]] = {}
    for each in _preempted(decision):
        by_cause.setdefault((each.beneficiary, each.reason), []).append(each.workload)
    return [
        (few(names, _MOST_NAMES), f"for {cause} ({reason})" if cause else reason)
        for (cause, reason), names in by_cause.items()
    ]


def waiting_lines(waiting: Sequence[Waiting]) -> list[Line]:
    by_reason: dict[tuple[str, Reason], list[str]] = {}
    for each in waiting:
        by_reason.setdefault((each.state, each.reason), []).append(each.workload)
    return [
        (few(names, _MOST_NAMES), f"{reason.code}: {reason.message} {reason.help}".rstrip())
        for (_, reason), names in by_reason.items()
    ]


def _admitted(decision: Decision) -> list[Admitted]:
    """The last admission of each that holds in the end."""
    left = {each.workload for each in decision.rounds[-1].waiting}
    found: dict[str, Admitted] = {}
    for round_ in decision.rounds:
        for each in round_.preempted:
            found.pop(each.workload, None)
        found.update((each.workload, each) for each in round_.admitted)
    return [each for each in found.values() if each.workload not in left]


def _preempted(decision: Decision) -> list[Preempted]:
    return [each for round_ in decision.rounds for each in round_.preempted]


def _pods(each: AdmittedPods) -> str:
    """`4 x worker on h100`; several flavors with what they are for."""
    flavors = sorted(set(each.flavors.values()))
    if len(flavors) > 1:
        where = " on " + ", ".join(f"{flavor} ({', '.join(_for(each, flavor))})" for flavor in flavors)
    else:
        where = f" on {flavors[0]}" if flavors else ""
    domains = [f"{'/'.join(domain.values)}: {domain.count}" for domain in each.topology]
    places = f" at {few(domains, _MOST_NAMES)}" if domains else ""
    return f"{each.count:,} x {each.name}{where}{places}"


def _for(each: AdmittedPods, flavor: str) -> Iterable[str]:
    return (resource for resource, name in sorted(each.flavors.items()) if name == flavor)


def _doubt(each: Admitted, unproven: set[str]) -> str:
    return "; placement not proven" if each.workload in unproven else ""


def _checks(each: Admitted) -> str:
    return f"; waits for {', '.join(each.checks)}" if isinstance(each, Reserved) else ""
