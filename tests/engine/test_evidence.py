"""Every refusal's causes are counted, and the nearest node is the one that lacks least."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from build.evidence_nodes import CORDON, DEDICATED, ask, bound, fleet, node
from shoal.api.taints import Taint
from shoal.engine.asks import Ask, HostPort
from shoal.engine.device_demand import GpuShare, WholeGpus
from shoal.engine.events import NodeFacts, NodeGone, PodBound, PodGone
from shoal.engine.evidence import Evidences, evidence
from shoal.engine.intake import Intake
from shoal.engine.reasons import EMPTY_GPUS, GPU_PIECE, Cause, Code, Shortfall


class Case(NamedTuple):
    nodes: tuple[NodeFacts, ...]
    ask: Ask
    causes: tuple[Cause, ...]
    pods: tuple[PodBound, ...] = ()


COUNTED = {
    "a cluster without nodes has no causes": Case((), ask(cpu=1), ()),
    "a node counts under every resource it lacks": Case(
        (node("a", cpu=1000), node("b", cpu=1000, fpga=1)),
        ask(cpu=2000, fpga=1),
        (Cause(Code.INSUFFICIENT, "cpu", 2), Cause(Code.INSUFFICIENT, "fpga", 1)),
    ),
    "a node that a rule turns away is not asked for resources": Case(
        (node("a", cpu=0, zone="b"),),
        ask(cpu=2000, zone="a"),
        (Cause(Code.AFFINITY, "", 1),),
    ),
    "a node counts under the first rule that it fails": Case(
        (node("a", cordoned=True, taints=(DEDICATED,)), node("b", taints=(DEDICATED,))),
        ask(),
        (Cause(Code.UNSCHEDULABLE, "", 1), Cause(Code.TAINTED, "dedicated: training", 1)),
    ),
    "taints are told apart by key and value": Case(
        (
            node("a", taints=(DEDICATED,)),
            node("b", taints=(Taint("spot", "NoExecute"),)),
            node("c", taints=(DEDICATED,)),
        ),
        ask(),
        (Cause(Code.TAINTED, "dedicated: training", 2), Cause(Code.TAINTED, "spot: ", 1)),
    ),
    "a taint that only discourages turns nobody away": Case(
        (node("a", taints=(Taint("spot", "PreferNoSchedule"),)),),
        ask(cpu=9000),
        (Cause(Code.INSUFFICIENT, "cpu", 1),),
    ),
    "a node asked for by name leaves out all others": Case(
        (node("a"), node("b", cpu=0), node("c")),
        ask(cpu=100, node_name="b"),
        (Cause(Code.NODE_NAME, "b", 2), Cause(Code.INSUFFICIENT, "cpu", 1)),
    ),
    "a model the fleet lacks matches no node": Case(
        (node("a", gpus=2, model="T4"), node("b")),
        ask(devices=WholeGpus(1), models="H100|A100"),
        (Cause(Code.GPU_MODEL, "A100|H100", 2),),
    ),
    "whole GPUs are missing where too few are empty": Case(
        (node("a", gpus=4), node("b", gpus=2), node("c")),
        ask(devices=WholeGpus(4)),
        (Cause(Code.NO_DEVICE, "4 empty GPUs", 3),),
        (bound("a", ask(devices=GpuShare(100))),),
    ),
    "a share is missing where no single GPU has that much left": Case(
        (node("a", gpus=2),),
        ask(devices=GpuShare(300)),
        (Cause(Code.NO_DEVICE, "a GPU with 300 thousandths free", 1),),
        (bound("a", ask(devices=GpuShare(800)), "x"), bound("a", ask(devices=GpuShare(750)), "y")),
    ),
    "a node with all pod slots taken has too many pods": Case(
        (node("a", pods=1),),
        ask(),
        (Cause(Code.TOO_MANY_PODS, "", 1),),
        (bound("a", ask()),),
    ),
    "a node whose port is taken is not asked what else it lacks": Case(
        (node("a"), node("b")),
        ask(cpu=9000, ports=(HostPort(80), HostPort(443))),
        (Cause(Code.PORTS, "80, 443", 1), Cause(Code.INSUFFICIENT, "cpu", 1)),
        (bound("a", ask(ports=(HostPort(443),))),),
    ),
    "a tolerated cordon is no cause": Case(
        (node("a", cordoned=True),),
        ask(cpu=9000, tolerations=(CORDON,)),
        (Cause(Code.INSUFFICIENT, "cpu", 1),),
    ),
}


@pytest.mark.parametrize("case", COUNTED.values(), ids=COUNTED)
def test_causes(case: Case) -> None:
    found = evidence(fleet(*case.nodes, pods=case.pods), case.ask)
    assert found.causes == case.causes
    assert found.nodes == len(case.nodes)
    assert found.fitting == 0


PORT_80 = ask(ports=(HostPort(80),))
HALF = ask(cpu=4000)

NEAREST: dict[str, tuple[Case, str, tuple[Shortfall, ...]]] = {
    "the smallest gap in proportion to what is asked": (
        Case((node("a", cpu=1000), node("b", cpu=7000), node("c", cpu=5000)), ask(cpu=8000), ()),
        "b",
        (Shortfall("cpu", 8000, 7000, 7000),),
    ),
    "of equal gaps the node that comes first in the order of nodes": (
        Case((node("a", cpu=1000), node("b", cpu=1000)), ask(cpu=8000), ()),
        "a",
        (Shortfall("cpu", 8000, 1000, 1000),),
    ),
    "a node that is only busy before one that is too small": (
        Case(
            (node("small", gpus=4), node("busy", gpus=8)),
            ask(devices=WholeGpus(8)),
            (),
            (bound("busy", ask(devices=WholeGpus(7))),),
        ),
        "busy",
        (Shortfall(EMPTY_GPUS, 8, 1, 8, Code.NO_DEVICE),),
    ),
    "a node in the wrong place is not near": (
        Case((node("far", cpu=0), node("away", zone="b")), ask(cpu=8000, zone="a"), ()),
        "far",
        (Shortfall("cpu", 8000, 0, 0),),
    ),
    "no node at all where the rules leave none": (Case((node("a", zone="b"),), ask(zone="a"), ()), "", ()),
    "the largest piece of one GPU is what a share lacks": (
        Case(
            (node("a", gpus=2),),
            ask(devices=GpuShare(300)),
            (),
            (bound("a", ask(devices=GpuShare(999)), "x"), bound("a", ask(devices=GpuShare(801)), "y")),
        ),
        "a",
        (Shortfall(GPU_PIECE, 300, 199, 1000, Code.NO_DEVICE),),
    ),
    "a taken port is a shortfall": (
        Case((node("a"),), ask(ports=(HostPort(80),)), (), (bound("a", ask(ports=(HostPort(80),))),)),
        "a",
        (Shortfall("80", 1, 0, 1, Code.PORTS),),
    ),
    "two small gaps before one large": (
        Case((node("a", cpu=3000), node("b", cpu=7900)), ask(cpu=8000, memory=1001), ()),
        "b",
        (Shortfall("cpu", 8000, 7900, 7900), Shortfall("memory", 1001, 1000, 1000)),
    ),
    "a taken port weighs as much as a resource all gone": (
        Case((node("a"), node("b")), ask(cpu=8000, ports=(HostPort(80),)), (), (bound("a", PORT_80), bound("b", HALF))),
        "b",
        (Shortfall("cpu", 8000, 4000, 8000),),
    ),
    "a fitting node has no shortfalls": (Case((node("a", cpu=1), node("b")), ask(cpu=8), ()), "b", ()),
}


@pytest.mark.parametrize(("case", "name", "shortfalls"), NEAREST.values(), ids=NEAREST)
def test_nearest(case: Case, name: str, shortfalls: tuple[Shortfall, ...]) -> None:
    found = evidence(fleet(*case.nodes, pods=case.pods), case.ask)
    assert (found.nearest, found.shortfalls) == (name, shortfalls)


def test_a_node_that_left_is_not_counted() -> None:
    intake = Intake(fleet(node("a"), node("b")))
    intake.apply(NodeGone("a"))
    assert evidence(intake.cluster, ask(cpu=9000)).causes == (Cause(Code.INSUFFICIENT, "cpu", 1),)


def test_a_resource_nobody_has_heard_of_is_missing_everywhere() -> None:
    names = [f"example.com/r{number}" for number in range(20)]
    found = evidence(fleet(node("a")), Ask(requests=tuple((name, 1) for name in sorted(names))))
    assert {cause.detail for cause in found.causes} == set(names)


def test_evidence_is_gathered_once_until_the_facts_change() -> None:
    intake = Intake(fleet(node("a")))
    evidences = Evidences(intake.cluster)
    wanted = ask(cpu=8000)
    assert evidences.of(wanted).fitting == 1
    assert evidences.of(wanted) is evidences.of(ask(cpu=8000))
    intake.apply(PodBound("p", ask(cpu=1000), "a"))
    assert evidences.of(wanted).causes == (Cause(Code.INSUFFICIENT, "cpu", 1),)
    intake.apply(PodGone("p"))
    assert evidences.of(wanted).fitting == 1
