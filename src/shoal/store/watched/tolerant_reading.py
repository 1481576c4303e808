"""Objects read one by one: one that breaks the code is told in the log and left to be read again, and keeps nobody
else waiting.

What people write wrongly is told on the object and is not met here. This is for what nobody thought of: a fault that
passes costs its object a moment, and one that stays costs nobody else anything.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

K = TypeVar("K", bound=Hashable)
_log = logging.getLogger("shoal.store")


def read_each(what: str, keys: Iterable[K], read: Callable[[K], object]) -> dict[K, None]:
    """Those whose reading broke."""
    left: dict[K, None] = {}
    for key in keys:
        try:
            read(key)
        except Exception:  # noqa: BLE001 - whatever it is, it is about this one
            _log.exception("%s %s cannot be taken in", what, key)
            left[key] = None
    return left
