"""Parses the expected duration of work: `2h`, `90m`, `1d12h`, or plain seconds."""

from __future__ import annotations

import re
from collections.abc import Mapping

from shoal.api.kueue.durations import seconds
from shoal.units.errors import UserError, Where, excerpt

DURATION_ANNOTATION = "shoal.dev/expected-duration"

_DAY_S = 86_400.0
_MOST_DIGITS = 12
_DAYS = re.compile(r"([0-9]{1,6})d(.*)", re.DOTALL)
_PLAIN = re.compile(rf"[0-9]{{1,{_MOST_DIGITS}}}")


def expected_s(annotations: Mapping[str, str], where: Where) -> float | None:
    """`where` is the place of the annotations."""
    text = annotations.get(DURATION_ANNOTATION)
    if text is None:
        return None
    here = where.key(DURATION_ANNOTATION)
    length = _seconds(text.strip(), here)
    if length <= 0:
        raise UserError(f"must be more than 0, got {excerpt(text)}", where=here)
    return length


def _seconds(text: str, where: Where) -> float:
    if _PLAIN.fullmatch(text):
        return float(text)
    days = _DAYS.fullmatch(text)
    if days is None:
        return seconds(text, where)
    return int(days[1]) * _DAY_S + (seconds(days[2], where) if days[2] else 0.0)
