"""Formats the requested lines of a log as text. The functions are pure."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from datetime import UTC, datetime
from math import inf
from operator import attrgetter

from shoal.embedded.kubelets.node_view import LogLine, LogOptions

_AT = attrgetter("at_s")


class LogText:
    """One request's view of a growing log: each call returns the new text."""

    def __init__(self, wanted: LogOptions) -> None:
        self._wanted = wanted
        self._left = wanted.limit_bytes
        self._last_s = -inf
        self._at_last = 0
        """The number of lines that were seen with the last timestamp, because several lines may have the same."""
        self._is_first = True

    @property
    def is_full(self) -> bool:
        """Whether the limit of bytes is reached, so that no text can follow."""
        return self._left == 0

    def more(self, lines: Sequence[LogLine]) -> bytes:
        """`lines`: the whole log so far, in order; the oldest lines may have been dropped meanwhile."""
        wanted = self._wanted
        fresh = lines[bisect_left(lines, self._last_s, key=_AT) + self._at_last :]
        if fresh:
            self._last_s = fresh[-1].at_s
            self._at_last = len(lines) - bisect_left(lines, self._last_s, key=_AT)
        if self._is_first and wanted.tail_lines is not None:
            # The tail is cut first, and may then contain lines that are too old, as in the kubelet.
            fresh = fresh[max(0, len(fresh) - wanted.tail_lines) :]
        self._is_first = False
        since_s = -inf if wanted.since_s is None else wanted.since_s
        text = b"".join(_line(one, with_time=wanted.timestamps) for one in fresh if one.at_s >= since_s)
        if self._left is not None:
            text = text[: self._left]
            self._left -= len(text)
        return text


def _line(line: LogLine, *, with_time: bool) -> bytes:
    text = f"{stamp(line.at_s)} {line.text}\n" if with_time else f"{line.text}\n"
    return text.encode(errors="replace")


def stamp(at_s: float) -> str:
    """`2026-01-01T00:00:00.250000000Z`: always nine digits."""
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f000Z")
