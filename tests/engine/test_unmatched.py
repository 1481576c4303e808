"""Conditions that no node can meet, and which label was meant."""

from __future__ import annotations

import pytest

from build.nodes import node
from build.pods import AskBuilder, ask, term, where
from build.scenario import Scenario
from shoal.engine.unmatched import Unmatched, unmatched

FLEET = (
    node("a").gpus(8).label("model", "NVIDIA-A100-SXM4-80GB").label("zone", "east-1"),
    node("b").gpus(8).label("model", "NVIDIA-H100-80GB-HBM3").label("zone", "east-2"),
)

CONDITIONS: dict[str, tuple[AskBuilder, tuple[Unmatched, ...]]] = {
    "a value with its prefix forgotten": (
        ask().select("model", "In", "A100-SXM4-80GB"),
        (Unmatched("model", ("A100-SXM4-80GB",), True, ("NVIDIA-A100-SXM4-80GB", "NVIDIA-H100-80GB-HBM3")[:1]),),
    ),
    "a key misspelled": (
        ask().select("zoen", "In", "east-1"),
        (Unmatched("zoen", ("east-1",), False, ("zone",)),),
    ),
    "too short to be like anything": (ask().select("o", "Exists"), (Unmatched("o", (), False),)),
    "nothing like it": (ask().select("disk", "Exists"), (Unmatched("disk", (), False),)),
    "one of the values is there": (ask().select("zone", "In", "east-1", "west"), ()),
    "two conditions that no node meets at once": (
        ask().select("model", "In", "NVIDIA-A100-SXM4-80GB").select("zone", "In", "east-2"),
        (),
    ),
    "a condition that asks for absence": (ask().select("disk", "DoesNotExist").select("zone", "NotIn", "x"), ()),
    "one alternative can be met": (
        ask().either(term(where("zone", "In", "mars")), term(where("zone", "In", "east-1"))),
        (),
    ),
    "no alternative can be met": (
        ask().either(term(where("zone", "In", "mars")), term(where("disk", "Exists"))),
        (Unmatched("zone", ("mars",), True), Unmatched("disk", (), False)),
    ),
}


@pytest.mark.parametrize(("wanted", "conditions"), CONDITIONS.values(), ids=CONDITIONS)
def test_conditions_without_a_node(wanted: AskBuilder, conditions: tuple[Unmatched, ...]) -> None:
    cluster = Scenario(*FLEET).cluster
    assert unmatched(cluster, wanted.made().nodes) == conditions


def test_labels_of_nodes_that_are_gone_are_not_offered() -> None:
    world = Scenario(*FLEET).lose("a")
    (condition,) = unmatched(world.cluster, ask().select("zone", "In", "east-1").made().nodes)
    assert condition.near == ("east-2",)
