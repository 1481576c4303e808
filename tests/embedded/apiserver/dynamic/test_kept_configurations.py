"""What configurations were compiled to is kept while they say the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shoal.embedded.apiserver.dynamic.kept import Kept

Obj = dict[str, Any]


class Making:
    def __init__(self) -> None:
        self.made: list[str] = []
        self.kept = Kept(self)

    def __call__(self, written: Mapping[str, Any]) -> str:
        self.made.append(written["metadata"]["name"])
        return f"{written['metadata']['name']}: {written['spec']}"


def configuration(name: str, spec: str = "", **more: Any) -> Obj:
    return {"metadata": {"name": name, "generation": 1}, "spec": spec, **more}


def test_only_what_says_something_else_is_made_again() -> None:
    making = Making()
    assert making.kept.of([configuration("b", "1"), configuration("a", "1")]) == ["a: 1", "b: 1"]
    assert making.kept.of([configuration("b", "2"), configuration("a", "1", status={"x": 1})]) == ["a: 1", "b: 2"]
    assert making.made == ["a", "b", "b"]


def test_who_was_away_is_made_again() -> None:
    making = Making()
    making.kept.of([configuration("a")])
    assert making.kept.of([]) == []
    making.kept.of([configuration("a")])
    assert making.made == ["a", "a"]
