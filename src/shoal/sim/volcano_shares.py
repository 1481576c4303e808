"""Finds the pods of a set of manifests for which Volcano's queues have no quota left, by the discipline of the engine.

What waits for room on nodes, or for others to yield, is not held: the rounds decide about it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shoal.engine.events import Event
from shoal.engine.queues.disciplines.volcano.actions.allocate import NOT_ALLOCATABLE, OVERUSED
from shoal.engine.queues.disciplines.volcano.group_phases import NOT_ENOUGH_RESOURCES
from shoal.engine.queues.disciplines.volcano.objects import QueuedPodGroup
from shoal.engine.queues.disciplines.volcano.queue_forest import whole_gpus
from shoal.engine.queues.disciplines.volcano.queue_tree import QueueTree, Usage
from shoal.sim.volcano_rounds import decided
from shoal.store.held_pods import HeldPod

_HELP = "The group continues when other groups finish, or when the queue deserves more."


def held_by_shares(
    tree: QueueTree, groups: Mapping[str, QueuedPodGroup], events: Sequence[Event], usage: Usage
) -> dict[str, HeldPod]:
    """The reason by held pod of enqueued groups. Groups for which a capability has no room are left to the caller.

    `usage`: of the pods on nodes.
    """
    session = decided(tree, groups, events)
    found: dict[str, HeldPod] = {}
    if session is None:
        return found
    for name, job in session.jobs.items():
        queue = job.queue
        refusal = session.refusals.get(name, "")
        if not refusal or not job.pending:
            continue
        asked = {name: int(amount) for name, amount in whole_gpus(next(iter(job.pending.values())).amounts).items()}
        if tree.over_capability(queue, asked, usage) is not None:
            continue
        if refusal in (OVERUSED.format(queue), NOT_ALLOCATABLE.format(queue)):
            refusal = f"queue resource quota insufficient in queue {queue}"
        elif refusal != session.forest.refusal(queue):
            continue
        reason = HeldPod(NOT_ENOUGH_RESOURCES, refusal, _HELP, f"Volcano queue {queue}", name)
        found |= dict.fromkeys(job.pending, reason)
    return found
