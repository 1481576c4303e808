"""An applied configuration laid over the live object: what it sets wins, nothing goes.

Maps and keyed lists merge entry by entry, everything else is taken whole from the configuration. Items that both have
are in the configuration's order, items that only the live list has keep their place before the next common one. The
result shares nothing with what it was made of.
"""

from __future__ import annotations

from typing import Any

from shoal.embedded.apiserver.apply.elements import ABSENT, by_key, child_of, is_list, is_map, item_key
from shoal.embedded.apiserver.patches.copying import copied
from shoal.embedded.apiserver.schema.node import ANY, Schema


def merged(live: Any, config: Any, schema: Schema) -> Any:
    if config is ABSENT:
        return copied(live)
    if live is ABSENT:
        return copied(config)
    if config is None and live and (is_map(schema, live) or is_list(schema, live)):
        return copied(live)
    if is_map(schema, config) and is_map(schema, live):
        return _merged_maps(live, config, schema)
    if is_list(schema, config) and is_list(schema, live):
        return _merged_lists(live, config, schema)
    return copied(config)


def _merged_maps(live: dict[str, Any], config: dict[str, Any], schema: Schema) -> dict[str, Any]:
    found = {key: merged(value, config.get(key, ABSENT), child_of(schema, key)) for key, value in live.items()}
    for key, value in config.items():
        if key not in live:
            found[key] = copied(value)
    return found


def _merged_lists(live: list[Any], config: list[Any], schema: Schema) -> list[Any]:
    items = schema.items or ANY
    wanted = {key: group[-1] for key, group in by_key(schema, config).items()}
    there = by_key(schema, live)

    def joined(key: str) -> Any:
        group = there.get(key, [])
        return merged(group[0] if len(group) == 1 else ABSENT, wanted[key], items)

    made: list[Any] = []
    left = [(item_key(schema, item), item) for item in live]
    right = list(wanted)
    shared = [key for key in right if key in there]
    placed: set[str] = set()
    i = j = 0
    while i < len(left) or j < len(right):
        if i < len(left):
            key, item = left[i]
            if key not in wanted:
                made.append(copied(item))
                i += 1
                continue
            if key in placed or (shared and shared[0] != key):
                i += 1
                continue
        if j == len(right):
            i += 1
            continue
        key = right[j]
        j += 1
        made.append(joined(key))
        placed.add(key)
        if shared and shared[0] == key:
            shared.pop(0)
    return made
