"""What is said of a pod that no device can host: which devices are missing, on how many nodes, and who is nearest."""

from __future__ import annotations

import pytest

from build.nodes import NodeBuilder, node
from build.pods import AskBuilder, ask
from build.scenario import Scenario
from shoal.engine.device_demand import (
    Demand,
    GpuShares,
    MemoryShares,
    MigTiles,
    Replicas,
    VirtualGpus,
    WholeGpus,
)
from shoal.engine.evidence import evidence
from shoal.views.why import why

A100 = node("a").gpus(8).islands(0, 0, 0, 0, 1, 1, 1, 1)
SIDES = (0, 0, 0, 0, 1, 1, 1, 1)
CUT = node("a").gpus(1).cut_on_demand("A100-40GB")

TOLD: dict[str, tuple[list[NodeBuilder], list[tuple[str, Demand, tuple[int, ...]]], Demand, str]] = {
    "memory": (
        [node("a").gpus(2).memory_mib(16_000), node("b").gpus(1).memory_mib(40_000)],
        [("b", MemoryShares(1, 30_000), (0,))],
        MemoryShares(1, 20_000),
        (
            "0/2 nodes are available: 2 node(s) didn't have a GPU with 20000 MiB free. "
            "The nearest node is b: it has 10000 of 20000 MiB of one GPU."
        ),
    ),
    "memory that no device has": (
        [node("a").gpus(2).memory_mib(16_000)],
        [],
        MemoryShares(1, 20_000),
        (
            "0/1 nodes are available: 1 node(s) didn't have a GPU with 20000 MiB free. "
            "No node that may take this pod is large enough, even empty: a has 16000 of 20000 MiB of one GPU."
        ),
    ),
    "several shares": (
        [node("a").gpus(2)],
        [("a", WholeGpus(1), (0,))],
        GpuShares(2, 500),
        (
            "0/1 nodes are available: 1 node(s) didn't have 2 GPUs with 500 thousandths free. "
            "The nearest node is a: it has 1 of 2 GPUs with 500 thousandths free."
        ),
    ),
    "virtual GPUs": (
        [node("a").gpus(1).memory_mib(16_000)],
        [("a", VirtualGpus(1, mib=10_000), (0,))],
        VirtualGpus(1, mib=8_000, cores_percent=30),
        (
            "0/1 nodes are available: 1 node(s) didn't have a GPU with 8000 MiB, 30 % of the cores and a slot free. "
            "The nearest node is a: it has 0 of 1 GPUs with 8000 MiB, 30 % of the cores and a slot free."
        ),
    ),
    "replicas of GPUs": (
        [node("a").gpus(1).replicated(4), node("b").gpus(1)],
        [("a", WholeGpus(3), (0,)), ("b", WholeGpus(1), (0,))],
        WholeGpus(2),
        (
            "0/2 nodes are available: 1 node(s) didn't have 2 empty GPUs, 1 node(s) didn't have 2 free GPU replicas. "
            "The nearest node is a: it has 1 of 2 GPU replicas."
        ),
    ),
    "replicas of which a pod gets one": (
        [node("a").gpus(2).replicated(4, one_per_request=True)],
        [],
        WholeGpus(2),
        (
            "0/1 nodes are available: 1 node(s) didn't have 2 free GPU replicas. "
            "No node that may take this pod is large enough, even empty: a has 1 of 2 GPU replicas."
        ),
    ),
    "renamed replicas": (
        [node("a").gpus(1).replicated(4, renamed=True)],
        [("a", Replicas(4), (0,))],
        Replicas(1),
        (
            "0/1 nodes are available: 1 node(s) didn't have 1 free nvidia.com/gpu.shared. "
            "The nearest node is a: it has 0 of 1 nvidia.com/gpu.shared."
        ),
    ),
    "replicas by a name that the node does not use": (
        [node("a").gpus(1).replicated(4)],
        [],
        Replicas(2),
        (
            "0/1 nodes are available: 1 node(s) didn't have 2 free nvidia.com/gpu.shared. "
            "No node that may take this pod is large enough, even empty: a has 0 of 2 nvidia.com/gpu.shared."
        ),
    ),
    "whole GPUs where all are renamed replicas": (
        [node("a").gpus(1).replicated(4, renamed=True)],
        [],
        WholeGpus(1),
        (
            "0/1 nodes are available: 1 node(s) didn't have an empty GPU. "
            "No node that may take this pod is large enough, even empty: a has no GPU."
        ),
    ),
    "an island": (
        [A100],
        [("a", WholeGpus(1), (0,)), ("a", WholeGpus(1), (4,)), ("a", WholeGpus(1), (5,))],
        WholeGpus(4, island=True),
        (
            "0/1 nodes are available: 1 node(s) didn't have 4 empty GPUs together on one island. "
            "The nearest node is a: it has 3 of 4 empty GPUs on one island."
        ),
    ),
    "an island larger than any": (
        [A100],
        [],
        WholeGpus(5, island=True),
        (
            "0/1 nodes are available: 1 node(s) didn't have 5 empty GPUs together on one island. "
            "No node that may take this pod is large enough, even empty: a has 4 of 5 empty GPUs on one island."
        ),
    ),
    "an island larger than any, on a node that is too full besides": (
        [A100],
        [("a", WholeGpus(4), (0, 1, 2, 3))],
        WholeGpus(5, island=True),
        (
            "0/1 nodes are available: 1 node(s) didn't have 5 empty GPUs. "
            "No node that may take this pod is large enough, even empty: a has 4 of 5 empty GPUs on one island."
        ),
    ),
    "a NUMA node larger than any, on a node that is too full besides": (
        [node("a").gpus(8).numa(*SIDES, policy="single-numa-node")],
        [("a", WholeGpus(4), (0, 1, 2, 3))],
        WholeGpus(5),
        (
            "0/1 nodes are available: 1 node(s) didn't have 5 empty GPUs. No node that may take this pod is large "
            "enough, even empty: a has 4 of 5 empty GPUs on NUMA nodes as the kubelet wants."
        ),
    ),
    "a NUMA node that the kubelet insists on": (
        [node("a").gpus(8).numa(*SIDES, policy="single-numa-node")],
        [("a", WholeGpus(1), (0,)), ("a", WholeGpus(1), (4,))],
        WholeGpus(4),
        (
            "0/1 nodes are available: 1 node(s) didn't have 4 empty GPUs together on NUMA nodes as the kubelet wants. "
            "The nearest node is a: it has 3 of 4 empty GPUs on NUMA nodes as the kubelet wants."
        ),
    ),
    "a place for an instance": (
        [CUT],
        [("a", MigTiles((("1g.5gb", 1),)), (0,))],
        MigTiles((("4g.20gb", 1),)),
        (
            "0/1 nodes are available: 1 node(s) didn't have legal MIG places for 1 x 4g.20gb. "
            "The nearest node is a: it has 0 of 1 legal places for 4g.20gb free."
        ),
    ),
    "fixed instances": (
        [node("a").resource("nvidia.com/mig-1g.5gb", 7)],
        [("a", MigTiles((("1g.5gb", 6),)), ())],
        MigTiles((("1g.5gb", 2),)),
        (
            "0/1 nodes are available: 1 Insufficient nvidia.com/mig-1g.5gb. "
            "The nearest node is a: it has 1 of 2 nvidia.com/mig-1g.5gb free."
        ),
    ),
    "instances that fit one by one": (
        [CUT],
        [],
        MigTiles((("2g.10gb", 2), ("4g.20gb", 1))),
        (
            "0/1 nodes are available: 1 node(s) didn't have legal MIG places for 2 x 2g.10gb + 1 x 4g.20gb. "
            "No node that may take this pod is large enough, even empty: "
            "a has 0 of 1 sets of legal MIG places for 2 x 2g.10gb + 1 x 4g.20gb."
        ),
    ),
}


@pytest.mark.parametrize(("nodes", "bound", "wanted", "words"), TOLD.values(), ids=TOLD)
def test_told(
    nodes: list[NodeBuilder], bound: list[tuple[str, Demand, tuple[int, ...]]], wanted: Demand, words: str
) -> None:
    world = Scenario(*nodes)
    for index, (there, demand, devices) in enumerate(bound):
        world.held(f"p{index}", ask().demand(demand), there, devices)
    pod: AskBuilder = ask().demand(wanted)
    assert why(evidence(world.cluster, pod.made())) == words
