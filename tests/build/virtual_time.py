"""An event loop whose time jumps: when nothing is ready to run, it is at once the time of the next timer.

Hours of a cluster pass in milliseconds, and the same run happens the same way each time. What is given to an executor
is done at once. A socket that answers later is not waited for while timers are due.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from functools import wraps
from typing import Any, ParamSpec, TypeVar, TypeVarTuple

P = ParamSpec("P")
T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class _JumpingSelector(selectors.DefaultSelector):
    def __init__(self) -> None:
        super().__init__()
        self.jumped_s = 0.0

    def select(self, timeout: float | None = None) -> Any:
        found = super().select(0 if timeout is not None else None)
        if not found and timeout:
            self.jumped_s += timeout
        return found


class VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        # Only jumps count: how long the machine took to run the test must not matter.
        return 1_000.0 + self._jumping.jumped_s

    def run_in_executor(self, executor: Executor | None, func: Callable[[*Ts], T], *args: *Ts) -> asyncio.Future[T]:
        done: asyncio.Future[T] = self.create_future()
        try:
            done.set_result(func(*args))
        except Exception as error:  # noqa: BLE001 - raised again where the future is awaited
            done.set_exception(error)
        return done


def in_virtual_time(work: Coroutine[Any, Any, T]) -> T:
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(work)


def virtual(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Makes an async test run in virtual time."""

    @wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        in_virtual_time(test(*args, **kwargs))

    return run
