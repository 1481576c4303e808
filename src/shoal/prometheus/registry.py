"""Registers all metric families of a process, and the functions that read values at each scrape.

A family that exists is returned again: a part that is restarted, after a lost lease for example, continues its counts.
Nothing registers itself: the registry is created where the process is composed.

Rejected: one registry for every process, found through the module. Two clusters in one test would add up.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import msgspec

from shoal.prometheus.families import MOST_CELLS, Counter, Family, Gauge, Histogram, MetricHead, Values

_log = logging.getLogger("shoal.telemetry")
Figures = Iterable[tuple[Values, float]]
"""Label values and a number, each set of values once."""
Read = Callable[[], Figures]


class Reading(msgspec.Struct, frozen=True):
    """A family as it was read: its cells, or plain numbers."""

    head: MetricHead
    numbers: Sequence[tuple[Values, float]] = ()
    histograms: Sequence[tuple[Values, Histogram]] = ()


class Registry:
    def __init__(self) -> None:
        self._families: dict[str, Family[Any]] = {}
        self._readers: dict[str, tuple[MetricHead, Read]] = {}
        self._names: dict[str, str] = {}
        """Each name in the text, and the family it belongs to."""
        self._broken: set[str] = set()
        self._prepare: dict[str, Callable[[], None]] = {}

    def counter(self, name: str, help_: str, labels: tuple[str, ...] = (), most: int = MOST_CELLS) -> Family[Counter]:
        return self._family(MetricHead("counter", name, help_, labels, most=most), Counter)

    def gauge(self, name: str, help_: str, labels: tuple[str, ...] = (), most: int = MOST_CELLS) -> Family[Gauge]:
        return self._family(MetricHead("gauge", name, help_, labels, most=most), Gauge)

    def histogram(
        self, name: str, help_: str, bounds: tuple[float, ...], labels: tuple[str, ...] = (), most: int = MOST_CELLS
    ) -> Family[Histogram]:
        return self._family(MetricHead("histogram", name, help_, labels, bounds, most), lambda: Histogram(bounds))

    def reads(self, head: MetricHead, read: Read) -> None:
        """Numbers of another object: `read` is called at each scrape; a later source replaces an earlier one."""
        if head.type == "histogram":
            raise ValueError(f"{head.name}: a histogram is counted, not looked up")
        self._claim(head)
        self._readers[head.name] = (head, read)

    def before_reading(self, name: str, prepare: Callable[[], None]) -> None:
        """Called before the families are read, once for all of them; of one name the latest counts."""
        self._prepare[name] = prepare

    def read(self) -> Iterator[Reading]:
        """By name. A reader that breaks takes its own family away, and no other."""
        for what, prepare in self._prepare.items():
            self._safely(what, prepare)
        for name in sorted((*self._families, *self._readers)):
            family = self._families.get(name)
            if family is None:
                head, read = self._readers[name]
                found = self._safely(name, partial(_all, read))
                yield Reading(head, found[: head.most] if found else ())
            elif family.head.type == "histogram":
                yield Reading(family.head, histograms=list(family))
            else:
                yield Reading(family.head, [(values, cell.value) for values, cell in family])

    # internals

    def _family(self, head: MetricHead, make: Callable[[], Any]) -> Family[Any]:
        known = self._families.get(head.name)
        if known is not None and known.head == head:
            return known
        self._claim(head)
        family = self._families[head.name] = Family(head, make)
        if not head.labels:
            # Zero is exposed too, so that rates can be computed from the start.
            family.of()
        return family

    def _claim(self, head: MetricHead) -> None:
        known = self._readers.get(head.name)
        if known is not None and known[0] == head:
            return
        for name in {head.name, *head.samples}:
            if name in self._names:
                raise ValueError(f"{name} is already registered: {self._names[name]}")
        self._names.update(dict.fromkeys((head.name, *head.samples), head.help))

    def _safely(self, name: str, read: Callable[[], Any]) -> Any:
        try:
            found = read()
        except Exception:  # noqa: BLE001 - all other metrics must be served all the same
            if name not in self._broken:
                _log.exception("%s cannot be read", name)
            self._broken.add(name)
            return None
        self._broken.discard(name)
        return found


def _all(read: Read) -> list[tuple[Values, float]]:
    return list(read())
