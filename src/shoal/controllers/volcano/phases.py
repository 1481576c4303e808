"""The phase of a group and what its conditions say, from its pods and from whether its queue lets it in.

Pending until it is let in, Inqueue from then on, Running once its minimum has places, Completed when those all ended,
Unknown when some run and the minimum is not met any more. A group whose pods are all gone waits anew.

Conditions differ from Volcano's in one thing: the one that does not hold says False. Volcano leaves it standing as it
was, so that a running group says Unschedulable for ever.
"""

from __future__ import annotations

import msgspec

from shoal.controllers.volcano.sights import PodGroup
from shoal.controllers.volcano.tallies import Tally

NOT_ENOUGH_RESOURCES, NOT_ENOUGH_TASKS = "NotEnoughResources", "NotEnoughTasks"
NOT_ENOUGH_OF_TASK = "NotEnoughPodsOfTask"
QUEUE_MISSING, QUEUE_CLOSED = "QueueNotFound", "QueueClosed"
READY_REASON = "tasks in gang are ready to be scheduled"
READY = "pod group is ready"
NOT_READY = "pod group is not ready"


class Refusal(msgspec.Struct, frozen=True):
    """Why a queue does not let a group in."""

    reason: str
    message: str
    is_quota: bool = False
    """It would, if it had more left."""


class Verdict(msgspec.Struct, frozen=True):
    phase: str
    is_ready: bool
    reason: str = ""
    message: str = ""


def is_ready(group: PodGroup, known: Tally) -> bool:
    spec = group.spec
    return known.ready > 0 and known.ready >= spec.min_member and known.are_roles_ready(spec.role_minima())


def phase_of(group: PodGroup, known: Tally, *, is_let_in: bool) -> str:
    ready = is_ready(group, known)
    if known.of("Running") and not ready:
        return "Unknown"
    ended = known.of("Succeeded", "Failed")
    settled = known.of("Bound", "Running") + ended
    if settled and settled >= group.spec.min_member:
        return "Completed" if ended == settled else "Running"
    if is_let_in or group.status.phase == "Inqueue":
        return "Inqueue"
    return "Pending"


def judge(group: PodGroup, known: Tally, refusal: Refusal | None, *, is_let_in: bool) -> Verdict:
    """`refusal` is its queue's, of a group that waits to be let in."""
    phase = phase_of(group, known, is_let_in=is_let_in)
    if is_ready(group, known) or phase in ("Running", "Completed"):
        return Verdict(phase, True, READY_REASON)
    told = gang_words(group, known, were_tried=refusal is None)
    if refusal is not None:
        words = f"{told}; {refusal.message}" if refusal.is_quota else refusal.message
        return Verdict(phase, False, refusal.reason, words)
    spec = group.spec
    if known.valid < spec.min_member:
        words = f"Not enough valid tasks for gang-scheduling, valid: {known.valid}, min: {spec.min_member}"
        return Verdict(phase, False, NOT_ENOUGH_TASKS, words)
    if any(known.by_role.get(role, 0) < least for role, least in spec.role_minima().items()):
        words = "Not enough valid pods of each task for gang-scheduling"
        return Verdict(phase, False, NOT_ENOUGH_OF_TASK, words)
    return Verdict(phase, False, NOT_ENOUGH_RESOURCES, told)


def gang_words(group: PodGroup, known: Tally, *, were_tried: bool) -> str:
    """`2/3 tasks in gang unschedulable: pod group is not ready, 1 Running, 2 Pending, 3 minAvailable; Pending: ...`"""
    pending = known.of("Pending")
    counts = {**known.by_state, "minAvailable": group.spec.min_member}
    told = ", ".join(sorted(f"{count} {state}" for state, count in counts.items() if count))
    words = f"{pending}/{known.total} tasks in gang unschedulable: {NOT_READY}" + (f", {told}" if told else "")
    if not pending:
        return words
    failed = known.unplaceable if were_tried else 0
    fates = {"Unschedulable": failed, "Undetermined": pending - failed}
    return f"{words}; Pending: " + ", ".join(sorted(f"{count} {fate}" for fate, count in fates.items() if count))
