"""Durations as people write them in annotations and stage files: `90s`, `1m30s`, `2h`, `250ms`.

The spelling is Go's, which every Kubernetes user knows. Rejected: bare numbers, which leave the unit to be guessed.
"""

from __future__ import annotations

import re

from shoal.units.errors import UserError, excerpt

_UNIT_S = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h)")
_MOST_SIGNS = 64
"""Durations are read again and again, so a text of a hundred thousand parts must not be."""
_LONGEST_S = 10 * 365 * 86_400.0


def seconds_of(text: str) -> float:
    """Raises UserError for what is no duration, is negative, or is longer than ten years."""
    if text == "0":
        return 0.0
    if len(text) > _MOST_SIGNS:
        raise UserError(f"{excerpt(text)} is longer than a duration may be, which is {_MOST_SIGNS} signs")
    total, at = 0.0, 0
    while found := _PART.match(text, at):
        total += float(found[1]) * _UNIT_S[found[2]]
        at = found.end()
    if not text or at != len(text):
        raise UserError(f"{excerpt(text)} is not a duration such as 90s, 1m30s or 2h")
    if total > _LONGEST_S:
        raise UserError(f"{excerpt(text)} is longer than ten years")
    return total
