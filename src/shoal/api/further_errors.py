"""Finds the errors of an object behind its first one: the wrong field is removed, and the object is read again.

The reader of types stops at the first error. Rejected: a second reader that collects errors; the two would disagree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from shoal.units.errors import UserError

MOST_ERRORS = 20


def further_errors(value: Any, first: UserError, path: str, read: Callable[[Any], object]) -> Iterator[UserError]:
    """`value`: the plain object, which is changed; `path`: its place, with which the paths of its errors begin."""
    error, removed = first, set[str]()
    while len(removed) < MOST_ERRORS and _remove(value, error.where.path.removeprefix(path)):
        removed.add(error.where.path)
        try:
            read(value)
        except UserError as found:
            error = found
        else:
            return
        if error.where.path in removed:
            # The field is required.
            return
        yield error


def _remove(value: Any, path: str) -> bool:
    """Whether there was such a field of a map. Items of lists stay, so that the places of the others do not change."""
    *above, last = list(_steps(path)) or [""]
    for step in above:
        if isinstance(value, dict) and step in value:
            value = value[step]
        elif isinstance(value, list) and step.isdecimal() and int(step) < len(value):
            value = value[int(step)]
        else:
            return False
    return isinstance(value, dict) and value.pop(last, None) is not None


def _steps(path: str) -> Iterator[str]:
    """The keys and positions of `spec.containers[0].resources.limits[example.com/x]`, in time proportional to its
    length."""
    at = 0
    while at < len(path):
        if path[at] == "[":
            end = path.find("]", at)
            if end < 0:
                return
            yield path[at + 1 : end]
            at = end + 1
        elif path[at] in ".]":
            at += 1
        else:
            end = at
            while end < len(path) and path[end] not in ".[]":
                end += 1
            yield path[at:end]
            at = end
