"""Parses and formats sets of completion indexes, such as `1,3-5,7`.

Two neighbours are separated by a comma, three or more become a range, as in Kubernetes. Invalid parts are skipped: any
client that may write a status can write the text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet

Indexes = AbstractSet[int]
_MAX_INDEXES, _LONGEST = 1_000_000, 40
"""Limits for parsing: the number of indexes, and the length of a number."""


def read_indexes(text: str, completions: int) -> set[int]:
    """The indexes below `completions`, up to the limit."""
    found: set[int] = set()
    left = _MAX_INDEXES
    for piece in text.split(",") if text else ():
        first, _, last = piece.partition("-")
        if len(piece) <= _LONGEST and first.isdecimal() and (last.isdecimal() or not last):
            span = range(int(first), min(int(last or first), completions - 1) + 1)[:left]
            left -= len(span)
            found.update(span)
    return found


def write_indexes(indexes: Iterable[int]) -> str:
    pieces: list[str] = []
    for first, last in _spans(indexes):
        if last - first < 2:
            pieces.extend(str(one) for one in range(first, last + 1))
        else:
            pieces.append(f"{first}-{last}")
    return ",".join(pieces)


def _spans(indexes: Iterable[int]) -> Iterator[tuple[int, int]]:
    first = last = -2
    for index in sorted(indexes):
        if index != last + 1:
            if first >= 0:
                yield first, last
            first = index
        last = index
    if first >= 0:
        yield first, last


def first_free(count: int, completions: int, taken: Indexes) -> list[int]:
    """The lowest `count` indexes that are not taken."""
    free: list[int] = []
    for index in range(completions):
        if len(free) >= count:
            break
        if index not in taken:
            free.append(index)
    return free
