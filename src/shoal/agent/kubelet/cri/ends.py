"""Notices the ends of containers, by one list of those that run at a time, and bounds their logs.

Rejected: the runtime's event stream, which containerd 1.6 does not have. Rejected: a list of all containers, which
grows with the pods that have ended.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from shoal.agent.kubelet.cri.calls import CallFailedError, RuntimeCalls
from shoal.agent.protos import cri_pb2 as messages
from shoal.client.clock import Clock

_EVERY_S = 0.5
_LOGS_EVERY = 20
LOG_BYTES = 10 * 1024 * 1024
"""A log is replaced by an empty one above this size, and one former log is kept."""


class Awaited(msgspec.Struct):
    log: Path
    ended: asyncio.Event = msgspec.field(default_factory=asyncio.Event)


class ContainerEnds:
    def __init__(self, calls: RuntimeCalls, clock: Clock, labels: dict[str, str], log_bytes: int = LOG_BYTES) -> None:
        """`labels`: of all containers of this kubelet."""
        self._calls, self._clock, self._labels, self._log_bytes = calls, clock, labels, log_bytes
        self._awaited: dict[str, Awaited] = {}
        self._poller: asyncio.Task[None] | None = None
        self.problem = ""
        """Why the runtime does not list its containers; empty while it does."""
        self.on_change: Callable[[], None] = lambda: None
        """Called when `problem` has changed."""

    async def wait(self, id_: str, log: Path) -> None:
        """Returns when the container does not run any more, or the runtime does not know it."""
        awaited = self._awaited.setdefault(id_, Awaited(log))
        if self._poller is None or self._poller.done():
            self._poller = asyncio.ensure_future(self._poll())
        await awaited.ended.wait()

    async def close(self) -> None:
        if self._poller is not None:
            self._poller.cancel()
            with suppress(asyncio.CancelledError):
                await self._poller

    def note(self, problem: str) -> None:
        if bool(problem) != bool(self.problem):
            self.problem = problem
            self.on_change()
        self.problem = problem

    async def _poll(self) -> None:
        rounds = 0
        while self._awaited:
            try:
                running = await self._calls.running(self._labels)
                await self._settle(running)
            except CallFailedError as error:
                self.note(str(error))
            else:
                self.note("")
                if rounds % _LOGS_EVERY == 0:
                    await self.rotate()
            rounds += 1
            await self._clock.sleep(_EVERY_S)

    async def _settle(self, running: frozenset[str]) -> None:
        for id_ in [one for one in self._awaited if one not in running]:
            try:
                state = (await self._calls.status(id_)).state
            except CallFailedError as error:
                if not error.is_absent:
                    raise
                state = messages.CONTAINER_EXITED
            if state == messages.CONTAINER_UNKNOWN:
                # The runtime has lost its process; it is ended for certain before another run starts.
                await self._calls.stop(id_, 0)
            elif state == messages.CONTAINER_EXITED:
                self._awaited.pop(id_).ended.set()

    async def rotate(self) -> None:
        """Replace the logs that have become too long."""
        for id_, log in self._long():
            former = former_log(log)
            with suppress(OSError):
                log.replace(former)
                try:
                    await self._calls.reopen_log(id_)
                except CallFailedError:
                    # The runtime still writes to the renamed file.
                    if not log.exists():
                        former.replace(log)

    def _long(self) -> Iterator[tuple[str, Path]]:
        for id_, awaited in [*self._awaited.items()]:
            with suppress(OSError):
                if awaited.log.stat().st_size > self._log_bytes:
                    yield id_, awaited.log


def former_log(log: Path) -> Path:
    return log.with_name(f"{log.name}.1")
