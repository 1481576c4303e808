"""Says what a session decided about queues and groups, as their statuses and the conditions of pods report it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from shoal.engine.queues.disciplines.volcano.actions.allocate import NOT_ALLOCATABLE, OVERUSED
from shoal.engine.queues.disciplines.volcano.amounts import Figures
from shoal.engine.queues.disciplines.volcano.group_phases import (
    NOT_ENOUGH_RESOURCES,
    NOT_READY,
    QUOTA_INSUFFICIENT,
    GroupRefusal,
)
from shoal.engine.queues.disciplines.volcano.known_jobs import KnownJobs
from shoal.engine.queues.disciplines.volcano.objects import Key, QueuedPodGroup
from shoal.engine.queues.disciplines.volcano.queue_tree import QueueTree
from shoal.engine.queues.disciplines.volcano.session import Session


class SessionResult(msgspec.Struct, frozen=True):
    enqueued: frozenset[Key]
    """Groups that are admitted, and whose objects do not say so yet."""
    refused: Mapping[Key, GroupRefusal]
    """Why the queues of the others do not admit them."""
    allocated: Mapping[str, Figures]
    """What each queue and those below it use, GPUs in thousandths."""
    starting: frozenset[Key] = frozenset()
    """Of the groups in `enqueued` those whose minimum has nodes: the pods are bound, or are being bound."""


def result_of(session: Session, known: KnownJobs, tree: QueueTree, groups: Iterable[QueuedPodGroup]) -> SessionResult:
    enqueued: set[Key] = set()
    starting: set[Key] = set()
    refused: dict[Key, GroupRefusal] = {}
    for group in groups:
        if not group.is_waiting:
            continue
        key = group.metadata.key
        name = "/".join(key)
        if known.is_admitted(name):
            enqueued.add(key)
            job = session.jobs.get(name)
            if job is not None and job.ready and job.is_ready:
                starting.add(key)
        elif (refusal := _refusal(session, tree, name, group.queue)) is not None:
            refused[key] = refusal
    allocated = {name: session.accounts.allocated(name) for name in session.forest.queues}
    return SessionResult(frozenset(enqueued), refused, allocated, frozenset(starting))


def waiting_words(session: Session, known: KnownJobs, tree: QueueTree, name: str) -> str:
    """The message on pods that a queue holds back; empty where nodes are what is lacking."""
    job = session.jobs.get(name)
    if job is None:
        return ""
    if not known.is_admitted(name):
        refusal = _refusal(session, tree, name, job.queue)
        return f"{NOT_READY}; {refusal.message}" if refusal is not None else ""
    if (closed := tree.closed(job.queue)) is not None:
        return f"{NOT_READY}; {closed.message}"
    if session.refusals.get(name) in (OVERUSED.format(job.queue), NOT_ALLOCATABLE.format(job.queue)):
        return f"{NOT_READY}; {QUOTA_INSUFFICIENT} in queue {job.queue}"
    return ""


def _refusal(session: Session, tree: QueueTree, name: str, queue: str) -> GroupRefusal | None:
    if (closed := tree.closed(queue)) is not None:
        return closed
    words = session.refusals.get(name, "")
    return GroupRefusal(NOT_ENOUGH_RESOURCES, words, is_quota=True) if words else None
