"""The short notation of schemas: what each of its words means, and how it complains."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.embedded.apiserver.foreign.definitions import definitions_of
from shoal.embedded.apiserver.foreign.notation import schema
from shoal.embedded.apiserver.foreign.tables import read_table
from shoal.units.errors import UserError, Where

HERE = Where("kinds.yaml", obj="Thing", path="spec")
CASES: list[tuple[str, Any, dict[str, Any]]] = [
    ("a plain type", "int", {"type": "integer", "format": "int64"}),
    ("one of some words", "A|B", {"type": "string", "enum": ["A", "B"]}),
    ("a default among words", "A|B = B", {"type": "string", "enum": ["A", "B"], "default": "B"}),
    ("a default that looks like a number", "string = 10", {"type": "string", "default": "10"}),
    ("an empty default", 'string = ""', {"type": "string", "default": ""}),
    ("a least value and a default", "int >= 1 = 3", {"type": "integer", "format": "int64", "minimum": 1, "default": 3}),
    ("a switch that is off", "bool = false", {"type": "boolean", "default": False}),
    ("a list", ["string"], {"type": "array", "items": {"type": "string"}}),
    (
        "a list whose items have a key",
        [{"name@": "string", "value": "string"}],
        {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"name": {"type": "string"}, "value": {"type": "string"}},
                "required": ["name"],
            },
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
        },
    ),
    ("a map", {"*": "string"}, {"type": "object", "additionalProperties": {"type": "string"}}),
    (
        "required fields and others that are kept",
        {"a!": "string", "...": "any"},
        {
            "type": "object",
            "properties": {"a": {"type": "string"}},
            "required": ["a"],
            "x-kubernetes-preserve-unknown-fields": True,
        },
    ),
    (
        "an object that is always there",
        {"=": {}, "a": "A|B = A"},
        {
            "type": "object",
            "properties": {"a": {"type": "string", "enum": ["A", "B"], "default": "A"}},
            "default": {},
        },
    ),
]


@pytest.mark.parametrize(("written", "meant"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_a_notation_means_its_schema(written: Any, meant: dict[str, Any]) -> None:
    assert schema(written, HERE) == meant


@pytest.mark.parametrize(
    ("written", "complaint"),
    [
        ("strnig", "'strnig' is not a type"),
        ({"names": ["string", "int"]}, "a list has the type of its items and nothing else"),
        ({"deep": {"deeper": 3}}, "3 is not a type"),
    ],
)
def test_what_cannot_be_read_is_complained_of_with_its_place(written: Any, complaint: str) -> None:
    with pytest.raises(UserError, match=complaint) as caught:
        schema(written, HERE)
    assert str(caught.value.where).startswith("kinds.yaml: Thing: spec")


def test_a_table_with_an_unknown_word_is_refused_with_its_file() -> None:
    with pytest.raises(UserError, match="plurals") as caught:
        read_table("mine.yaml", "{project: p, group: g, kinds: [{kind: A, plurals: as, versions: [v1]}]}")
    assert caught.value.where.file == "mine.yaml"


def test_a_version_may_have_a_shape_and_a_warning_of_its_own() -> None:
    text = """
    {project: p, group: example.com, kinds: [{kind: A, plural: as, spec: {new: int}, has_status: false, versions:
      [v2, {name: v1, spec: {old: string}, warns: use v2}]}]}
    """
    first, second = next(definitions_of("mine.yaml", read_table("mine.yaml", text)))["spec"]["versions"]
    assert (first["storage"], second["storage"]) == (True, False)
    assert (set(_spec(first)), set(_spec(second))) == ({"new"}, {"old"})
    assert (second["deprecated"], second["deprecationWarning"]) == (True, "use v2")


def _spec(version: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    return found
