"""Answers in YAML: the text of a single dump, made while others are served."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import msgspec
import pytest
import yaml

from shoal.embedded.apiserver.large_work import LargeWork, Turn
from shoal.embedded.apiserver.server.yaml_answers import as_yaml, as_yaml_slowly

POD = {"kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "args": ["a\nb\n", "", "é"]}]}}
LONG = "some words that are folded where a line is full, " * 20


@pytest.mark.parametrize(
    "obj",
    [
        {},
        {"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": []},
        {"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": [POD, {}, POD]},
        {"kind": "Table", "columnDefinitions": [], "rows": [{"cells": ["a", 1, None], "object": POD}]},
        {"items": [{"data": {"a": LONG, "b": f"\n  {LONG}\n\n x\n", "c": f"\t{LONG}"}}]},
        {"items": [{"data": {"a": "x" * 300_000}}, {"data": {"a": "y"}}]},
        {"items": "no list", "rows": {"a": 1}, "data": {"a": "x" * 300_000}},
    ],
)
async def test_made_in_pieces_it_is_the_same_text(obj: dict[str, Any]) -> None:
    data = msgspec.json.encode(obj)
    made = await as_yaml_slowly(data, partial(LargeWork().run, Turn("u")))
    assert made == as_yaml(data)
    assert yaml.safe_load(made) == obj


async def served_meanwhile(obj: dict[str, Any]) -> int:
    """How often others got their turn while an object was made YAML."""
    task = asyncio.create_task(as_yaml_slowly(msgspec.json.encode(obj), partial(LargeWork().run, Turn("u"))))
    turns = 0
    while not task.done():
        turns += 1
        await asyncio.sleep(0)
    return turns


async def test_others_are_served_between_the_items_of_a_list() -> None:
    assert await served_meanwhile({"items": [POD] * 200}) >= 200


async def test_others_are_served_while_a_large_object_is_dumped() -> None:
    assert await served_meanwhile({"data": {f"k{number}": "v" for number in range(20_000)}}) > 10
