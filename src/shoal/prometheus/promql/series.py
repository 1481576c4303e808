"""Series of samples in memory, as far back as expressions read them.

A series that is missing from the next scrape of its source has no value from then on; one whose source is not scraped
any more is current for five minutes, as in Prometheus. Values that are no number are not stored.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from shoal.prometheus.promql.label_sets import LabelSet, LabelSets

CURRENT_MS = 300_000
"""For how long a sample is the current value of its series."""
_STALE = math.nan


class LabelledValue(NamedTuple):
    name: str
    labels: LabelSet
    value: float


class StoredSeries:
    __slots__ = ("labels", "name", "times", "values")

    def __init__(self, name: str, labels: LabelSet) -> None:
        self.name, self.labels = name, labels
        self.times, self.values = array("q"), array("d")

    def add(self, at_ms: int, value: float) -> None:
        if not self.times or at_ms > self.times[-1]:
            self.times.append(at_ms)
            self.values.append(value)

    def at(self, at_ms: int) -> float | None:
        """The current value."""
        place = bisect_right(self.times, at_ms) - 1
        if place < 0 or self.times[place] <= at_ms - CURRENT_MS:
            return None
        value = self.values[place]
        return None if value != value else value

    def between(self, after_ms: int, until_ms: int) -> tuple[list[int], list[float]]:
        """Samples later than `after_ms`, until `until_ms`."""
        first, end = bisect_right(self.times, after_ms), bisect_right(self.times, until_ms)
        times, values = self.times[first:end], self.values[first:end]
        kept = [(time, value) for time, value in zip(times, values, strict=True) if value == value]
        return [time for time, _ in kept], [value for _, value in kept]

    def forget(self, until_ms: int) -> None:
        """Samples until this moment, once they are many."""
        end = bisect_right(self.times, until_ms)
        if end > len(self.times) // 2:
            del self.times[:end], self.values[:end]


class SeriesStore:
    """`kept`: the metrics that are stored, with how far back each is read."""

    def __init__(self, kept: Mapping[str, int]) -> None:
        self.kept = dict(kept)
        self.label_sets = LabelSets()
        self._series: dict[str, dict[LabelSet, StoredSeries]] = {name: {} for name in kept}
        self._seen: dict[str, set[StoredSeries]] = {}
        """By source: what its last scrape had."""
        self._recorded: dict[str, set[StoredSeries]] = {}
        """By recording rule: what its last evaluation had."""

    def scrape(self, source: str, at_ms: int, values: Iterable[LabelledValue]) -> None:
        """All values that a source has at this moment."""
        self._replace(self._seen, source, at_ms, values)

    def record(self, rule: str, at_ms: int, values: Iterable[LabelledValue]) -> None:
        """All values of a recording rule at this moment."""
        self._replace(self._recorded, rule, at_ms, values)

    def _replace(
        self, known: dict[str, set[StoredSeries]], source: str, at_ms: int, values: Iterable[LabelledValue]
    ) -> None:
        seen = {found for one in values if (found := self.add(at_ms, one)) is not None}
        for gone in known.get(source, set()) - seen:
            gone.add(at_ms, _STALE)
        known[source] = seen

    def keep_sources(self, sources: Iterable[str], at_ms: int) -> None:
        """End the series of all other sources."""
        for gone in set(self._seen) - set(sources):
            self.scrape(gone, at_ms, ())
            del self._seen[gone]

    def add(self, at_ms: int, one: LabelledValue) -> StoredSeries | None:
        of_name = self._series.get(one.name)
        if of_name is None or one.value != one.value:
            return None
        found = of_name.get(one.labels)
        if found is None:
            found = of_name[one.labels] = StoredSeries(one.name, one.labels)
        found.add(at_ms, one.value)
        return found

    def of(self, name: str) -> Iterator[StoredSeries]:
        return iter(self._series.get(name, {}).values())

    def forget(self, now_ms: int) -> None:
        """What no expression reads any more."""
        for name, of_name in self._series.items():
            until = now_ms - self.kept[name] - 2 * CURRENT_MS
            for labels, series in list(of_name.items()):
                if series.times and series.times[-1] <= until:
                    del of_name[labels]
                else:
                    series.forget(until)

    def __len__(self) -> int:
        return sum(map(len, self._series.values()))
