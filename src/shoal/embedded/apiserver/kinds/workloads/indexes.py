"""Parses indexes of a job: `0,3-5,9`, ascending, below the number of completions."""

from __future__ import annotations

import json
import re

_NUMBER = re.compile(r"[+-]?[0-9]+")


class IndexesError(ValueError):
    """Says in Kubernetes' words what is wrong with the list."""


def read_indexes(text: str, completions: int) -> list[tuple[int, int]]:
    """The first and last index of every span."""
    spans: list[tuple[int, int]] = []
    for piece in text.split(",") if text else ():
        first, last = _read_span(piece, completions)
        if spans and spans[-1][1] >= first:
            raise _not_rising(spans[-1][1], first)
        spans.append((first, last))
    return spans


def shared_index(one: list[tuple[int, int]], other: list[tuple[int, int]]) -> int | None:
    """The first index that is in both, of lists that rise."""
    here = there = 0
    while here < len(one) and there < len(other):
        (first, last), (start, end) = one[here], other[there]
        if first <= end and start <= last:
            return max(first, start)
        if first <= start:
            here += 1
        else:
            there += 1
    return None


def _read_span(piece: str, completions: int) -> tuple[int, int]:
    ends = piece.split("-")
    if len(ends) > 2:
        words = "violates the requirement that an index interval can have at most two parts separated by '-'"
        raise IndexesError(f"the fragment {json.dumps(piece)} {words}")
    first = _read_index(ends[0], completions)
    if len(ends) == 1:
        return first, first
    last = _read_index(ends[1], completions)
    if first >= last:
        raise _not_rising(first, last)
    return first, last


def _read_index(text: str, completions: int) -> int:
    if not _NUMBER.fullmatch(text):
        raise IndexesError(f"cannot convert string to integer for index: {json.dumps(text)}")
    if (index := int(text)) >= completions:
        raise IndexesError(f"too large index: {json.dumps(text)}")
    return index


def _not_rising(before: int, after: int) -> IndexesError:
    return IndexesError(f"non-increasing order, previous: {before}, current: {after}")
