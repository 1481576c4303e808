"""Finds the known texts that a misspelled one resembles: values, and keys of labels."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

MOST_NEAR = 3
_LEAST_LIKE = 0.6
"""Of the names of two keys."""
_MOST_EDITS = 2
_LEAST_TYPED = 3
"""Shorter text is inside of nearly everything."""


def nearest_name(name: str, names: Iterable[str]) -> str:
    """The existing name that is most like the other, or else the longest that it begins with, up to a hyphen; empty
    where none is like it."""
    known = sorted(names)
    begun = [other for other in known if name.startswith(f"{other}-")]
    alike = difflib.get_close_matches(name, known, 1, _LEAST_LIKE)
    return next(iter(alike), max(begun, key=len, default=""))


def meant_words(name: str, names: Iterable[str]) -> str:
    """`; did you mean x?`, to be put behind a statement; empty where no existing name is like it."""
    near = nearest_name(name, names)
    return f"; did you mean {near}?" if near else ""


def aside_words(name: str, names: Iterable[str]) -> str:
    """The same within a sentence: ` (did you mean x?)`."""
    near = nearest_name(name, names)
    return f" (did you mean {near}?)" if near else ""


def near_texts(text: str, known: Iterable[str]) -> tuple[str, ...]:
    """What contains it comes before what merely looks like it."""
    lower = {name.lower(): name for name in sorted(known)}
    typed = text.lower()
    inside = [name for low, name in lower.items() if min(len(typed), len(low)) >= _LEAST_TYPED and _within(typed, low)]
    alike = [lower[low] for low in difflib.get_close_matches(typed, lower, n=MOST_NEAR)]
    return tuple(dict.fromkeys([*inside, *alike]))[:MOST_NEAR]


def near_keys(key: str, known: Sequence[str]) -> tuple[str, ...]:
    """Keys whose name, the part behind the prefix, is alike, the most similar first: `topology.kubernetes.io/hostnam`
    means a host name, and no zone, although it has the prefix of zones."""
    name = key.lower().rpartition("/")[2]

    def likeness(other: str) -> tuple[float, float, str]:
        part = difflib.SequenceMatcher(None, name, other.lower().rpartition("/")[2]).ratio()
        return -part, -difflib.SequenceMatcher(None, key.lower(), other.lower()).ratio(), other

    alike = [other for part, _, other in sorted(map(likeness, known)) if -part >= _LEAST_LIKE]
    return tuple(alike[:MOST_NEAR]) or near_texts(key, known)


def is_typo(text: str, known: str, edits: int = _MOST_EDITS) -> bool:
    """Whether so few edits make the known text of it."""
    return abs(len(text) - len(known)) <= edits and _distance(text, known) <= edits


def _distance(one: str, other: str) -> int:
    """Letters to insert, remove or replace."""
    before = list(range(len(other) + 1))
    for at, letter in enumerate(one, 1):
        row = [at]
        for to, wanted in enumerate(other, 1):
            row.append(min(before[to] + 1, row[-1] + 1, before[to - 1] + (letter != wanted)))
        before = row
    return before[-1]


def _within(one: str, other: str) -> bool:
    return one in other or other in one
