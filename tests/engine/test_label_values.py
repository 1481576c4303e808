"""Values of labels come and go with their nodes: they are forgotten, and whoever goes by their numbers notices."""

from __future__ import annotations

import numpy as np
import pytest

from build.company import apart, called
from build.nodes import NodeBuilder, node
from build.passing import pass_through
from build.pods import ask
from build.scenario import Scenario
from shoal.engine.cluster import GPU_MODEL_LABEL
from shoal.engine.fragmentation import Fragmentation
from shoal.engine.pod_mix import PodClass, PodMix
from shoal.engine.power import NodePower
from shoal.engine.scores.worth import LeastLoss
from shoal.engine.topology.tree import HOSTNAME

MANY = 3000
MIX = PodMix.of([PodClass(1_000, 500, 1)] * 3 + [PodClass(1_000, 1000, 2, "T4"), PodClass(1_000, 1000, 1, "A100|T4")])


def host(name: str) -> NodeBuilder:
    return node(name).label(HOSTNAME, name)


def values(world: Scenario, key: str = HOSTNAME) -> list[str]:
    return world.cluster.labels.column(key).values


def renumbered(*nodes: NodeBuilder) -> Scenario:
    """Nodes whose values had other numbers when they came."""
    world = Scenario(host("first").label("zone", "early"), *nodes, least_values=1).lose("first")
    column = world.cluster.labels.column(HOSTNAME)
    before = column.code("b")
    pass_through(world, "late")
    assert column.code("b") != before
    return world


def test_values_that_no_node_has_any_more_are_forgotten() -> None:
    world = Scenario(host("a"), host("b"))
    for index in range(MANY):
        world.see(host(f"n{index}")).lose(f"n{index}")
    assert len(values(world)) < MANY // 2
    labels = world.cluster.labels
    assert [labels.get(world.cluster.row_of[name], HOSTNAME) for name in "ab"] == ["a", "b"]


def test_a_fleet_that_shrank_forgets_what_it_had() -> None:
    world = Scenario(*(host(f"n{index}") for index in range(MANY)))
    assert len(values(world)) == MANY + 1
    for index in range(1, MANY):
        world.lose(f"n{index}")
    assert len(values(world)) < MANY // 2
    assert world.cluster.labels.of(world.cluster.row_of["n0"]) == {HOSTNAME: "n0"}


def test_values_in_use_keep_their_numbers() -> None:
    world = Scenario(*(host(f"n{index}") for index in range(MANY)))
    column = world.cluster.labels.column(HOSTNAME)
    assert (column.epoch, column.code("n7")) == (0, 8)


def test_what_is_counted_by_domain_stays_as_short() -> None:
    world = Scenario(host("a"), host("b")).bind("web", ask(), "b", who=called(app="web"))
    wanted = ask().near(apart(HOSTNAME, app="web"))
    for index in range(MANY):
        world.see(host(f"n{index}")).lose(f"n{index}")
    assert world.possible(wanted, called()) == {"a"}
    counts = [
        len(domain_count.by_domain)
        for zones in world.cluster.counts._zones.values()
        for domain_count in zones.domain_counts
    ]
    assert counts
    assert max(counts) < MANY // 2


def test_counts_follow_their_nodes_to_new_numbers() -> None:
    world = Scenario(host("a"), host("b"), host("c"), least_values=1).bind("web", ask(), "b", who=called(app="web"))
    wanted = ask().near(apart(HOSTNAME, app="web"))
    column = world.cluster.labels.column(HOSTNAME)
    for turn in range(3):
        assert world.possible(wanted, called()) == {"a", "c"}
        before = column.code("c")
        pass_through(world.lose("a"), f"turn{turn}")
        assert column.code("c") != before
        assert world.possible(wanted, called()) == {"c"}
        world.see(host("a"))
        pass_through(world.lose("c"), f"more{turn}")
        pass_through(world.see(host("c")), f"most{turn}")
    assert world.go("web").bind("web", ask(), "c", who=called(app="web")).possible(wanted, called()) == {"a", "b"}


SELECTED = {
    "one of": (ask().select("zone", "In", "x", "early"), {"a"}),
    "none of": (ask().select("zone", "NotIn", "x", "early"), {"b", "c", "bare"}),
    "there": (ask().select("zone", "Exists"), {"a", "b", "c"}),
    "not there": (ask().select("zone", "DoesNotExist"), {"bare"}),
    "greater": (ask().select("zone", "Gt", "6"), {"c"}),
    "empty": (ask().select("zone", "In", ""), {"b"}),
}


@pytest.mark.parametrize(("wanted", "nodes"), SELECTED.values(), ids=SELECTED)
def test_selectors_find_the_values_under_their_new_numbers(wanted: object, nodes: set[str]) -> None:
    zones = {"a": "x", "b": "", "c": "7"}
    world = renumbered(*(host(name).label("zone", zone) for name, zone in zones.items()), host("bare"))
    assert world.fitting(wanted) == nodes  # type: ignore[arg-type]


def test_trees_are_built_of_the_new_numbers() -> None:
    world = renumbered(*(host(name).label("zone", zone) for name, zone in (("a", "x"), ("b", "y"), ("c", "x"))))
    tree = world.placement.trees.over(("zone", HOSTNAME))
    for turn in range(3):
        pass_through(world, f"turn{turn}")
        assert world.placement.trees.over(("zone", HOSTNAME)) is tree
        names = {tree.name(level, code) for level in (0, 1) for code in range(len(tree.first_rank[level]))}
        assert names == {("x",), ("y",), ("x", "a"), ("y", "b"), ("x", "c")}


def models_changed(world: Scenario, late: NodeBuilder) -> None:
    """Others pass through until there are as many models as before, numbered anew: length tells nothing."""
    column = world.cluster.labels.column(GPU_MODEL_LABEL)
    epoch, before = column.epoch, list(column.values)
    world.see(late)
    for passed in range(20):
        world.see(node("x").gpus(1).model(f"X{epoch}-{passed}")).lose("x")
        if column.epoch > epoch and len(column.values) == len(before):
            break
    assert column.epoch > epoch
    assert len(column.values) == len(before)
    assert column.values != before


def test_what_is_known_of_models_follows_their_numbers() -> None:
    """Fragmentation, watts and worth: each as if it had never seen the old numbers."""
    world = Scenario(least_values=1)
    for index, model in enumerate(("T4", "A100", "V100", "", "L40")):
        world.see(node(f"n{index}").gpus(2).model(model)).bind(f"p{index}", ask().share(300), f"n{index}", (0,))
    world.see(node("x").gpus(1).model("P100")).lose("x")
    cluster, rows = world.cluster, np.arange(4)
    typical = MIX.popular(1.0)
    fragmentation, power, loss = Fragmentation(cluster, typical), NodePower(cluster), LeastLoss(cluster, MIX)
    for at, model in ((0, "L4"), (1, "T4"), (2, "L4"), (0, "A100")):
        for _ in range(2):
            fresh = Fragmentation(cluster, typical)
            for row in rows.tolist():
                assert fragmentation.of_one(row, 9_000, [700, 0]) == fresh.of_one(row, 9_000, [700, 0])
            assert fragmentation.of_rows(rows).tolist() == fresh.of_rows(rows).tolist()
            assert power.of_rows(rows).tolist() == NodePower(cluster).of_rows(rows).tolist()
            anew = LeastLoss(cluster, MIX)
            assert loss.renewed()
            assert anew.renewed()
            for wanted in (ask().share(500), ask().gpus(1), ask().gpus(2)):
                assert world.points(loss, wanted) == world.points(anew, wanted)
            models_changed(world, node(f"n{at}").gpus(2).model(model))
