"""Reads samples from a text in Prometheus' format, as exporters write it.

Lines that are not samples are skipped: comments, empty lines, and lines that cannot be read. One bad line of an
exporter must not hide the others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_LABEL = re.compile(r'\s*([a-zA-Z_][a-zA-Z0-9_]*)\s*=\s*"((?:[^"\\]|\\.)*)"\s*(,?)')
_ESCAPES = {"\\\\": "\\", '\\"': '"', "\\n": "\n"}
_ESCAPE = re.compile(r'\\[\\"n]')


class MetricLine(NamedTuple):
    name: str
    labels: Mapping[str, str]
    value: float


def samples_of(text: str) -> Iterator[MetricLine]:
    for line in text.splitlines():
        found = _sample(line.strip())
        if found is not None:
            yield found


def _sample(line: str) -> MetricLine | None:
    name = _NAME.match(line)
    if name is None:
        return None
    place, labels = name.end(), dict[str, str]()
    if line[place : place + 1] == "{":
        place += 1
        while line[place : place + 1] != "}":
            label = _LABEL.match(line, place)
            if label is None:
                return None
            labels[label[1]] = _ESCAPE.sub(lambda one: _ESCAPES[one[0]], label[2])
            place = label.end()
            if not label[3] and line[place : place + 1] != "}":
                return None
        place += 1
    parts = line[place:].split()
    try:
        return MetricLine(name[0], labels, float(parts[0].replace("_", "x"))) if parts else None
    except ValueError:
        return None
