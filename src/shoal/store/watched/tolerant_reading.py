"""Reads objects one by one: an object that raises an error is logged and read again later, without a delay of other
objects.

Invalid objects are reported on the object and do not come here. This is for unexpected errors: a transient one delays
its object, and a permanent one does not affect other objects.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

K = TypeVar("K", bound=Hashable)
_log = logging.getLogger("shoal.store")


def read_each(what: str, keys: Iterable[K], read: Callable[[K], object]) -> dict[K, None]:
    """Objects whose reading failed."""
    left: dict[K, None] = {}
    for key in keys:
        try:
            read(key)
        except Exception:  # noqa: BLE001 - any error concerns this object only
            _log.exception("%s %s cannot be read", what, key)
            left[key] = None
    return left
