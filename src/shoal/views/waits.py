"""Explains why a workload waits in its queue: Kueue's message, and what to do about it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from shoal.engine.queues.decisions import StillWaiting
from shoal.engine.queues.domain_limits import DomainLimit
from shoal.engine.queues.reasons import Wait
from shoal.views.asks import pods_words
from shoal.views.decision import Reason

HELP: Mapping[Wait, str] = {
    Wait.QUOTA: "It starts when others of its queue or cohort finish, or with more quota.",
    Wait.EXCEEDS_MAX_QUOTA: "All its pods together ask for more than its queue could ever use. "
    "Raise the quota or the borrowing limit, or ask for less; where it has a minCount, it may start with fewer pods.",
    Wait.NO_FLAVOR: "Waiting does not help: none of its queue's flavors suits it. "
    "Look at its node selector, affinity and tolerations, and at what the queue covers.",
    Wait.TOPOLOGY: "It is tried again when pods end or nodes come.",
    Wait.VICTIMS: "It starts as soon as the preempted workloads have ended.",
    Wait.MISCONFIGURED: "Correct what is named.",
    Wait.PENDING: "It is considered in the order of its queue.",
    Wait.PODS_READY: "It is tried again when the pods of those admitted before are ready.",
    Wait.GATED: "It is considered once its gates are removed.",
    Wait.ON_HOLD: "Nothing is admitted here until that is corrected.",
    Wait.OVER_BUDGET: "It starts when the budget resets, or with a larger one: raise perMonth of the budget in the "
    "price file, or leave out enforce there, and restart the process that records the history, which reads that file "
    "when it starts; or raise spec.budgetPerMonth of the Team, which needs no restart. shoal cost budget shows what "
    "was spent, shoal cost --window month on what. Work that runs goes on.",
    Wait.INADMISSIBLE: "Waiting does not help: correct what is named.",
    Wait.RESERVED: "It starts when the gang before it has started, or where it ends in time.",
}
"""Every reason has one."""
_LEVELS = " does not contain the requested level"
_LEVEL_HELP = (
    "Waiting does not help: the Topology of a flavor that its queue covers must have the level that it requests. "
    "Request a level that the Topology has, or add the level to spec.levels of a new Topology."
)
_UNTOPOLOGICAL = "does not support TopologyAwareScheduling"
_TOPOLOGY_HELP = (
    "Waiting does not help: set spec.topologyName of a flavor that its queue covers, or leave the topology level out."
)


def wait_reason(
    waiting: StillWaiting, behind: str = "", unproven: str = "", limits: Sequence[DomainLimit] = ()
) -> Reason:
    """`behind`: who is before it in a queue that goes strictly by turn. `unproven`: why quota alone decides. `limits`:
    what no domain can hold of it."""
    help_ = HELP[waiting.why]
    message = waiting.message or _MESSAGES.get(waiting.why, "It waits")
    if limits:
        # More quota alone does not help either.
        help_ = f"{help_} {limit_words(limits)}" if waiting.why is Wait.EXCEEDS_MAX_QUOTA else limit_words(limits)
    for fault, words in ((_UNTOPOLOGICAL, _TOPOLOGY_HELP), (_LEVELS, _LEVEL_HELP)):
        if waiting.why is Wait.NO_FLAVOR and fault in message:
            has_others = any(word in message for word in ("taint", "affinity"))
            help_ = f"{words} {help_}" if has_others else words
    if waiting.why is Wait.PENDING and behind:
        message = f"It is behind {behind} in a StrictFIFO queue"
        help_ = f"It is considered once {behind} has been admitted."
    if unproven and waiting.why not in _HELD_BACK:
        help_ = f"{help_} {unproven_sentence(unproven)}"
    return Reason(waiting.why, f"{_once(message).rstrip('.')}.", help_)


def limit_words(limits: Sequence[DomainLimit]) -> str:
    """Why waiting does not help, and what to change."""
    return " ".join(["Waiting for pods to end does not help:", *map(_limit, limits)])


def _limit(limit: DomainLimit) -> str:
    if limit.is_repelled:
        where = f"no {limit.level} can" if limit.level else f"Topology {limit.topology} cannot"
        what = f"a slice of {pods_words(limit.needs)}" if limit.is_slice else f"the {pods_words(limit.needs)}"
        return (
            f"{where} hold {what} of pod set {limit.pod_set}, even if it were empty, since they do not tolerate the "
            "taints of its nodes."
        )
    if not limit.level:
        return (
            f"all nodes of Topology {limit.topology} together hold {limit.fits:,} of the {pods_words(limit.needs)} of "
            f"pod set {limit.pod_set}, even if they were empty. Add nodes, or ask for fewer or smaller pods."
        )
    what = f"a slice of {pods_words(limit.needs)}" if limit.is_slice else f"the {pods_words(limit.needs)}"
    words = (
        f"no {limit.level} can hold {what} of pod set {limit.pod_set}, even if it were empty; the largest, "
        f"{limit.domain}, holds {limit.fits:,}."
    )
    if limit.wider:
        return f"{words} Request the wider level {limit.wider}, or fewer or smaller pods."
    if limit.may_spread:
        return f"{words} Request fewer or smaller pods, or make the level preferred instead of required."
    return f"{words} Request fewer or smaller pods{' or slices' * limit.is_slice}."


def _once(message: str) -> str:
    """Two ways of trying that failed alike are told once."""
    before, colon, after = message.partition(": ")
    half, rest = after[: len(after) // 2 - 1], after[len(after) // 2 - 1 :]
    if half and rest == f", {half}":
        return before + colon + half
    return _TWICE.sub(r"\1", message)


def unproven_sentence(unproven: str) -> str:
    return f"Quota alone decides here, placement is not proven: {unproven}."


_HELD_BACK = frozenset({Wait.ON_HOLD, Wait.OVER_BUDGET, Wait.INADMISSIBLE, Wait.MISCONFIGURED, Wait.GATED})
"""Where neither quota nor places decide."""
_TWICE = re.compile(r"\b([^,:]{12,200}), \1(?=[,.;]|$)")
"""Bounded, because each word is a place where it may begin."""
_MESSAGES: Mapping[Wait, str] = {Wait.QUOTA: "Its quota is not free"}
"""Where the discipline has nothing to add."""
