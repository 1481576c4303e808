"""Sets of paths, in the very form in which managedFields are sent.

`{"f:spec": {"f:replicas": {}, "f:selector": {".": {}, "f:a": {}}}}`: an empty node is a path of the set; a node with
children is one only if it has the child `.` as well. Nothing here changes what it is given; parts may be shared between
results, so they must not be changed afterwards.

Rejected: a tree class with members and children. Every write would decode all managers of an object and encode them
again, though most of them stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from shoal.embedded.apiserver.apply.elements import shown

Fields = dict[str, Any]
Path = tuple[str, ...]


def is_member(node: Fields | None) -> bool:
    return node is not None and (not node or "." in node)


def node(member: bool, children: Fields) -> Fields | None:
    """A node of these children (without `.`); None when nothing is left of it."""
    if not member:
        return children or None
    return {".": {}, **children} if children else {}


def whole(paths: Iterable[Iterable[str]]) -> Fields:
    """The set of these paths, each a sequence of field names."""
    made: Fields = {}
    for path in paths:
        keys = [f"f:{name}" for name in path]
        single: Fields = {}
        for key in reversed(keys):
            single = {key: single}
        made = union(made, single)
    return made


def difference(left: Fields, right: Fields, *, with_children: bool = False) -> Fields:
    """The paths of `left` that are not in `right`.

    A path of `right` removes only itself from `left`; with `with_children` it also removes the paths below it.
    """
    if not right:
        return left
    kept: Fields = {}
    for key, below in left.items():
        if key == ".":
            continue
        other = right.get(key)
        if other is None:
            kept[key] = below
            continue
        is_removed = is_member(other)
        if is_removed and with_children:
            continue
        rest = difference(_children(below), other, with_children=with_children)
        left_over = node(is_member(below) and not is_removed, rest)
        if left_over is not None:
            kept[key] = left_over
    return kept


def intersection(left: Fields, right: Fields) -> Fields:
    kept: Fields = {}
    for key, below in left.items():
        other = right.get(key)
        if other is None or key == ".":
            continue
        common = node(is_member(below) and is_member(other), intersection(below, other))
        if common is not None:
            kept[key] = common
    return kept


def union(left: Fields, right: Fields) -> Fields:
    if not left or not right:
        return left or right
    merged = _children(left)
    for key, other in right.items():
        if key == ".":
            continue
        below = merged.get(key)
        if below is None:
            merged[key] = other
        elif below != other:
            both = node(is_member(below) or is_member(other), union(_children(below), _children(other)))
            merged[key] = {} if both is None else both
    return {key: merged[key] for key in sorted(merged)}


def _children(below: Fields) -> Fields:
    return {key: sub for key, sub in below.items() if key != "."}


def has(fields: Fields, path: Path) -> bool:
    found: Fields | None = fields
    for key in path:
        if found is None:
            return False
        found = found.get(key)
    return is_member(found)


def paths(fields: Fields, before: Path = ()) -> Iterator[Path]:
    """All paths in Kubernetes' order: the members of a level, then level by level what is below them."""
    ordered = sorted((key for key in fields if key != "."), key=_rank)
    for key in ordered:
        if is_member(fields[key]):
            yield (*before, key)
    for key in ordered:
        yield from paths(fields[key], (*before, key))


def path_text(path: Path) -> str:
    return "".join(shown(key) for key in path)


_KINDS = {"f": 0, "k": 1, "v": 2, "i": 3}


def _rank(key: str) -> tuple[Any, ...]:
    kind, text = key[0], key[2:]
    if kind == "f":
        return (0, text)
    value = msgspec.json.decode(text)
    if isinstance(value, dict):
        return (1, *((name, *_rank_of(one)) for name, one in value.items()))
    return (_KINDS.get(kind, 4), *_rank_of(value))


def _rank_of(value: Any) -> tuple[Any, ...]:
    """Numbers before texts before truth values; each by its own order."""
    if isinstance(value, bool):
        return (2, value)
    if isinstance(value, str):
        return (1, value)
    return (0, value)
