"""In which order versions are listed: stable before beta before alpha, newer before older; the first is preferred."""

from __future__ import annotations

import re

_VERSION = re.compile(r"v(\d+)(?:(alpha|beta)(\d+))?")
_STAGES = {"alpha": 0, "beta": 1, None: 2}


def newest_first(version: str) -> tuple[int, int, int, int, str]:
    """A sort key. A version that does not look like one comes last, by its name."""
    found = _VERSION.fullmatch(version)
    if found is None:
        return (1, 0, 0, 0, version)
    major, context, minor = found.groups()
    return (0, -_STAGES[context], -int(major), -int(minor or 0), "")
