"""Quota by deserved amounts, guarantees and capabilities, in trees of up to five levels."""

from __future__ import annotations

from typing import Any

import pytest

from build.volcano_worlds import World, amounts, plugin, queue
from shoal.engine.queues.disciplines.volcano.plugins.capacity import real_capabilities
from shoal.engine.queues.disciplines.volcano.queue_forest import QueueForest

TREE = (
    plugin("priority"),
    plugin("gang"),
    plugin("conformance"),
    plugin("capacity", also=("Hierarchy",)),
    plugin("nodeorder"),
)
FLAT = (*TREE[:3], plugin("capacity"), TREE[4])
ASKED = {"cpu": 1}


def world(*queues: Any, cores: int = 8, plugins: Any = TREE, **more: Any) -> World:
    return World(list(queues), {"n1": {"cpu": cores, **more}}, (plugins,))


def limits(*queues: Any, total: dict[str, float], is_tree: bool) -> dict[str, dict[str, float]]:
    found = real_capabilities(QueueForest(queues), amounts(total), is_tree=is_tree)
    return {name: dict(limit) for name, limit in found.items()}


def test_beside_each_other_queues_divide_the_cluster_less_the_guarantees_of_others() -> None:
    found = limits(queue("a", guarantee={"cpu": 2}), queue("b", capability={"cpu": 9}), total={"cpu": 8}, is_tree=False)
    assert found == {"a": {"cpu": 8000}, "b": {"cpu": 6000}}


def test_in_a_tree_what_is_not_said_is_the_parents_and_the_root_is_unlimited() -> None:
    found = limits(
        queue("top", capability={"cpu": 6}),
        queue("mid", parent="top", guarantee={"cpu": 1}),
        queue("side", parent="top", guarantee={"cpu": 2}),
        queue("low", parent="mid", capability={"cpu": 9, "gpu": 1}),
        queue("leaf", parent="low"),
        queue("free"),
        total={"cpu": 8},
        is_tree=True,
    )
    assert found == {
        "top": {"cpu": 6000},
        "mid": {"cpu": 4000},
        "side": {"cpu": 5000},
        "low": {"cpu": 4000, "nvidia.com/gpu": 1000},
        "leaf": {"cpu": 4000, "nvidia.com/gpu": 1000},
        "free": {},
    }


@pytest.mark.parametrize("levels", [1, 3, 5])
def test_the_capability_of_every_ancestor_holds(levels: int) -> None:
    chain = [queue("q0", capability={"cpu": 2})]
    chain += [queue(f"q{at}", parent=f"q{at - 1}") for at in range(1, levels)]
    other = [queue("other", parent="q0")] if levels > 1 else []
    leaf = f"q{levels - 1}"
    made = world(*chain, *other).job("a", leaf, "n1").job("b", leaf, "").job("c", leaf, "")
    found = made.run("allocate")
    assert found.bound == {"b-0"}
    assert found.why("c") == f"queue {leaf} has not enough quota left"


def test_a_parents_capability_admits_no_more_minimum_resources() -> None:
    made = world(queue("p", capability={"cpu": 3}), queue("a", parent="p"), queue("b", parent="p"))
    made.job("first", "a", "", min_resources={"cpu": 2}, is_enqueued=False)
    made.job("second", "b", "", min_resources={"cpu": 2}, is_enqueued=False)
    found = made.run("enqueue")
    assert list(found.session.enqueued) == ["ns/first"]
    assert found.why("second") == "queue resource quota insufficient: insufficient cpu in queue p"


def two(a: dict[str, Any], b: dict[str, Any], *pods_of_a: str, plugins: Any = FLAT, cores: int = 4) -> set[str]:
    made = world(queue("a", **a), queue("b", **b), plugins=plugins, cores=cores)
    return made.job("a", "a", *pods_of_a, minimum=0).job("b", "b", "").run("reclaim").evicted


@pytest.mark.parametrize(
    ("a", "b", "evicted"),
    [
        ({"deserved": {"cpu": 2}}, {"deserved": {"cpu": 2}}, {"a-3"}),
        ({"deserved": {"cpu": 4}}, {"deserved": {"cpu": 2}}, set()),
        ({"deserved": {"cpu": 2}}, {"deserved": {"gpu": 2}}, set()),
        ({}, {"deserved": {"cpu": 2}}, {"a-3"}),
        ({"deserved": {"gpu": 2}}, {"deserved": {"cpu": 2}}, {"a-3"}),
        ({"guarantee": {"cpu": 4}}, {"deserved": {"cpu": 2}}, set()),
        ({"deserved": {"cpu": 2}}, {"deserved": {"cpu": 2}, "capability": {"cpu": 0.5}}, set()),
        ({"deserved": {"cpu": 2}, "is_reclaimable": False}, {"deserved": {"cpu": 2}}, set()),
    ],
    ids=[
        "beyond what it deserves",
        "within what it deserves",
        "the claimant deserves nothing of it",
        "it deserves nothing",
        "it deserves nothing of that",
        "its guarantee stays whole",
        "beyond the claimant's capability",
        "not reclaimable",
    ],
)
def test_what_may_be_reclaimed(a: dict[str, Any], b: dict[str, Any], evicted: set[str]) -> None:
    assert two(a, b, *["n1"] * 4) == evicted


def test_a_victim_shares_a_resource_with_the_claimant() -> None:
    made = world(queue("a"), queue("b", deserved={"cpu": 2}), cores=1, gpu=2, plugins=FLAT)
    made.job("a", "a", "n1:0", gpus=1, minimum=0).job("c", "b", "n1", minimum=1)
    assert made.job("b", "b", "").run("reclaim").evicted == set()


def test_the_nearest_relatives_yield_first() -> None:
    queues = [
        queue("near", parent="p", deserved={"cpu": 1}),
        queue("b", parent="p", deserved={"cpu": 2}),
        queue("far", deserved={"cpu": 1}),
        queue("p", deserved={"cpu": 3}),
    ]
    made = world(*queues, cores=6).job("far", "far", *["n1"] * 3, minimum=0).job("near", "near", *["n1"] * 3, minimum=0)
    assert made.job("b", "b", "").run("reclaim").evicted == {"near-2"}


@pytest.mark.parametrize(("level", "evicted"), [(0, {"a-1"}), (1, set()), (-1, set())])
def test_an_argument_extends_the_deserved_amounts_to_ancestors(level: int, evicted: set[str]) -> None:
    plugins = (*TREE[:3], plugin("capacity", also=("Hierarchy",), arguments={"ancestorReclaimLevel": level}), TREE[4])
    queues = [
        queue("pa", deserved={"cpu": 2}),
        queue("a", parent="pa", deserved={"cpu": 1}),
        queue("pb", deserved={"cpu": 2}),
        queue("b", parent="pb", deserved={"cpu": 2}),
    ]
    made = world(*queues, cores=2, plugins=plugins).job("a", "a", "n1", "n1", minimum=0)
    assert made.job("b", "b", "").run("reclaim").evicted == evicted


@pytest.mark.parametrize(
    ("a", "b", "first"),
    [
        ({"priority": 1}, {"priority": 2}, "b"),
        ({"deserved": {"cpu": 2}}, {"deserved": {"cpu": 4}}, "b"),
        ({}, {"deserved": {"cpu": 1}}, "b"),
        ({"deserved": {"cpu": 1}}, {"deserved": {"cpu": 1}}, "a"),
    ],
    ids=["priority", "share", "one that deserves nothing comes after equals", "age"],
)
def test_the_order_of_queues(a: dict[str, Any], b: dict[str, Any], first: str) -> None:
    queues = [queue("a", created_s=0, **a), queue("b", created_s=1, **b)]
    made = world(*queues, cores=3, plugins=FLAT).job("ra", "a", "n1").job("rb", "b", "n1")
    assert made.job("a", "a", "").job("b", "b", "").run("allocate").bound == {f"{first}-0"}


def test_in_a_tree_the_first_ancestors_that_differ_decide() -> None:
    queues = [
        queue("pa", deserved={"cpu": 8}, created_s=0),
        queue("a", parent="pa", deserved={"cpu": 1}, created_s=1),
        queue("pb", deserved={"cpu": 1}, created_s=2),
        queue("b", parent="pb", deserved={"cpu": 8}, created_s=3),
    ]
    made = world(*queues, cores=3).job("ra", "a", "n1").job("rb", "b", "n1")
    assert made.job("b", "b", "").job("a", "a", "").run("allocate").bound == {"a-0"}
