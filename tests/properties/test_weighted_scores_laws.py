"""Scores by weights that a user writes: a resource that no pod asks for neither fails nor counts."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from build.depth import examples
from shoal.engine.asks import Ask
from shoal.engine.cluster import Cluster
from shoal.engine.events import NodeFacts, NodeSeen
from shoal.engine.intake import Intake
from shoal.engine.scores.rule import NodeScore
from shoal.engine.scores.strategies import PerResource, WeightedBinpack
from shoal.engine.window import Window

NAMES = ["cpu", "memory", "nvidia.com/gpu", *(f"example.com/r{at}" for at in range(14))]
AMOUNTS = st.dictionaries(st.sampled_from(NAMES), st.integers(1, 50), max_size=6)
WEIGHTS = st.dictionaries(st.sampled_from(NAMES), st.integers(0, 5), max_size=8)


def points(score: NodeScore, nodes: list[dict[str, int]], asks: list[dict[str, int]]) -> list[list[int]]:
    cluster = Cluster()
    intake = Intake(cluster)
    for at, amounts in enumerate(nodes):
        intake.apply(NodeSeen(NodeFacts(f"n{at}", {"pods": 9, **amounts})))
    found = []
    for each in asks:
        ask = Ask(requests=tuple(sorted((name, amount) for name, amount in each.items() if name != "nvidia.com/gpu")))
        rule = score.compiled(cluster, ask)
        rows = cluster.all_rows()
        found.append([0] * len(rows) if rule is None else rule(Window(cluster, rows)).tolist())
    return found


@given(nodes=st.lists(AMOUNTS, min_size=1, max_size=3), asks=st.lists(AMOUNTS, min_size=1, max_size=3), weights=WEIGHTS)
@settings(max_examples=examples(100), deadline=None)
def test_any_weights_any_ask_any_fleet(
    nodes: list[dict[str, int]], asks: list[dict[str, int]], weights: dict[str, int]
) -> None:
    asked = {name for ask in asks for name in ask}
    known = {name: weight for name, weight in weights.items() if name in asked}
    assert points(WeightedBinpack(tuple(weights.items())), nodes, asks) == points(
        WeightedBinpack(tuple(known.items())), nodes, asks
    )
    most = tuple((name, "MostAllocated", weight) for name, weight in weights.items())
    few = tuple((name, "MostAllocated", weight) for name, weight in known.items())
    assert points(PerResource(most), nodes, asks) == points(PerResource(few), nodes, asks)
