"""The options of a request for a log, as API server and kubelet read them from the query, and their refusals."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import msgspec

from shoal.embedded.apiserver.field_errors import FieldError, bad_value, not_allowed
from shoal.embedded.apiserver.status import bad_request, invalid

_LEAST = {"tailLines": 0, "sinceSeconds": 1, "limitBytes": 1}
_FLAGS = ("follow", "previous", "timestamps")
_PASSED_ON = (*_FLAGS, *_LEAST, "sinceTime")
_TRUE = ("1", "t", "true")
_BOTH = "at most one of `sinceTime` or `sinceSeconds` may be specified"


class LogOptions(msgspec.Struct, frozen=True):
    follow: bool = False
    previous: bool = False
    timestamps: bool = False
    tail_lines: int | None = None
    since_seconds: int | None = None
    since_time_s: float | None = None
    """Seconds since 1970."""
    limit_bytes: int | None = None

    def since_s(self, now_s: float) -> float | None:
        """From when on lines are wanted, in seconds since 1970."""
        return self.since_time_s if self.since_seconds is None else now_s - self.since_seconds


def log_options(query: Mapping[str, str], pod_name: str) -> LogOptions:
    """ApiError where an option makes no sense."""
    numbers = {key: _number(query[key]) for key in _LEAST if query.get(key)}
    errors: list[FieldError] = [
        bad_value(key, number, "must be greater than 0" if _LEAST[key] else "must be greater than or equal to 0")
        for key, number in numbers.items()
        if number < _LEAST[key]
    ]
    since = query.get("sinceTime", "")
    if since and "sinceSeconds" in numbers:
        errors.append(not_allowed("", _BOTH))
    if errors:
        raise invalid("PodLogOptions", "", pod_name, errors)
    flags = {name: query.get(name, "").lower() in _TRUE for name in _FLAGS}
    return LogOptions(
        flags["follow"],
        flags["previous"],
        flags["timestamps"],
        numbers.get("tailLines"),
        numbers.get("sinceSeconds"),
        _instant(since) if since else None,
        numbers.get("limitBytes"),
    )


def passed_on(query: Mapping[str, str]) -> dict[str, str]:
    """What the API server tells the kubelet of them."""
    return {name: query[name] for name in _PASSED_ON if query.get(name)}


def _number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax') from None


def _instant(text: str) -> float:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        found = None
    if found is None or found.tzinfo is None or "T" not in text:
        words = f'parsing time "{text}" as "2006-01-02T15:04:05Z07:00": cannot parse "{text}" as "2006"'
        raise bad_request(words)
    return found.timestamp()
