"""Indexes the objects of one kind by a value such as owner or node, and follows their changes.

An object that the function cannot read has no entry; other objects are not affected.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from shoal.client.item import Item, Key

_log = logging.getLogger("shoal.store")
Values = Callable[[Item], Iterable[str]]


class Index:
    """Objects by a value such as the owner's uid or the node's name."""

    def __init__(self, values: Values) -> None:
        self._values = values
        self._by_value: dict[str, dict[Key, Item]] = {}
        self._of: dict[Key, tuple[str, ...]] = {}

    def __getitem__(self, value: str) -> list[Item]:
        return list(self._by_value.get(value, {}).values())

    def count(self, value: str) -> int:
        return len(self._by_value.get(value, ()))

    def values(self) -> Iterable[str]:
        return self._by_value.keys()

    def put(self, item: Item) -> None:
        values = self._values_of(item)
        before = self._of.get(item.key, ())
        if values != before:
            self._drop(item.key, before)
        for value in values:
            self._by_value.setdefault(value, {})[item.key] = item
        if values:
            self._of[item.key] = values
        else:
            self._of.pop(item.key, None)

    def _values_of(self, item: Item) -> tuple[str, ...]:
        try:
            return tuple(self._values(item))
        except Exception:  # noqa: BLE001 - an object that the function cannot read has no entry
            _log.exception("an index cannot read %s", "/".join(item.key))
            return ()

    def drop(self, key: Key) -> None:
        self._drop(key, self._of.pop(key, ()))

    def _drop(self, key: Key, values: Iterable[str]) -> None:
        for value in values:
            items = self._by_value[value]
            items.pop(key, None)
            if not items:
                del self._by_value[value]
