"""Columns that custom resources ask for: paths, types and what is shown where a path leads nowhere."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.api.jsonpath import PathError, find, steps
from shoal.embedded.apiserver.resource import Column, Resource
from shoal.embedded.apiserver.tables.table import table

NOW_S = 1795000000  # 2026-11-18T11:06:40Z
APE: dict[str, Any] = {
    "metadata": {"name": "kong", "creationTimestamp": "2026-11-16T11:06:40Z", "labels": {"a.b/c": "d"}},
    "spec": {"age": 7, "weight": 1.5, "tame": False, "tags": ["x", "y"], "born": "2026-11-18T11:00:40Z", "odd.key": 1},
    "status": {
        "conditions": [
            {"type": "Fed", "status": "False", "count": 3},
            {"type": "Ready", "status": "True", "count": 10},
        ]
    },
}


def cell(kind: str, path: str) -> Any:
    columns = (Column("Shown", kind, path),)
    resource = Resource("example.com", "v1", "apes", "Ape", True, is_custom=True, columns=columns)
    name, found = table(resource, [APE], now_s=NOW_S)["rows"][0]["cells"]
    assert name == "kong"
    return found


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (".spec.age", [7]),
        ("{.spec.age}", [7]),
        ("spec.age", [7]),
        ("$.spec.age", [7]),
        (".spec.missing.deeper", []),
        (".spec['odd.key']", [1]),
        (r".spec.odd\.key", [1]),
        (r".metadata.labels.a\.b/c", ["d"]),
        (".spec.tags[0]", ["x"]),
        (".spec.tags[-1]", ["y"]),
        (".spec.tags[9]", []),
        (".spec.tags[*]", ["x", "y"]),
        (".spec.tags[0:1]", ["x"]),
        (".spec.tags[::2]", ["x"]),
        ('.status.conditions[?(@.type=="Ready")].status', ["True"]),
        (".status.conditions[?(@.type == 'Fed')].count", [3]),
        (".status.conditions[?(@.count>5)].type", ["Ready"]),
        (".status.conditions[?(@.count!=3)].type", ["Ready"]),
        (".status.conditions[?(@.count=='3')].type", []),
        (".status.conditions[?(@.absent)].type", []),
        (".status.conditions[?(@.count)].type", ["Fed", "Ready"]),
        (".status.conditions[*].type", ["Fed", "Ready"]),
        ('.spec[?(@.x=="y")]', []),
        ("..count", [3, 10]),
    ],
)
def test_a_path_leads_to_values(path: str, expected: list[Any]) -> None:
    assert find(path, APE) == expected


@pytest.mark.parametrize("path", [".spec[", ".spec[x]", ".a[?(@.b==c d)]", ".a[?b]"])
def test_a_path_that_cannot_be_read_is_said_to_be_so(path: str) -> None:
    with pytest.raises(PathError):
        steps(path)


@pytest.mark.parametrize(
    ("kind", "path", "expected"),
    [
        ("string", ".spec.age", "7"),
        ("string", ".spec.tame", "false"),
        ("string", ".spec.tags", '["x","y"]'),
        ("string", ".metadata.name", "kong"),
        ("string", ".spec.missing", None),
        ("integer", ".spec.age", 7),
        ("integer", ".spec.weight", 1),
        ("integer", ".metadata.name", None),
        ("integer", ".spec.tame", None),
        ("number", ".spec.weight", 1.5),
        ("boolean", ".spec.tame", False),
        ("boolean", ".spec.age", None),
        ("date", ".spec.born", "6m"),
        ("date", ".metadata.name", "<invalid>"),
        ("date", ".spec.age", None),
        ("string", ".spec[", None),
        ("string", ".status.conditions[*].type", "Fed"),
    ],
)
def test_a_cell_is_of_its_columns_type_or_empty(kind: str, path: str, expected: Any) -> None:
    assert cell(kind, path) == expected


def test_a_resource_without_columns_shows_its_age() -> None:
    resource = Resource("example.com", "v1", "apes", "Ape", True, is_custom=True)
    found = table(resource, [APE], now_s=NOW_S)
    assert [(head["name"], head["type"]) for head in found["columnDefinitions"]] == [
        ("Name", "string"),
        ("Age", "date"),
    ]
    assert found["rows"][0]["cells"] == ["kong", "2d"]


def test_columns_keep_what_their_definition_says_of_them() -> None:
    columns = (Column("Weight", "number", ".spec.weight", "double", "In tons.", 1),)
    resource = Resource("example.com", "v1", "apes", "Ape", True, is_custom=True, columns=columns)
    assert table(resource, [], now_s=NOW_S)["columnDefinitions"][1] == {
        "name": "Weight",
        "type": "number",
        "format": "double",
        "description": "In tons.",
        "priority": 1,
    }
