"""Computes the phase of a pod group and its condition, from its pods and from the enqueue decision of its queue.

A group is Pending until its queue admits it, Inqueue from then on, Running once its minimum has nodes, Completed when
those pods have finished, and Unknown when some pods run and the minimum is no longer met. A group without pods becomes
Pending again.

The conditions differ from Volcano's in one point: a condition that does not hold has status False. Volcano leaves it
unchanged, so that a running group is reported as Unschedulable forever.
"""

from __future__ import annotations

import msgspec

from shoal.engine.queues.disciplines.volcano.objects import QueuedPodGroup
from shoal.engine.queues.disciplines.volcano.pod_counts import GroupPodCounts

NOT_ENOUGH_RESOURCES, NOT_ENOUGH_TASKS = "NotEnoughResources", "NotEnoughTasks"
NOT_ENOUGH_OF_TASK = "NotEnoughPodsOfTask"
QUEUE_MISSING, QUEUE_CLOSED, QUEUE_NOT_LEAF = "QueueNotFound", "QueueClosed", "QueueNotLeaf"
QUEUE_CYCLE = "QueueCycle"
"""A reason of Shoal: Volcano calls each queue of a cycle one with child queues."""
READY_REASON = "tasks in gang are ready to be scheduled"
READY = "pod group is ready"
NOT_READY = "pod group is not ready"
QUOTA_INSUFFICIENT = "queue resource quota insufficient"


class GroupRefusal(msgspec.Struct, frozen=True):
    """Why a queue does not admit a group."""

    reason: str
    message: str
    is_quota: bool = False
    """Whether the queue would admit it with more quota."""


class GroupPhaseResult(msgspec.Struct, frozen=True):
    phase: str
    is_ready: bool
    reason: str = ""
    message: str = ""


def is_ready(group: QueuedPodGroup, pods: GroupPodCounts) -> bool:
    spec = group.spec
    return pods.ready > 0 and pods.ready >= spec.min_member and pods.are_roles_ready(spec.role_minima())


def phase_of(group: QueuedPodGroup, pods: GroupPodCounts, *, is_enqueued: bool) -> str:
    ready = is_ready(group, pods)
    if pods.of("Running") and not ready:
        return "Unknown"
    finished = pods.of("Succeeded", "Failed")
    started = pods.of("Bound", "Running") + finished
    if started and started >= group.spec.min_member:
        return "Completed" if finished == started else "Running"
    if is_enqueued or group.status.phase == "Inqueue":
        return "Inqueue"
    return "Pending"


def assess(
    group: QueuedPodGroup, pods: GroupPodCounts, refusal: GroupRefusal | None, *, is_enqueued: bool
) -> GroupPhaseResult:
    """`refusal`: why the queue does not admit a group that is Pending."""
    phase = phase_of(group, pods, is_enqueued=is_enqueued)
    if is_ready(group, pods) or phase in ("Running", "Completed"):
        return GroupPhaseResult(phase, True, READY_REASON)
    shortfall = gang_message(group, pods, were_tried=refusal is None)
    if refusal is not None:
        message = f"{shortfall}; {refusal.message}" if refusal.is_quota else refusal.message
        return GroupPhaseResult(phase, False, refusal.reason, message)
    spec = group.spec
    if pods.valid < spec.min_member:
        message = f"Not enough valid tasks for gang-scheduling, valid: {pods.valid}, min: {spec.min_member}"
        return GroupPhaseResult(phase, False, NOT_ENOUGH_TASKS, message)
    if any(pods.by_role.get(role, 0) < least for role, least in spec.role_minima().items()):
        message = "Not enough valid pods of each task for gang-scheduling"
        return GroupPhaseResult(phase, False, NOT_ENOUGH_OF_TASK, message)
    return GroupPhaseResult(phase, False, NOT_ENOUGH_RESOURCES, shortfall)


def gang_message(group: QueuedPodGroup, pods: GroupPodCounts, *, were_tried: bool) -> str:
    """`2/3 tasks in gang unschedulable: pod group is not ready, 1 Running, 2 Pending, 3 minAvailable; Pending: ...`"""
    pending = pods.of("Pending")
    counts = {**pods.by_state, "minAvailable": group.spec.min_member}
    shortfall = ", ".join(sorted(f"{count} {state}" for state, count in counts.items() if count))
    message = f"{pending}/{pods.total} tasks in gang unschedulable: {NOT_READY}" + (
        f", {shortfall}" if shortfall else ""
    )
    if not pending:
        return message
    failed = pods.unschedulable if were_tried else 0
    pending_states = {"Unschedulable": failed, "Undetermined": pending - failed}
    return f"{message}; Pending: " + ", ".join(
        sorted(f"{count} {state}" for state, count in pending_states.items() if count)
    )
