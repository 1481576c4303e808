"""The order of a list after a strategic merge.

Items that the patch (or its order directive) names stand in the order of the patch; items that only the server has keep
their order and go before the first named item that they stood before. New items so come first, as in Kubernetes.
"""

from __future__ import annotations

from typing import Any


def key_of(item: Any, key: str) -> Any:
    return item.get(key) if key and isinstance(item, dict) else item


def split_by_presence(items: list[Any], named: list[Any], key: str) -> tuple[list[Any], list[Any]]:
    """The items that `named` has, and the others."""
    names = [key_of(one, key) for one in named]
    inside = [one for one in items if key_of(one, key) in names]
    return inside, [one for one in items if key_of(one, key) not in names]


def in_order(
    named: list[Any], others: list[Any], patch_order: list[Any], server_order: list[Any], key: str
) -> list[Any]:
    ahead = _sorted(named, patch_order, key)
    rest = _sorted(others, server_order, key)
    places = [key_of(one, key) for one in server_order]
    merged: list[Any] = []
    while ahead and rest:
        mine, theirs = key_of(rest[0], key), key_of(ahead[0], key)
        is_before = mine in places and theirs in places and places.index(mine) < places.index(theirs)
        merged.append((rest if is_before else ahead).pop(0))
    return [*merged, *ahead, *rest]


def _sorted(items: list[Any], order: list[Any], key: str) -> list[Any]:
    places = [key_of(one, key) for one in order]
    return sorted(items, key=lambda one: places.index(key_of(one, key)) if key_of(one, key) in places else len(places))
