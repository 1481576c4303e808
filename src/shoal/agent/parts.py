"""Runs the parts of a node's agent side by side: each in a thread of its own.

Guarantees: a part that fails does not end the others and is started again after a while; all end when `stop` is set. A
part that is then still blocked, as in a driver that does not respond, is left behind; `end_despite` ends the process.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import threading
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec

from shoal.units.errors import ShoalError

_log = logging.getLogger("shoal.agent")
_RETRY_S, _END_S, _SIGNAL_S = 5.0, 3.0, 1.0


class Stop:
    """The end of an agent, which threads wait for and event loops are informed of."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._lock = threading.Lock()
        self._listeners: list[Callable[[], object]] = []

    def set(self) -> None:
        with self._lock:
            self._event.set()
            listeners = [*self._listeners]
        for listener in listeners:
            listener()

    def is_set(self) -> bool:
        return self._event.is_set()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Whether it was set."""
        return self._event.wait(timeout_s)

    @contextmanager
    def calling(self, listener: Callable[[], object]) -> Iterator[None]:
        """Calls the listener once it is set, also if that was before."""
        with self._lock:
            self._listeners.append(listener)
            is_over = self._event.is_set()
        try:
            if is_over:
                listener()
            yield
        finally:
            with self._lock:
                self._listeners.remove(listener)


def stop_at_signals() -> Stop:
    """One that is set by SIGINT and SIGTERM."""
    stop = Stop()

    def end(*_: object) -> None:
        # A signal handler interrupts the thread that waits for the end, so another thread reports it.
        threading.Thread(target=stop.set, daemon=True).start()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)
    return stop


class AgentPart(msgspec.Struct, frozen=True):
    name: str
    run: Callable[[Stop], object]
    """Runs until it is set."""


def async_part(name: str, work: Callable[[], Coroutine[Any, Any, None]]) -> AgentPart:
    """A part with an event loop of its own. `work` runs until it is cancelled."""

    async def until(stop: Stop) -> None:
        loop, task = asyncio.get_running_loop(), asyncio.ensure_future(work())
        with stop.calling(lambda: loop.call_soon_threadsafe(task.cancel)):
            await asyncio.wait((task,))
        if not task.cancelled():
            task.result()

    return AgentPart(name, lambda stop: asyncio.run(until(stop)))


def part_after(event: threading.Event, part: AgentPart) -> AgentPart:
    """The part, which starts when the event is set."""

    def run(stop: Stop) -> None:
        # The end of the agent ends the wait as well.
        with stop.calling(event.set):
            event.wait()
        if not stop.is_set():
            part.run(stop)

    return AgentPart(part.name, run)


def periodic_part(name: str, work: Callable[[], object], interval_s: float) -> AgentPart:
    """Repeats the work until the end."""

    def run(stop: Stop) -> None:
        work()
        while not stop.wait(interval_s):
            work()

    return AgentPart(name, run)


def run_parts(
    parts: Sequence[AgentPart], stop: Stop, retry_s: float = _RETRY_S, end_s: float = _END_S
) -> Sequence[str]:
    """Returns after `stop` was set, with the names of the parts that were left behind. `end_s`: how long the parts
    together have to end.
    """
    running = [
        threading.Thread(target=_keep_running, args=(part, stop, retry_s), name=f"agent {part.name}", daemon=True)
        for part in parts
    ]
    for thread in running:
        thread.start()
    # Another thread may receive a signal, whose handler runs when this thread wakes up.
    while not stop.wait(_SIGNAL_S):
        pass
    for thread in running:
        thread.join(end_s / len(running))
    left = [part.name for part, thread in zip(parts, running, strict=True) if thread.is_alive()]
    if left:
        _log.warning("did not end in %.0f s and were left behind: %s", end_s, ", ".join(left))
    return left


def end_despite(left: Sequence[str]) -> None:
    """End the process now if parts were left behind. Python would wait for threads of event loops, and such a thread
    may be blocked in the driver without end.
    """
    if left:
        logging.shutdown()
        os._exit(0)


def _keep_running(part: AgentPart, stop: Stop, retry_s: float) -> None:
    while not stop.is_set():
        _log.info("%s: started", part.name)
        try:
            part.run(stop)
        except ShoalError as error:
            _log.warning("%s: %s; again in %.0f s", part.name, error, retry_s)
        except Exception:  # noqa: BLE001 - a fault in one part must not end the others
            _log.exception("%s: failed; again in %.0f s", part.name, retry_s)
        else:
            if not stop.is_set():
                _log.warning("%s: has ended; again in %.0f s", part.name, retry_s)
        stop.wait(retry_s)
    _log.info("%s: ended", part.name)
