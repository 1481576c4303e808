"""Taints that a pod would have to tolerate are named where that would help, and only there."""

from __future__ import annotations

from dataclasses import replace

import pytest

from build.gangs import gang
from build.nodes import NodeBuilder, node
from build.pods import AskBuilder, ask
from build.scenario import Scenario
from shoal.engine.evidence import helpful_taints
from shoal.engine.fitter import Fitter
from shoal.engine.gangs.evidence import taints_helpful_to
from shoal.engine.ledger import Ledger
from shoal.engine.repelling_taints import repelling_taints

PRESENT = node("a").gpus(8).taint("nvidia.com/gpu", value="present")
DEDICATED = node("d").cpu(8).taint("dedicated", value="research")
TRUE = node("b").gpus(8).taint("nvidia.com/gpu", value="true")

CASES: dict[str, tuple[tuple[NodeBuilder, ...], AskBuilder, list[tuple[list[str], int]]]] = {
    "one taint of one node": ((PRESENT,), ask().gpus(1), [(["nvidia.com/gpu=present:NoSchedule"], 1)]),
    "most nodes first": (
        (PRESENT, TRUE, replace(TRUE, name="c")),
        ask().gpus(1),
        [(["nvidia.com/gpu=true:NoSchedule"], 2), (["nvidia.com/gpu=present:NoSchedule"], 1)],
    ),
    "both taints of a node together": (
        (PRESENT.taint("dedicated", "NoExecute", "research"),),
        ask().gpus(1),
        [(["nvidia.com/gpu=present:NoSchedule", "dedicated=research:NoExecute"], 1)],
    ),
    "what it tolerates already is not named": (
        (PRESENT.taint("dedicated", value="research"),),
        ask().gpus(1).tolerate("nvidia.com/gpu"),
        [(["dedicated=research:NoSchedule"], 1)],
    ),
    "a taint that only costs points": ((node("a").gpus(8).taint("x", "PreferNoSchedule"),), ask().gpus(1), []),
    "a node that is too small": ((PRESENT,), ask().gpus(9), []),
    "a node with other labels": ((PRESENT,), ask().gpus(1).select("zone", "In", "mars"), []),
    "a cordoned node": ((PRESENT.cordoned(),), ask().gpus(1), []),
    "a taint that comes and goes by itself": (
        (
            node("a").gpus(8).taint("node.kubernetes.io/not-ready"),
            replace(PRESENT, name="c").taint("node.kubernetes.io/x"),
        ),
        ask().gpus(1),
        [],
    ),
    "a pod without devices": ((DEDICATED,), ask().cpu(1), [(["dedicated=research:NoSchedule"], 1)]),
    "a pod without devices that GPU nodes alone could run": (
        (PRESENT,),
        ask().cpu(1),
        [(["nvidia.com/gpu=present:NoSchedule"], 1)],
    ),
    "a pod without devices leaves GPU nodes alone where other nodes have a taint": (
        (PRESENT, replace(PRESENT, name="c"), DEDICATED),
        ask().cpu(1),
        [(["dedicated=research:NoSchedule"], 1)],
    ),
    "a pod without devices leaves GPU nodes alone where other nodes are in use": (
        (PRESENT, node("c").cpu(8)),
        ask().cpu(1),
        [],
    ),
    "a pod with a MIG instance": (
        (node("a").resource("nvidia.com/mig-1g.10gb", 7).taint("nvidia.com/gpu", value="present"), node("c").cpu(8)),
        ask().resource("nvidia.com/mig-1g.10gb", 1),
        [(["nvidia.com/gpu=present:NoSchedule"], 1)],
    ),
}


@pytest.mark.parametrize(("nodes", "wanted", "told"), CASES.values(), ids=CASES)
def test_taints_that_keep_a_pod_off(
    nodes: tuple[NodeBuilder, ...], wanted: AskBuilder, told: list[tuple[list[str], int]]
) -> None:
    found = repelling_taints(Scenario(*nodes).cluster, wanted.made())
    assert [([str(taint) for taint in one.taints], one.nodes) for one in found] == told


def test_a_node_that_is_gone_does_not_count() -> None:
    world = Scenario(PRESENT, TRUE).lose("a")
    assert [one.nodes for one in repelling_taints(world.cluster, ask().gpus(1).made())] == [1]


def test_a_taint_helps_only_where_the_pod_then_fits_now() -> None:
    world = Scenario(PRESENT).bind("old", ask().gpus(6), "a")
    assert [one.nodes for one in helpful_taints(world.cluster, ask().gpus(2).made())] == [1]
    assert helpful_taints(world.cluster, ask().gpus(4).made()) == ()


def test_a_taint_helps_a_gang_only_where_all_of_it_then_fits() -> None:
    for pods, helps in ((2, 1), (3, 0)):
        world = Scenario(PRESENT, replace(PRESENT, name="b"))
        gang("g").pods(pods, ask().gpus(8)).arrive(world)
        world.placement.renew()
        before = world.cluster.pending.in_order()
        fitter = Fitter(world.placement, Ledger(world.cluster), 0)
        found = taints_helpful_to(fitter, world.cluster.gangs["g"], "g-0")
        assert len(found) == helps
        assert world.cluster.pending.in_order() == before
        assert not any(world.cluster.pending[pod].charge.ask.tolerations for pod in before)
