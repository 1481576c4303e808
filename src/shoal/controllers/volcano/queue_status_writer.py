"""Writes the status of queues: the state, the number of groups by phase, and the allocated resources.

A queue is open until a command closes it. A closed queue is Closing while it has groups, and Closed afterwards. Closing
a queue closes its descendants, which open again with it unless a command closed them.

The writer also creates the queues `root` and `default` if they are missing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

import msgspec

from shoal.client.context import Context
from shoal.client.ecosystem_kinds import VOLCANO_QUEUES
from shoal.client.item import Obj
from shoal.client.port import Patch
from shoal.client.refusals import AlreadyExistsError
from shoal.engine.queues.disciplines.volcano.amounts import allocated_to_api
from shoal.engine.queues.disciplines.volcano.objects import (
    CLOSED_BY_PARENT,
    DEFAULT_QUEUE,
    ROOT_QUEUE,
    Queue,
    QueueStatus,
)
from shoal.engine.queues.disciplines.volcano.pod_counts import CountedGroup
from shoal.engine.queues.disciplines.volcano.queue_tree import QueueTree
from shoal.engine.queues.disciplines.volcano.session_result import SessionResult

_REQUIRED = {ROOT_QUEUE: False, DEFAULT_QUEUE: True}
"""The required queues, and whether others may reclaim what they borrow."""
_OPEN, _CLOSING, _CLOSED, _UNKNOWN = "Open", "Closing", "Closed", "Unknown"


class QueueStatusUpdate(msgspec.Struct, frozen=True):
    queue: Queue
    status: QueueStatus
    closed_by_parent: str | None
    """The new value of the annotation `closed-by-parent`; None keeps it."""


class QueueStatusWriter:
    def __init__(self, context: Context) -> None:
        self._api = context.api

    def missing(self, tree: QueueTree) -> list[str]:
        return [name for name in _REQUIRED if name not in tree.queues]

    async def create(self, name: str) -> None:
        spec = {"weight": 1, "reclaimable": _REQUIRED[name]}
        try:
            await self._api.create(VOLCANO_QUEUES, {"metadata": {"name": name}, "spec": spec})
        except AlreadyExistsError:
            # The queue will appear in the cache.
            return

    def updates(
        self, tree: QueueTree, candidates: Iterable[CountedGroup], decision: SessionResult
    ) -> Iterator[QueueStatusUpdate]:
        counts: dict[str, Counter[str]] = {}
        for one in candidates:
            phase = "Inqueue" if one.key in decision.enqueued else one.group.status.phase or "Pending"
            counts.setdefault(one.group.queue, Counter())[phase] += 1
        for queue in tree.queues.values():
            if queue.metadata.deletion_timestamp is not None:
                continue
            groups = counts.get(queue.name, Counter())
            state, closed_by_parent = _state(tree, queue, bool(groups))
            status = QueueStatus(
                state,
                allocated_to_api(decision.allocated.get(queue.name, {})),
                groups["Pending"],
                groups["Inqueue"],
                groups["Running"],
                groups["Unknown"],
                groups["Completed"],
            )
            if status != queue.status or closed_by_parent is not None:
                yield QueueStatusUpdate(queue, status, closed_by_parent)

    async def write(self, update: QueueStatusUpdate) -> None:
        queue, name = update.queue, update.queue.name
        version = queue.metadata.resource_version
        if update.closed_by_parent is not None:
            metadata = {"resourceVersion": version, "annotations": {CLOSED_BY_PARENT: update.closed_by_parent}}
            written = await self._api.patch(VOLCANO_QUEUES, "", name, Patch("merge", {"metadata": metadata}))
            version = str(written.version)
        status = msgspec.to_builtins(update.status)
        values: Obj = dict.fromkeys(("pending", "inqueue", "running", "unknown", "completed"), 0) | status
        removed: Obj = dict.fromkeys(queue.status.allocated.keys() - update.status.allocated.keys())
        values["allocated"] = {**update.status.allocated, **removed}
        body = {"metadata": {"resourceVersion": version}, "status": values}
        await self._api.patch(VOLCANO_QUEUES, "", name, Patch("merge", body), "status")


def _state(tree: QueueTree, queue: Queue, has_groups: bool) -> tuple[str, str | None]:
    """The next state, and the new value of the annotation `closed-by-parent`."""
    parent = tree.queues.get(queue.parent)
    is_parent_closed = parent is not None and parent.name != queue.name and not parent.is_open
    if queue.is_open:
        if not is_parent_closed:
            return _OPEN, None
        return (_CLOSING if has_groups else _CLOSED), "true"
    if queue.status.state not in (_CLOSING, _CLOSED):
        return _UNKNOWN, None
    if queue.was_closed_by_parent and not is_parent_closed:
        return _OPEN, "false"
    return (_CLOSING if has_groups else _CLOSED), None
