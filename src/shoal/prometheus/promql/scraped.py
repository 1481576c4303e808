"""Reads the metrics that expressions need from a text in Prometheus' format: other lines cost a split and no more."""

from __future__ import annotations

import math
from collections.abc import Iterator

from shoal.prometheus.promql.label_sets import LabelSet
from shoal.prometheus.promql.series import LabelledValue, SeriesStore
from shoal.prometheus.samples import samples_of

_LONGEST_LINE, _MOST_LINES = 4096, 400_000
_MOST_KNOWN = 50_000


class TextReader:
    """Labels that were read before are found by their text."""

    def __init__(self, store: SeriesStore) -> None:
        self._store = store
        self._known: dict[str, LabelSet] = {}

    def values(self, text: str) -> Iterator[LabelledValue]:
        kept = self._store.kept
        for line in text.splitlines()[:_MOST_LINES]:
            name = line.partition("{")[0].partition(" ")[0]
            if name in kept and len(line) <= _LONGEST_LINE and (found := self._value(name, line)) is not None:
                yield found

    def _value(self, name: str, line: str) -> LabelledValue | None:
        end = line.rfind("}") + 1
        head = line[len(name) : end] if end else ""
        labels = self._known.get(head)
        if labels is not None:
            value = _number(line[end:] if end else line[len(name) :])
            return None if value is None else LabelledValue(name, labels, value)
        found = next(samples_of(line), None)
        if found is None:
            return None
        if len(self._known) >= _MOST_KNOWN:
            self._known.clear()
        labels = self._known[head] = self._store.label_sets.of(found.labels)
        return LabelledValue(name, labels, found.value)


def _number(text: str) -> float | None:
    words = text.split()
    try:
        value = float(words[0].replace("Inf", "inf"))
    except (ValueError, IndexError):
        return None
    return None if math.isnan(value) else value
