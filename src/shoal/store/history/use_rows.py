"""Merges measured intervals of holdings into records of their use."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from shoal.cost.records import PPM, Use

PARTS = 65535
"""A whole, in the columns of activity and utilisation."""


def use_key(uid: str) -> int:
    """The number of a holding in the records of its use."""
    return int.from_bytes(blake2b(uid.encode(), digest_size=8).digest(), "little") >> 1


def merged_uses(table: NDArray[np.int64], days: Sequence[int]) -> dict[int, list[Use]]:
    """`table`: rows of keys, begins, ends, active parts and used parts.

    Intervals in a row are one record, divided at `days`."""
    order = np.lexsort((table[1], table[0]))
    keys, first, end, active, used = table[:, order]
    day = np.searchsorted(np.array(days, np.int64), first, side="right") if len(days) else np.zeros(len(keys), np.int64)
    is_new = np.ones(len(keys), bool)
    is_new[1:] = (keys[1:] != keys[:-1]) | (first[1:] != end[:-1]) | (day[1:] != day[:-1])
    starts = np.flatnonzero(is_new)
    length = end - first
    total = np.add.reduceat(length, starts)
    busy = np.add.reduceat(active * length, starts) * PPM // (total * PARTS)
    mean = np.add.reduceat(used * length, starts) * PPM // (total * PARTS)
    ends = end[np.append(starts[1:], len(keys)) - 1]
    found: dict[int, list[Use]] = {}
    for row in zip(*(one.tolist() for one in (keys[starts], first[starts], ends, busy, mean)), strict=True):
        key, begin, until, busy_ppm, used_ppm = row
        found.setdefault(key, []).append(Use(begin, until, busy_ppm, used_ppm))
    return found
