"""Regular tasks: old history and old Events are removed."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from datetime import UTC, datetime

from shoal.embedded.apiserver import status
from shoal.embedded.apiserver.calls import SERVER, Call
from shoal.embedded.apiserver.resource import Home
from shoal.embedded.apiserver.rest.context import ServerContext
from shoal.embedded.apiserver.rest.deleting import DeleteOptions, delete
from shoal.embedded.apiserver.state.record import Record

_EVENTS = Home("", "events")
_EVENT_AGE_S = 3600
"""As long as Kubernetes keeps them by default."""
_EVERY_S = 60.0
_AT_ONCE = 500
_log = logging.getLogger("shoal.cluster")


class Housekeeping:
    """Runs from `start` to `stop`."""

    def __init__(self, context: ServerContext) -> None:
        self._context = context
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(_EVERY_S)
            self._context.state.forget()
            try:
                await self.drop_old_events()
            except status.ApiError:
                _log.exception("old events could not be dropped")

    async def drop_old_events(self) -> None:
        """Removes Events that were not changed for an hour, in pieces, so that writers are not blocked."""
        before = datetime.fromtimestamp(int(self._context.clock.seconds()) - _EVENT_AGE_S, UTC)
        old = [one for one in self._context.state.list(_EVENTS, None).records if _last_seen(one) < before]
        events = self._context.catalog.builtin(_EVENTS)
        for start in range(0, len(old), _AT_ONCE):
            calls = [
                Call("delete", events, SERVER, one.ref.namespace, one.ref.name) for one in old[start : start + _AT_ONCE]
            ]
            # An Event that was deleted meanwhile needs no deletion.
            await asyncio.gather(
                *(delete(self._context, call, DeleteOptions(), asks=False) for call in calls), return_exceptions=True
            )


def _last_seen(record: Record) -> datetime:
    event = record.obj()
    series = event.get("series") or {}
    text = series.get("lastObservedTime") or event.get("lastTimestamp") or event["metadata"]["creationTimestamp"]
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return datetime.fromisoformat(event["metadata"]["creationTimestamp"])
