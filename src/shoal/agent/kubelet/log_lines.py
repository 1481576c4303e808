"""Reads the log files of containers, in the format of the Container Runtime Interface."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path


def log_lines(files: Sequence[Path]) -> Iterator[tuple[float, str]]:
    """The lines with their times; parts of a long line are one line again."""
    part = ""
    for path in files:
        with suppress(OSError), path.open(encoding="utf-8", errors="replace", newline="\n") as file:
            for line in file:
                words = line.rstrip("\n").split(" ", 3)
                if len(words) < 4:
                    continue
                part += words[3]
                if words[2] != "P":
                    yield _seconds(words[0]), part
                    part = ""
                else:
                    last_s = _seconds(words[0])
    if part:
        yield last_s, part


def _seconds(text: str) -> float:
    try:
        return datetime.fromisoformat(f"{text[:26].rstrip('Z')}+00:00").timestamp()
    except ValueError:
        return 0.0
