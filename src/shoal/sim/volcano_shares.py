"""Finds the pods of a set of manifests for which Volcano's queues have no quota left, by the discipline of the engine.

What waits for room on nodes, or for others to yield, is not held: the rounds decide about it.
"""

from __future__ import annotations

from collections.abc import Mapping

from shoal.engine.queues.disciplines.volcano.actions.allocate import NOT_ALLOCATABLE, OVERUSED
from shoal.engine.queues.disciplines.volcano.amounts import Figures, to_api
from shoal.engine.queues.disciplines.volcano.group_phases import (
    NOT_ENOUGH_RESOURCES,
    QUOTA_INSUFFICIENT,
    GroupRefusal,
)
from shoal.engine.queues.disciplines.volcano.jobs import JobState
from shoal.engine.queues.disciplines.volcano.queue_forest import whole_gpus
from shoal.engine.queues.disciplines.volcano.queue_tree import QueueTree, Usage
from shoal.engine.queues.disciplines.volcano.session import Session
from shoal.engine.queues.disciplines.volcano.session_result import result_of
from shoal.sim.volcano_rounds import Decided, Groups

SHARE_HELP = "The group continues when other groups finish, or when the queue deserves more."


def refusals_of(world: Decided, tree: QueueTree, groups: Groups) -> dict[str, GroupRefusal]:
    """Why queues hold groups back: not admitted, or admitted and without quota for what they lack."""
    session = world.session
    result = result_of(session, world.known, tree, groups.values())
    found = {"/".join(key): refusal for key, refusal in result.refused.items()}
    used = usage_of(session)
    for name, job in session.jobs.items():
        if name not in found and job.pending and (refusal := _refusal(session, tree, job, used)) is not None:
            found[name] = refusal
    return found


def usage_of(session: Session) -> Usage:
    """What the queues use at the end, in whole GPUs."""
    return {name: _whole(session.accounts.allocated(name)) for name in session.forest.queues}


def promised_usage_of(session: Session) -> Usage:
    """What counts against the capabilities when another group is to be admitted."""
    accounts = session.accounts
    found: Usage = {}
    for name in session.forest.queues:
        resources = (*accounts.allocated(name), *accounts.reserved(name))
        found[name] = _whole(accounts.after_admission(name, dict.fromkeys(resources, 0)))
    return found


def beyond_the_nodes(requested: Mapping[str, int], session: Session) -> str:
    """What to know of a request that all nodes together do not offer; empty if they do."""
    total = _whole(session.total)
    short = sorted(name for name, amount in requested.items() if amount > total.get(name, 0))
    if not short:
        return ""
    amounts = to_api({name: total.get(name, 0) for name in short})
    offered = ", ".join(f"{amount} {name}" for name, amount in amounts.items())
    return f"All nodes together offer {offered}: waiting and other quotas do not help."


def _refusal(session: Session, tree: QueueTree, job: JobState, used: Usage) -> GroupRefusal | None:
    queue = job.queue
    if (closed := tree.closed(queue)) is not None:
        return closed
    if session.refusals.get(job.name) not in (OVERUSED.format(queue), NOT_ALLOCATABLE.format(queue)):
        return None
    over = tree.over_capability(queue, _whole(next(iter(job.pending.values())).amounts), used)
    return over or GroupRefusal(NOT_ENOUGH_RESOURCES, f"{QUOTA_INSUFFICIENT} in queue {queue}")


def _whole(amounts: Figures) -> dict[str, int]:
    known: Mapping[str, float] = whole_gpus(amounts)
    return {name: int(amount) for name, amount in known.items()}
