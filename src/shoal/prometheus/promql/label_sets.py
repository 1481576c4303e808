"""Sets of labels without the name of the metric, each once in memory.

Equal sets are one object, so that series are matched by identity; a set keeps its projections on some labels. Sets that
no series and no value has any more are forgotten.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from weakref import WeakValueDictionary

Pairs = tuple[tuple[str, str], ...]


class LabelSet:
    """Compared by identity: made only by `LabelSets`."""

    __slots__ = ("__weakref__", "_projections", "pairs")

    def __init__(self, pairs: Pairs) -> None:
        self.pairs = pairs
        self._projections: dict[tuple[bool, tuple[str, ...]], LabelSet] = {}

    def get(self, name: str) -> str:
        return next((value for key, value in self.pairs if key == name), "")

    def to_dict(self) -> dict[str, str]:
        return dict(self.pairs)


class LabelSets:
    def __init__(self) -> None:
        self._known: WeakValueDictionary[Pairs, LabelSet] = WeakValueDictionary()
        self.empty = self.of({})

    def of(self, labels: Mapping[str, str] | Iterable[tuple[str, str]]) -> LabelSet:
        """Labels with an empty value are none."""
        items = labels.items() if isinstance(labels, Mapping) else labels
        pairs = tuple(sorted((key, value) for key, value in items if value))
        found = self._known.get(pairs)
        if found is None:
            found = self._known[pairs] = LabelSet(pairs)
        return found

    def projected(self, one: LabelSet, names: tuple[str, ...], *, is_without: bool) -> LabelSet:
        """With these labels only, or without them."""
        if is_without and not names:
            return one
        key = (is_without, names)
        found = one._projections.get(key)  # noqa: SLF001 - of this module
        if found is None:
            found = self.of((name, value) for name, value in one.pairs if (name in names) != is_without)
            if found is not one:
                one._projections[key] = found  # noqa: SLF001 - of this module
        return found
