"""The status of a queue: its state, how many groups of it are how far, and what they hold.

A queue is open until somebody closes it; a closed one is Closing while groups of it are left and Closed when none is.
Whoever closes a queue closes those below it, and these open again with it unless they were closed on their own.

Queues that everybody relies on are made where they lack: `root` and `default`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

import msgspec

from shoal.controllers.volcano.amounts import allocated_to_api
from shoal.controllers.volcano.enqueueing import Candidate, Decision
from shoal.controllers.volcano.names import CLOSED_BY_PARENT, DEFAULT_QUEUE, ROOT_QUEUE
from shoal.controllers.volcano.queue_tree import QueueTree
from shoal.controllers.volcano.sights import Queue, QueueStatus
from shoal.store.live.context import Context
from shoal.store.live.ecosystem_kinds import VOLCANO_QUEUES
from shoal.store.live.item import Obj
from shoal.store.live.port import Patch
from shoal.store.live.refusals import AlreadyExistsError

_MADE = {ROOT_QUEUE: False, DEFAULT_QUEUE: True}
"""Whether others may take back what it has too much of."""
_OPEN, _CLOSING, _CLOSED, _UNKNOWN = "Open", "Closing", "Closed", "Unknown"


class Due(msgspec.Struct, frozen=True):
    queue: Queue
    status: QueueStatus
    mark: str | None
    """What the mark of queues closed by those above them is to say; None leaves it."""


class QueuePen:
    def __init__(self, context: Context) -> None:
        self._api = context.api

    def missing(self, tree: QueueTree) -> list[str]:
        return [name for name in _MADE if name not in tree.queues]

    async def create(self, name: str) -> None:
        spec = {"weight": 1, "reclaimable": _MADE[name]}
        try:
            await self._api.create(VOLCANO_QUEUES, {"metadata": {"name": name}, "spec": spec})
        except AlreadyExistsError:
            # The cache will have it.
            return

    def due(self, tree: QueueTree, candidates: Iterable[Candidate], decision: Decision) -> Iterator[Due]:
        counts: dict[str, Counter[str]] = {}
        for one in candidates:
            phase = "Inqueue" if one.key in decision.let_in else one.group.status.phase or "Pending"
            counts.setdefault(one.group.queue, Counter())[phase] += 1
        for queue in tree.queues.values():
            if queue.metadata.deletion_timestamp is not None:
                continue
            known = counts.get(queue.name, Counter())
            state, mark = _state(tree, queue, bool(known))
            status = QueueStatus(
                state,
                allocated_to_api(decision.allocated.get(queue.name, {})),
                known["Pending"],
                known["Inqueue"],
                known["Running"],
                known["Unknown"],
                known["Completed"],
            )
            if status != queue.status or mark is not None:
                yield Due(queue, status, mark)

    async def write(self, due: Due) -> None:
        queue, name = due.queue, due.queue.name
        version = queue.metadata.resource_version
        if due.mark is not None:
            notes = {"resourceVersion": version, "annotations": {CLOSED_BY_PARENT: due.mark}}
            written = await self._api.patch(VOLCANO_QUEUES, "", name, Patch("merge", {"metadata": notes}))
            version = str(written.version)
        status = msgspec.to_builtins(due.status)
        said: Obj = dict.fromkeys(("pending", "inqueue", "running", "unknown", "completed"), 0) | status
        gone: Obj = dict.fromkeys(queue.status.allocated.keys() - due.status.allocated.keys())
        said["allocated"] = {**due.status.allocated, **gone}
        body = {"metadata": {"resourceVersion": version}, "status": said}
        await self._api.patch(VOLCANO_QUEUES, "", name, Patch("merge", body), "status")


def _state(tree: QueueTree, queue: Queue, has_groups: bool) -> tuple[str, str | None]:
    """What its state comes to, and what is to be marked for when those above it open again."""
    above = tree.queues.get(queue.parent)
    is_shut_above = above is not None and above.name != queue.name and not above.is_open
    if queue.is_open:
        if not is_shut_above:
            return _OPEN, None
        return (_CLOSING if has_groups else _CLOSED), "true"
    if queue.status.state not in (_CLOSING, _CLOSED):
        return _UNKNOWN, None
    if queue.was_closed_by_parent and not is_shut_above:
        return _OPEN, "false"
    return (_CLOSING if has_groups else _CLOSED), None
