"""Sets of completion indexes and their compact text: `1,3-5,7`.

Two neighbours are written with a comma, three and more with a hyphen, as Kubernetes does. What cannot be read is passed
over: the text may come from anybody who may write a status.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet

Indexes = AbstractSet[int]
_MOST, _LONGEST = 1_000_000, 40
"""What few words ask for: more indexes than any job gets to, and longer numbers than there are."""


def read_indexes(text: str, completions: int) -> set[int]:
    """Those below `completions`, and of these the first that are written."""
    found: set[int] = set()
    room = _MOST
    for piece in text.split(",") if text else ():
        first, _, last = piece.partition("-")
        if len(piece) <= _LONGEST and first.isdecimal() and (last.isdecimal() or not last):
            span = range(int(first), min(int(last or first), completions - 1) + 1)[:room]
            room -= len(span)
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
    """The lowest `count` indexes that nobody has."""
    free: list[int] = []
    for index in range(completions):
        if len(free) >= count:
            break
        if index not in taken:
            free.append(index)
    return free
