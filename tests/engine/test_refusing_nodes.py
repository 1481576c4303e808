"""A node whose kubelet refused a pod takes no asks of that size until something is seen to change there."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from build.nodes import NodeBuilder, node
from build.pods import AskBuilder, ask
from build.scenario import Scenario
from shoal.devices.layout import Layout
from shoal.engine.admission_failures import LASTS_S, MOST_NODES
from shoal.engine.events import NodeRefused, PodBound
from shoal.engine.evidence import evidence
from shoal.engine.reasons import Code

GPU = ask().gpus(1)


def there() -> NodeBuilder:
    return node("n").gpus(8)


def refuse(world: Scenario, name: str, wanted: AskBuilder = GPU, owner: str = "job", lacks: str = "") -> Scenario:
    """A pod that asks so is bound to the node, and its kubelet refuses it."""
    world.bind("failed", wanted, name).go("failed")
    return world.apply(NodeRefused(name, wanted.made(), lacks, owner, at_s=0.0))


def refused(wanted: AskBuilder = GPU, lacks: str = "") -> Scenario:
    world = Scenario(there())
    world.bind("there", GPU, "n")
    world.shape(GPU).refresh()
    return refuse(world, "n", wanted, lacks=lacks)


def nodes_of(world: Scenario, wanted: AskBuilder = GPU) -> list[str]:
    """Where a pod goes that asks so."""
    world.arrive("next", wanted)
    return [place.node for place in world.round().placed]


def test_no_pod_goes_there_and_the_reason_is_said() -> None:
    world = refused()
    assert nodes_of(world) == []
    assert [cause.code for cause in evidence(world.cluster, GPU.made()).causes] == [Code.REFUSING]


CHANGES: dict[str, Callable[[Scenario], object]] = {
    "its allocatable amounts": lambda world: world.see(there().cpu(3)),
    "an amount that no pod asks for": lambda world: world.see(there().resource("example.com/disk", 1)),
    "the number of its devices": lambda world: world.see(node("n").gpus(7)),
    "the health of its devices": lambda world: world.see(there().laid_out(Layout(broken=(3,)))),
    "its taints": lambda world: world.see(there().taint("a", effect="PreferNoSchedule")),
    "a pod that another scheduler bound": lambda world: world.bind("foreign", GPU, "n"),
    "a pod that ended": lambda world: world.go("there"),
    "it left and came back": lambda world: world.lose("n").see(there()),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_of_what_the_kubelet_admits_by_ends_that(change: str) -> None:
    world = refused()
    CHANGES[change](world)
    assert nodes_of(world) == ["n"]


def confirmed(world: Scenario) -> None:
    """A pod that our plan put on the node is seen there."""
    cluster = world.cluster
    holding = cluster.pods["ours"]
    world.apply(PodBound("ours", holding.ask, "n", holding.grant, who=holding.who))


IRRELEVANT: dict[str, Callable[[Scenario], object]] = {
    "a report without news": lambda world: world.see(there()),
    "a label": lambda world: world.see(there().label("a", "b")),
    "our own pod is seen there": confirmed,
    "our own pod names its devices": lambda world: world.apply(
        PodBound("ours", GPU.made(), "n", positions=((5, 0),), anew=True)
    ),
    "a pod that was never bound is deleted": lambda world: world.go("ours"),
    "our placement is taken back": lambda world: world.reject("ours"),
}


@pytest.mark.parametrize("change", IRRELEVANT)
def test_other_news_do_not(change: str) -> None:
    world = Scenario(there()).arrive("ours", GPU)
    assert world.round().placed
    refuse(world, "n")
    IRRELEVANT[change](world)
    assert nodes_of(world) == []


SIZES: dict[str, tuple[AskBuilder, str, AskBuilder, bool]] = {
    "as many GPUs": (GPU, "", GPU, False),
    "more GPUs": (GPU, "", ask().gpus(2), False),
    "fewer GPUs": (ask().gpus(4), "", GPU, True),
    "a part of a GPU": (GPU, "", ask().share(500), True),
    "no GPU": (GPU, "", ask().cpu(1), True),
    "more of what the kubelet named": (ask().cpu(1).gpus(2), "cpu", ask().cpu(1), False),
    "less of what the kubelet named": (ask().cpu(2).gpus(1), "cpu", ask().cpu(1).gpus(4), True),
    "a resource of the node that the pod did not ask for": (GPU, "cpu", ask().cpu(1), True),
    "no more pods": (GPU, "pods", ask().cpu(1), False),
}


@pytest.mark.parametrize("case", SIZES)
def test_only_asks_for_at_least_as_much_of_what_was_lacking_are_kept_off(case: str) -> None:
    failed, lacks, wanted, is_tried = SIZES[case]
    assert nodes_of(refused(failed, lacks), wanted) == (["n"] if is_tried else [])


def test_other_nodes_are_tried_meanwhile() -> None:
    assert nodes_of(refused().see(node("m").gpus(1))) == ["m"]


def test_an_idle_node_is_tried_again_after_a_while() -> None:
    world = refused().arrive("next", GPU)
    while world.rounds < LASTS_S - 1:
        assert world.round().placed == []
    assert [place.node for place in world.round().placed] == ["n"]
    assert world.cluster.refusing.next_s() == float("inf")


def test_pods_of_one_owner_keep_others_off_a_few_nodes_only() -> None:
    names = [f"n{number}" for number in range(MOST_NODES + 2)]
    world = Scenario(*(node(name).gpus(8) for name in names))
    for name in names:
        refuse(world, name)
    assert world.fitting(GPU) == set(names[:2])


def test_each_owner_has_nodes_of_its_own() -> None:
    names = [f"n{number}" for number in range(MOST_NODES + 1)]
    world = Scenario(*(node(name).gpus(8) for name in names))
    for name in names:
        refuse(world, name, owner=f"job of {name}")
    assert world.fitting(GPU) == set()


def test_a_node_that_fails_again_is_the_last_to_be_freed() -> None:
    names = [f"n{number}" for number in range(MOST_NODES + 1)]
    world = Scenario(*(node(name).gpus(8) for name in names))
    for name in [*names[:-1], names[0], names[-1]]:
        refuse(world, name)
    assert world.fitting(GPU) == {names[1]}
