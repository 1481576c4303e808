"""The scale of custom objects whose paths lead to what is no number, no text or no map: as kube-apiserver answers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from build.in_process import MERGE, InProcess, in_process

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = "/apis/ex.io/v1/namespaces/default/widgets"
SCALE = {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size", "labelSelectorPath": ".status.sel"}
MAP = "map[string]interface{}"
TWO = {"spec": {"replicas": 2}}


def definition(**subresources: Any) -> dict[str, Any]:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.ex.io"},
        "spec": {
            "group": "ex.io",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{**version, "subresources": subresources}],
        },
    }


def widget(**content: Any) -> dict[str, Any]:
    return {"apiVersion": "ex.io/v1", "kind": "Widget", "metadata": {"name": "w"}, **content}


@asynccontextmanager
async def with_widget(folder: Path, *, scaled_later: bool, **content: Any) -> AsyncIterator[InProcess]:
    """`scaled_later`: the object is older than the subresource, whose rules it breaks."""
    async with in_process(folder) as door:
        assert (await door.ask("POST", CRDS, definition(**({} if scaled_later else {"scale": SCALE})))).code == 201
        assert (await door.ask("POST", WIDGETS, widget(**content))).code == 201
        if scaled_later:
            version = definition(scale=SCALE)["spec"]["versions"]
            changed = await door.ask("PATCH", f"{CRDS}/widgets.ex.io", {"spec": {"versions": version}}, MERGE)
            assert changed.code == 200
        yield door


async def test_an_object_that_does_not_say_its_replicas_has_no_scale_until_it_is_scaled(tmp_path: Path) -> None:
    async with with_widget(tmp_path, scaled_later=False) as door:
        answer = await door.ask("GET", f"{WIDGETS}/w/scale")
        told = 'Internal error occurred: the spec replicas field ".spec.size" does not exist'
        assert (answer.code, answer.body["reason"], answer.body["message"]) == (500, "InternalError", told)
        assert (await door.ask("PATCH", f"{WIDGETS}/w/scale", TWO, MERGE)).code == 200
        assert (await door.ask("GET", f"{WIDGETS}/w/scale")).body["spec"] == {"replicas": 2}


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ({"spec": "x"}, f".spec.size accessor error: x is of the type string, expected {MAP}"),
        ({"spec": {"size": "3"}}, ".spec.size accessor error: 3 is of the type string, expected int64"),
        (
            {"spec": {"size": 1}, "status": {"sel": 5}},
            ".status.sel accessor error: 5 is of the type int64, expected string",
        ),
    ],
)
async def test_what_the_paths_cannot_lead_to_is_told_on_reads_and_on_writes(
    tmp_path: Path, content: dict[str, Any], told: str
) -> None:
    async with with_widget(tmp_path, scaled_later=True, **content) as door:
        for answer in (
            await door.ask("GET", f"{WIDGETS}/w/scale"),
            await door.ask("PATCH", f"{WIDGETS}/w/scale", TWO, MERGE),
        ):
            assert (answer.code, answer.body["message"]) == (500, told)


async def test_replicas_cannot_be_set_below_what_is_no_map(tmp_path: Path) -> None:
    async with with_widget(tmp_path, scaled_later=False, spec=None) as door:
        answer = await door.ask("PATCH", f"{WIDGETS}/w/scale", TWO, MERGE)
        assert (answer.code, answer.body["message"]) == (500, f"value cannot be set because .spec is not a {MAP}")
