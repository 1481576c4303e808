"""Counters, gauges and histograms: one family per name, one cell for each set of label values.

A cell is a number that its owner keeps and adds to, so measuring costs a tenth of a microsecond and can be used in the
hottest loop; nothing is formatted before a scrape. One event loop measures: there are no locks.

Guarantees: names and labels that Prometheus would not take are refused when the family is made, not when it is read; a
family never has more than `most` cells, whatever people call their queues: what comes later is counted together, under
`(others)`.

Rejected: prometheus_client, see docs/dependencies.md.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from typing import Generic, Literal, TypeVar

import msgspec

Type = Literal["counter", "gauge", "histogram"]
Values = tuple[str, ...]
MOST_CELLS = 10_000
OTHERS = "(others)"
_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_LABEL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
_RESERVED = {"histogram": ("le",), "counter": (), "gauge": ()}


class MetricHead(msgspec.Struct, frozen=True):
    """What a family is called and what its labels are. `help` is one sentence for people."""

    type: Type
    name: str
    help: str
    labels: tuple[str, ...] = ()
    bounds: tuple[float, ...] = ()
    """Of a histogram: the upper ends of its buckets, without the last, which is endless."""
    most: int = MOST_CELLS

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name) or not self.help:
            raise ValueError(f"{self.name!r} is not a metric name, or its help is empty")
        if self.type == "counter" and not self.name.endswith("_total"):
            raise ValueError(f"{self.name}: the name of a counter ends in _total")
        for label in self.labels:
            if not _LABEL.fullmatch(label) or label.startswith("__") or label in _RESERVED[self.type]:
                raise ValueError(f"{self.name}: {label!r} is not a label name")
        if len(set(self.labels)) < len(self.labels):
            raise ValueError(f"{self.name}: duplicate label")
        if list(self.bounds) != sorted(set(self.bounds)) or (self.type == "histogram") != bool(self.bounds):
            raise ValueError(f"{self.name}: a histogram, and nothing else, has bounds, and they grow")

    @property
    def samples(self) -> tuple[str, ...]:
        """Every name under which it is read."""
        return tuple(self.name + end for end in ("_bucket", "_sum", "_count")) if self.bounds else (self.name,)


class Counter:
    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0.0

    def inc(self, amount: float = 1.0) -> None:
        if amount < 0:
            raise ValueError("a counter only grows")
        self.value += amount


class Gauge:
    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0.0

    def set(self, value: float) -> None:
        self.value = value

    def add(self, amount: float) -> None:
        self.value += amount


class Histogram:
    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        """Of each bucket alone; the last is the endless one."""
        self.total = 0.0

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def observe_many(self, value: float, times: int) -> None:
        """The same value, several times."""
        self.counts[bisect_left(self.bounds, value)] += times
        self.total += value * times


Cell = TypeVar("Cell")


class Family(Generic[Cell]):
    """Cells by the values of their labels, in the order of the head's labels."""

    def __init__(self, head: MetricHead, make: Callable[[], Cell]) -> None:
        self.head = head
        self._make = make
        self._cells: dict[Values, Cell] = {}

    def of(self, *values: str) -> Cell:
        """The cell of these values, created at the first call. Frequent writers keep it."""
        cell = self._cells.get(values)
        return cell if cell is not None else self._new(values)

    def forget(self, *values: str) -> None:
        """What it was about is gone, and is not to be read any more."""
        self._cells.pop(values, None)

    def __len__(self) -> int:
        return len(self._cells)

    def __iter__(self) -> Iterator[tuple[Values, Cell]]:
        return iter(list(self._cells.items()))

    def _new(self, values: Values) -> Cell:
        labels = self.head.labels
        if len(values) != len(labels):
            raise ValueError(f"{self.head.name} has the labels {labels}, not values {values}")
        others = (OTHERS,) * len(labels)
        if labels and values != others and len(self._cells) >= self.head.most - (others not in self._cells):
            return self.of(*others)
        cell = self._cells[values] = self._make()
        return cell


def exponential(start: float, factor: float, count: int) -> tuple[float, ...]:
    """Bounds, each so many times the one before; free of the last digits that floats would add."""
    return tuple(float(f"{start * factor**step:.12g}") for step in range(count))
