"""Sets of paths against sets of paths kept the plain way."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from build.depth import examples
from shoal.embedded.apiserver.apply.fieldset import (
    Fields,
    Path,
    difference,
    has,
    intersection,
    path_text,
    paths,
    union,
)

KEYS = st.sampled_from(["f:a", "f:b", 'k:{"n":"x"}', 'v:"s"'])
PATHS = st.lists(st.lists(KEYS, min_size=1, max_size=3).map(tuple), max_size=6).map(set)


def made(members: set[Path]) -> Fields:
    root: Fields = {}
    for path in sorted(members, key=len, reverse=True):
        at: dict[str, Any] = root
        for key in path[:-1]:
            at = at.setdefault(key, {})
        if path[-1] in at:
            at[path[-1]]["."] = {}
        else:
            at[path[-1]] = {}
    return root


def seen(fields: Fields) -> set[Path]:
    return set(paths(fields))


@settings(max_examples=examples(120))
@given(PATHS, PATHS)
def test_operations_are_those_of_sets(left: set[Path], right: set[Path]) -> None:
    one, other = made(left), made(right)
    assert seen(one) == left
    assert seen(union(one, other)) == left | right
    assert seen(difference(one, other)) == left - right
    assert seen(intersection(one, other)) == left & right
    below = {path for path in left if any(path[: len(cut)] == cut for cut in right)}
    assert seen(difference(one, other, with_children=True)) == left - below
    assert (one, other) == (made(left), made(right))


@settings(max_examples=examples(80))
@given(PATHS, PATHS)
def test_nothing_empty_is_left_behind(left: set[Path], right: set[Path]) -> None:
    def no_husks(fields: Fields, members: set[Path], before: Path = ()) -> bool:
        for key, below in fields.items():
            path = (*before, key)
            if key != "." and not ((below or path in members) and no_husks(below, members, path)):
                return False
        return True

    assert no_husks(difference(made(left), made(right)), left - right)
    assert no_husks(intersection(made(left), made(right)), left & right)


@given(PATHS)
def test_a_set_has_its_paths(members: set[Path]) -> None:
    assert all(has(made(members), path) for path in members)
    assert not has(made(members), ("f:zzz",))


def test_paths_come_members_first_and_items_by_value() -> None:
    fields = {
        "f:b": {"f:z": {}},
        "f:c": {},
        "f:a": {
            'k:{"port":443}': {".": {}, "f:x": {}},
            'k:{"port":80}': {},
            'v:"s"': {},
            "v:3": {},
            "i:2": {},
        },
    }
    assert [path_text(path) for path in paths(fields)] == [
        ".c",
        ".a[port=80]",
        ".a[port=443]",
        ".a[=3]",
        '.a[="s"]',
        ".a[2]",
        ".a[port=443].x",
        ".b.z",
    ]
