"""Whose child a job is: where one of its controllers waits in a queue, the child has no place of its own there."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from shoal.api.kueue.slips import QUEUE_NAME
from shoal.controllers.queued_jobs.job_kinds import BY_KIND
from shoal.controllers.queued_jobs.workloads import owned
from shoal.controllers.queued_work.fields import string_map
from shoal.controllers.queued_work.rules import JobRules
from shoal.store.live.context import Context
from shoal.store.live.item import Item
from shoal.store.live.kind import Kind

Find = Callable[[Kind], Kind | None]
_HIGHEST = 10


def managed_ancestor(context: Context, find: Find, item: Item, rules: JobRules) -> tuple[Kind, Item] | None:
    """The highest that asks for a queue, or is held to."""
    found = None
    for kind, above in _above(context, find, item):
        if not rules.frameworks.has(kind.group, kind.name):
            continue
        if rules.queues_everything or string_map(above.obj(), "metadata", "labels").get(QUEUE_NAME):
            found = (kind, above)
    return found


def _above(context: Context, find: Find, item: Item) -> Iterator[tuple[Kind, Item]]:
    """Controllers of kinds in the table, the nearest first."""
    present = item
    for _ in range(_HIGHEST):
        owner = owned(present).controller
        row = None if owner is None else BY_KIND.get((owner.api_version.rpartition("/")[0], owner.kind))
        kind = None if row is None else find(row.kind)
        if owner is None or kind is None:
            return
        above = context.informers.of(kind).get(item.namespace, owner.name)
        if above is None or above.uid != owner.uid:
            return
        yield kind, above
        present = above
