"""New and changed quotas are counted: their status says what is used before the next object is.

Charges keep the status true afterwards, in the same commit as the object that is charged. A count that cannot be stored
is tried again as soon as anything can be.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

import msgspec

from shoal.embedded.apiserver import status
from shoal.embedded.apiserver.admission.quota.usage_arithmetic import QUOTAS
from shoal.embedded.apiserver.resource import Ref
from shoal.embedded.apiserver.rest.context import ServerContext
from shoal.embedded.apiserver.rest.quota_commits import quota_writes, quotas_lock
from shoal.embedded.apiserver.state.event import Event

_ENDING = 503
"""How writes are refused while the server ends."""
_log = logging.getLogger("shoal.cluster")


class QuotaCounts:
    def __init__(self, context: ServerContext) -> None:
        self._context = context
        self._tasks: set[asyncio.Task[None]] = set()
        self._failed: set[Ref] = set()
        for record in context.state.list(QUOTAS, None).records:
            self._count(record.ref)
        context.state.on_commit(self._committed)

    def _committed(self, events: Sequence[Event]) -> None:
        failed, self._failed = self._failed, set()
        for ref in failed:
            self._count(ref)
        for event in events:
            if event.record.ref.home == QUOTAS and event.kind != "DELETED":
                quota = msgspec.json.decode(event.record.data)
                if (quota.get("status") or {}).get("hard") != (quota.get("spec") or {}).get("hard"):
                    self._count(event.record.ref)

    def _count(self, ref: Ref) -> None:
        task = asyncio.get_running_loop().create_task(self._counted(ref))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _counted(self, ref: Ref) -> None:
        try:
            async with quotas_lock(self._context, ref.namespace):
                # Writes that began before the quota was visible were not charged: they are counted now.
                await self._context.state.settled()
                record = self._context.state.get(ref)
                if record is None:
                    return
                charge = self._context.quotas.counted(msgspec.json.decode(record.data))
                writes = quota_writes(self._context, [charge])
                if writes:
                    await self._context.state.commit(writes)
        except status.ApiError as error:
            self._failed.add(ref)
            if error.code == _ENDING:
                return
            _log.exception("quota %s/%s could not be counted", ref.namespace, ref.name)
