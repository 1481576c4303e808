"""Handles jobs that another queued job created: they have no Workload, and run while that job is admitted."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from shoal.api.kueue.probable_mistakes import QUEUE_NAME
from shoal.client.context import Context
from shoal.client.item import Item, Obj
from shoal.client.kind import Kind
from shoal.controllers.queued_jobs.job_context import QueuedJobContext
from shoal.controllers.queued_jobs.job_kinds import BY_KIND
from shoal.controllers.queued_jobs.workloads import OwnedWorkload, controller_of, owner_value
from shoal.controllers.queued_work.fields import put, string_map
from shoal.controllers.queued_work.rules import JobRules

Find = Callable[[Kind], Kind | None]
_MOST_LEVELS = 10


def managed_ancestor(context: Context, find: Find, item: Item, rules: JobRules) -> tuple[Kind, Item] | None:
    """The topmost owner that names a queue, or must be queued."""
    found = None
    for kind, owner in _owners(context, find, item):
        if not rules.frameworks.has(kind.group, kind.name):
            continue
        if rules.queues_everything or string_map(owner.obj(), "metadata", "labels").get(QUEUE_NAME):
            found = (kind, owner)
    return found


async def suspend_child(context: QueuedJobContext, job: Obj, kind: Kind, ancestor: Item) -> None:
    """Suspend a running child job unless the Workload of its ancestor is admitted."""
    shape = context.job_kind.shape
    if not shape.suspend or shape.ending(job) is not None:
        return
    workloads = [OwnedWorkload(one) for one in context.by_owner[owner_value(kind.group, kind.name, ancestor.key)]]
    if any(one.is_controlled_by(ancestor.uid) and one.is_admitted for one in workloads):
        return
    put(job, shape.suspend, True)
    await context.write_job(job)
    context.record(job, "Suspended", "Kueue managed child job suspended")


def _owners(context: Context, find: Find, item: Item) -> Iterator[tuple[Kind, Item]]:
    """Controllers of queued kinds, the nearest first."""
    present = item
    for _ in range(_MOST_LEVELS):
        reference = controller_of(present)
        job_kind = (
            None if reference is None else BY_KIND.get((reference.api_version.rpartition("/")[0], reference.kind))
        )
        kind = None if job_kind is None else find(job_kind.kind)
        if reference is None or kind is None:
            return
        owner = context.informers.of(kind).get(item.namespace, reference.name)
        if owner is None or owner.uid != reference.uid:
            return
        yield kind, owner
        present = owner
