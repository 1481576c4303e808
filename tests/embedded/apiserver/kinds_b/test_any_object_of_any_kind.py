"""Whatever passes the decoder, a kind answers with complaints and no exception; and defaults settle at once."""

from __future__ import annotations

import copy
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from build.depth import examples
from shoal.embedded.apiserver.builtin import SERVED
from shoal.embedded.apiserver.kinds.other_table import OTHER_STRATEGIES
from shoal.embedded.apiserver.schema.kubernetes import Shapes
from shoal.embedded.apiserver.schema.node import Schema

Obj = dict[str, Any]
SHAPES = Shapes("1.36")
KINDS = {(group, row.plural): (group, version, row.kind) for group, version, rows in SERVED for row in rows}
# Expressions have tests of their own, and names are checked by the operations.
TEXTS = (
    "",
    "a",
    "a.b.example.com/c",
    "None",
    "10.96.0.7",
    "10.0.0.0/8",
    "True",
    "ClusterIP",
    "Fail",
    "Exists",
    "In",
    "*",
)
NUMBERS = (-1, 0, 1, 80, 70000)
DEEPEST = 9


def random_value(shape: Schema, dice: random.Random, depth: int) -> Any:
    if shape.is_quantity:
        return dice.choice(("1", "-1", "500m", "1Gi"))
    if shape.is_int_or_string:
        return dice.choice((1, "a", "50%"))
    if shape.is_time:
        return "2026-11-21T10:00:00Z"
    match shape.type:
        case "object" if shape.properties:
            return {
                key: random_value(field, dice, depth + 1)
                for key, field in shape.properties.items()
                if depth < DEEPEST and dice.random() < (0.7 if depth < 3 else 0.5)
            }
        case "object" if shape.values is not None:
            return {
                dice.choice(TEXTS[1:]): random_value(shape.values, dice, depth + 1) for _ in range(dice.randrange(3))
            }
        case "array":
            assert shape.items is not None
            return [random_value(shape.items, dice, depth + 1) for _ in range(dice.randrange(3))]
        case "string":
            return dice.choice(("eA==", "")) if shape.number_format == "byte" else dice.choice(TEXTS)
        case "integer" | "number":
            return dice.choice(NUMBERS)
        case "boolean":
            return dice.random() < 0.5
    return {}


def random_object(home: tuple[str, str], dice: random.Random) -> Obj:
    group, version, kind = KINDS[home]
    made: Obj = random_value(SHAPES.of(group, version, kind), dice, 0)
    made["apiVersion"], made["kind"] = (f"{group}/{version}" if group else version), kind
    made["metadata"] = {"name": "one", "namespace": "default", "creationTimestamp": "2026-11-21T10:00:00Z"}
    return made


@pytest.mark.parametrize("home", sorted(OTHER_STRATEGIES))
def test_an_object_with_nothing_in_it_is_judged(home: tuple[str, str]) -> None:
    strategy = OTHER_STRATEGIES[home]
    obj = random_object(home, random.Random(0))
    bare = {key: obj[key] for key in ("apiVersion", "kind", "metadata")}
    strategy.default(bare)
    strategy.prepare_create(bare)
    strategy.validate(bare)
    assert {*strategy.selectable()} <= {*strategy.fields(bare)}


@pytest.mark.parametrize("home", sorted({*OTHER_STRATEGIES} - {("apiextensions.k8s.io", "customresourcedefinitions")}))
@settings(max_examples=examples(15), deadline=None)
@given(st.integers(0, 10_000))
def test_any_object_is_judged_and_any_change_of_it(home: tuple[str, str], seed: int) -> None:
    strategy, dice = OTHER_STRATEGIES[home], random.Random(seed)
    old, new = random_object(home, dice), random_object(home, dice)
    for obj in (old, new):
        strategy.default(obj)
        again = copy.deepcopy(obj)
        strategy.default(again)
        assert again == obj
    strategy.prepare_create(old)
    created = strategy.validate(old)
    changed, reported = copy.deepcopy(new), copy.deepcopy(new)
    strategy.prepare_update(changed, old)
    found = strategy.validate_update(changed, old)
    strategy.prepare_status(reported, old)
    found += strategy.validate_status(reported, old)
    assert all(isinstance(error.text(), str) for error in created + found)
    strategy.fields(old)
    strategy.generation_changed(changed, old)
    strategy.warnings(changed, old)
