"""Explains why a workload waits in its queue: Kueue's message, and what to do about it."""

from __future__ import annotations

import re
from collections.abc import Mapping

from shoal.engine.queues.decisions import StillWaiting
from shoal.engine.queues.reasons import Wait
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
    Wait.ON_HOLD: "Nothing is admitted here until that is undone.",
    Wait.INADMISSIBLE: "Waiting does not help: correct what is named.",
    Wait.RESERVED: "It starts when the gang before it has started, or where it ends in time.",
}
"""Every reason has one."""
_UNTOPOLOGICAL = "does not support TopologyAwareScheduling"
_TOPOLOGY_HELP = (
    "Waiting does not help: set spec.topologyName of a flavor that its queue covers, or leave the topology level out."
)


def wait_reason(waiting: StillWaiting, behind: str = "", unproven: str = "") -> Reason:
    """`behind`: who is before it in a queue that goes strictly by turn. `unproven`: why quota alone decides."""
    help_ = HELP[waiting.why]
    message = waiting.message or _MESSAGES.get(waiting.why, "It waits")
    if waiting.why is Wait.TOPOLOGY and "topology" in message:
        help_ += " A wider topology level may help."
    if waiting.why is Wait.NO_FLAVOR and _UNTOPOLOGICAL in message:
        has_others = any(word in message for word in ("taint", "affinity"))
        help_ = f"{_TOPOLOGY_HELP} {help_}" if has_others else _TOPOLOGY_HELP
    if waiting.why is Wait.PENDING and behind:
        message = f"It is behind {behind} in a StrictFIFO queue"
        help_ = f"It is considered once {behind} has been admitted."
    if unproven and waiting.why not in _HELD_BACK:
        help_ = f"{help_} {unproven_sentence(unproven)}"
    return Reason(waiting.why, f"{_once(message).rstrip('.')}.", help_)


def _once(message: str) -> str:
    """Two ways of trying that failed alike are told once."""
    return _TWICE.sub(r"\1", message)


def unproven_sentence(unproven: str) -> str:
    return f"Quota alone decides here, placement is not proven: {unproven}."


_HELD_BACK = frozenset({Wait.ON_HOLD, Wait.INADMISSIBLE, Wait.MISCONFIGURED, Wait.GATED})
"""Where neither quota nor places decide."""
_TWICE = re.compile(r"\b([^,:]{12,200}), \1(?=[,.;]|$)")
"""Bounded, because each word is a place where it may begin."""
_MESSAGES: Mapping[Wait, str] = {Wait.QUOTA: "Its quota is not free"}
"""Where the discipline has nothing to add."""
