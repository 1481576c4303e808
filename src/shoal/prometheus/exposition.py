"""A registry as text: Prometheus' format 0.0.4, and OpenMetrics 1.0 for those that ask for it.

The two differ in little: OpenMetrics calls a counter by its name without `_total`, escapes quotes in its help, writes
bounds as floats, and says where it ends.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator

from shoal.prometheus.families import Histogram, MetricHead, Values
from shoal.prometheus.registry import Reading

PLAIN = "text/plain; version=0.0.4; charset=utf-8"
OPEN = "application/openmetrics-text; version=1.0.0; charset=utf-8"
_OPEN_TYPE = "application/openmetrics-text"
_WHOLE = 1e15


def form_for(accept: str) -> str:
    """The content type for a request that accepts these: OpenMetrics for callers that prefer it, as Prometheus does."""
    best, chosen = 0.0, PLAIN
    for part in accept.split(","):
        media, *parameters = (piece.strip() for piece in part.split(";"))
        weight = next((_weight(one[2:]) for one in parameters if one.startswith("q=")), 1.0)
        version = next((one[8:].strip('"') for one in parameters if one.startswith("version=")), "")
        if media == _OPEN_TYPE and version in {"", "1.0.0"} and weight > best:
            best, chosen = weight, OPEN
        elif media in {"text/plain", "text/*", "*/*"} and weight > best:
            best, chosen = weight, PLAIN
    return chosen


def text_of(readings: Iterable[Reading], form: str = PLAIN) -> bytes:
    is_open = form == OPEN
    lines: list[str] = []
    for reading in readings:
        if reading.numbers or reading.histograms:
            lines += _head(reading.head, is_open=is_open)
            lines += _numbers(reading)
            for values, cell in reading.histograms:
                lines += _histogram(reading.head, values, cell, is_open=is_open)
    lines.append("# EOF\n" if is_open else "")
    return "\n".join(lines).encode(errors="replace")


def _head(head: MetricHead, *, is_open: bool) -> tuple[str, str]:
    name = head.name.removesuffix("_total") if is_open and head.type == "counter" else head.name
    said = head.help.replace("\\", r"\\").replace("\n", r"\n")
    if is_open:
        said = said.replace('"', r"\"")
    return f"# HELP {name} {said}", f"# TYPE {name} {head.type}"


def _numbers(reading: Reading) -> Iterator[str]:
    head = reading.head
    for values, number in reading.numbers:
        labels = _labels(head, values)
        yield f"{head.name}{{{labels}}} {_number(number)}" if labels else f"{head.name} {_number(number)}"


def _histogram(head: MetricHead, values: Values, cell: Histogram, *, is_open: bool) -> Iterator[str]:
    name, labels, total = head.name, _labels(head, values), 0
    before = f"{labels}," if labels else ""
    for bound, count in zip((*head.bounds, math.inf), cell.counts, strict=True):
        total += count
        yield f'{name}_bucket{{{before}le="{_bound(bound) if is_open else _number(bound)}"}} {total}'
    after = f"{{{labels}}}" if labels else ""
    yield f"{name}_sum{after} {_number(cell.total)}"
    yield f"{name}_count{after} {total}"


def _labels(head: MetricHead, values: Values) -> str:
    return ",".join(f'{name}="{_escaped(value)}"' for name, value in zip(head.labels, values, strict=True))


_SPECIAL = re.compile(r'["\\\n]')
_ESCAPES = {'"': r"\"", "\\": r"\\", "\n": r"\n"}


def _escaped(value: str) -> str:
    return _SPECIAL.sub(lambda found: _ESCAPES[found[0]], value)


def _number(value: float) -> str:
    if math.isfinite(value):
        return str(int(value)) if abs(value) < _WHOLE and value == int(value) else repr(float(value))
    return "NaN" if math.isnan(value) else ("+Inf" if value > 0 else "-Inf")


def _bound(value: float) -> str:
    return repr(value) if math.isfinite(value) else "+Inf"


def _weight(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0
