"""Something that nobody thought of: a method of one object raises at some of its calls, and does as ever at the others.

fault = odd(world.gangs, "drain", at=(2,))
...
assert fault.calls > 2
"""

from __future__ import annotations

import inspect
from collections.abc import Collection
from typing import Any


class OddError(Exception):
    """No failure that anybody raises on purpose."""


class Fault:
    """One method of one object, made brittle."""

    def __init__(self, of: object, method: str, at: Collection[int], *, after: bool) -> None:
        self.name = f"{type(of).__name__}.{method}"
        self.calls = 0
        self._at = at
        self._after = after
        self._usual = getattr(of, method)
        setattr(of, method, self._awaited if inspect.iscoroutinefunction(self._usual) else self._called)

    def _is_due(self) -> bool:
        self.calls += 1
        return self.calls - 1 in self._at

    def _called(self, *args: Any, **named: Any) -> Any:
        is_due = self._is_due()
        if is_due and not self._after:
            raise OddError(self.name)
        answer = self._usual(*args, **named)
        if is_due:
            raise OddError(self.name)
        return answer

    async def _awaited(self, *args: Any, **named: Any) -> Any:
        is_due = self._is_due()
        if is_due and not self._after:
            raise OddError(self.name)
        answer = await self._usual(*args, **named)
        if is_due:
            raise OddError(self.name)
        return answer


def odd(of: object, method: str, at: Collection[int] = (0,), *, after: bool = False) -> Fault:
    """`at` counts calls from 0 on. `after`: it raises when it has done its work already."""
    return Fault(of, method, at, after=after)
