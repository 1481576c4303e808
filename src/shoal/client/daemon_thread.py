"""Runs long computations one after the other in a thread of their own, so that they do not block the event loop.

Rejected: a ThreadPoolExecutor. The interpreter joins its threads when it exits, so that a process could not end before
the computation that it is at. Rejected: a process. It costs 80 MB, and what it works on would be copied twice.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import Executor, Future
from functools import partial
from queue import SimpleQueue
from threading import Thread
from typing import Any, Final, TypeVar

R = TypeVar("R")
_SWITCH_S: Final = 0.0005
"""How long the thread keeps the interpreter from the event loop at each system call; the default is 5 ms."""


class DaemonThread(Executor):
    """One daemon thread, started with the first computation: the interpreter does not wait for it when it exits."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._work: SimpleQueue[Callable[[], None] | None] | None = None

    def submit(self, fn: Callable[..., R], /, *args: Any, **more: Any) -> Future[R]:
        future: Future[R] = Future()
        if self._work is None:
            sys.setswitchinterval(min(sys.getswitchinterval(), _SWITCH_S))
            self._work = SimpleQueue()
            Thread(target=_do_all, args=(self._work,), name=self._name, daemon=True).start()
        self._work.put(partial(_do, future, partial(fn, *args, **more)))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: ARG002
        """The thread ends after its present computation, which is not waited for. It may be used again."""
        if self._work is not None:
            self._work.put(None)
            self._work = None


def _do(future: Future[R], work: Callable[[], R]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        future.set_result(work())
    except BaseException as fault:  # noqa: BLE001 - raised again where the result is read; the thread goes on
        future.set_exception(fault)


def _do_all(pieces: SimpleQueue[Callable[[], None] | None]) -> None:
    while (piece := pieces.get()) is not None:
        piece()
