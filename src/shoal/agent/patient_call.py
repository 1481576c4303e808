"""Calls a function that may never return, such as one of the driver, and waits for it for a bounded time.

Guarantees: the function runs at most once at a time, in a thread that does not keep the process from ending. A result
that comes too late is that of the next call. Rejected: the threads of executors, which the process waits for at its
end.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import Generic, TypeVar

from shoal.units.errors import TemporaryError

T = TypeVar("T")
_RETRY_S = 5.0


class SilentDriverError(TemporaryError):
    """NVIDIA's driver has not returned from a call."""

    def __init__(self, patience_s: float) -> None:
        super().__init__(f"NVIDIA's driver has not responded for {patience_s:g} s", _RETRY_S)


class PatientCall(Generic[T]):
    """It can be called from several threads, which then wait for the same result."""

    def __init__(self, call: Callable[[], T], patience_s: float) -> None:
        self._call, self._patience_s = call, patience_s
        self._running: Future[T] | None = None
        self._lock = threading.Lock()

    def __call__(self) -> T:
        """Raises what the function raises, and `SilentDriverError` while it does not return."""
        running = self.begin()
        try:
            if not wait((running,), self._patience_s).done:
                raise SilentDriverError(self._patience_s)
            return running.result()
        finally:
            self.end(running)

    def begin(self) -> Future[T]:
        """The present run of the function, a new one if there is none. `end` has to be called with it."""
        with self._lock:
            if self._running is None:
                self._running = Future()
                # It cannot be cancelled from now on.
                self._running.set_running_or_notify_cancel()
                threading.Thread(target=self._run, args=(self._running,), daemon=True).start()
            return self._running

    def end(self, running: Future[T]) -> None:
        """The result of the run was used, or it was not waited for any longer."""
        with self._lock:
            if self._running is running and running.done():
                self._running = None

    def _run(self, result: Future[T]) -> None:
        try:
            found = self._call()
        except BaseException as error:  # noqa: BLE001 - raised again where the result is awaited
            result.set_exception(error)
        else:
            result.set_result(found)
