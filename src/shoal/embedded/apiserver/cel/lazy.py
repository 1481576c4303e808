"""Variables that are worked out when they are read: the variables of policies, and failures kept inside loops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shoal.embedded.apiserver.cel.faults import CelFault


class Lazy:
    """Made once, when an expression first reads it; a failure is made again for every reader."""

    __slots__ = ("_is_made", "_make", "_value")

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._is_made = False
        self._value: Any = None

    def __call__(self) -> Any:
        if not self._is_made:
            self._value = self._make()
            self._is_made = True
        return self._value


class Raising(Lazy):
    """A failure as a value: a later item of the loop may still decide."""

    __slots__ = ("fault",)

    def __init__(self, fault: CelFault) -> None:
        super().__init__(self._raise)
        self.fault = fault

    def _raise(self) -> Any:
        raise self.fault
