"""Nodes whose GPUs are MIG instances under the name of whole GPUs: whole ones are given, parts of them are not."""

from __future__ import annotations

import pytest

from shoal.engine.asks import Ask
from shoal.engine.cluster import Cluster
from shoal.engine.device_demand import GpuShare, MemoryShares, WholeGpus
from shoal.engine.device_notation import layout_of_node
from shoal.engine.events import NodeFacts, NodeSeen
from shoal.engine.intake import Intake
from shoal.engine.placement import Placement
from shoal.engine.profile import NO_PREFERENCES
from shoal.units.errors import Where

STRATEGY = {"nvidia.com/mig.strategy": "single"}
ROLE = {"node-role.kubernetes.io/mig-enabled": "true"}
MEMORY = {"nvidia.com/gpu.memory": "40960"}


def is_placed(labels: dict[str, str], ask: Ask, **more: int) -> bool:
    cluster = Cluster()
    amounts = {"cpu": 8000, "memory": 1 << 30, "pods": 10, "nvidia.com/gpu": 2}
    gpus, layout, counted = layout_of_node(labels, {}, {**amounts, **more}, Where())
    Intake(cluster).apply(NodeSeen(NodeFacts("n", counted, labels, gpus=gpus, layout=layout)))
    placement = Placement(cluster, NO_PREFERENCES)
    return placement.choose(cluster.charge(ask), 0) is not None


@pytest.mark.parametrize("ask", [Ask(devices=GpuShare(500)), Ask(devices=MemoryShares(1, 1000))])
@pytest.mark.parametrize(
    ("labels", "fits"),
    [
        ({**MEMORY, **STRATEGY, **ROLE}, False),
        ({**MEMORY, **STRATEGY, "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb"}, False),
        ({**MEMORY, **STRATEGY}, True),
        ({**MEMORY, **ROLE, "nvidia.com/mig.strategy": "mixed"}, True),
    ],
)
def test_parts_of_gpus_do_not_go_to_instances_of_the_single_strategy(
    ask: Ask, labels: dict[str, str], fits: bool
) -> None:
    assert is_placed(labels, ask) is fits


def test_instances_that_are_advertised_by_name_are_a_sign_as_well() -> None:
    assert not is_placed({**MEMORY, **STRATEGY}, Ask(devices=GpuShare(500)), **{"nvidia.com/mig-1g.5gb": 2})


def test_whole_ones_are_given_as_before() -> None:
    assert is_placed({**MEMORY, **STRATEGY, **ROLE}, Ask(devices=WholeGpus(1)))
