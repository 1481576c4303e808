"""An Event about a GPU names the pods that use it: whole, shared, in part, or by a claim."""

from __future__ import annotations

import pytest

from shoal.agent.health.gpu_users import pods_of_gpu
from shoal.agent.health.node_condition import PodUser
from shoal.devices.dcgm_holders import ClaimedDevice, ContainerHolding
from shoal.devices.port import InstalledGpu, MigInstance

GPUS = (
    InstalledGpu(0, "GPU-a", "NVIDIA H100 80GB HBM3", "00000000:01:00.0", minor=1),
    InstalledGpu(
        1,
        "GPU-b",
        "NVIDIA H100 80GB HBM3",
        "00000000:02:00.0",
        minor=0,
        is_mig=True,
        instances=(MigInstance("MIG-c", "1g.10gb", 9, 3, 1, 9856),),
    ),
)


def claimed(device: str, pool: str = "n", driver: str = "gpu.nvidia.com") -> ContainerHolding:
    return ContainerHolding("p", "team", "main", claimed=(ClaimedDevice("c", "team", driver, pool, device),))


@pytest.mark.parametrize(
    ("holding", "of"),
    [
        (ContainerHolding("p", "team", "main", "nvidia.com/gpu", ("GPU-a",)), "GPU-a"),
        (ContainerHolding("p", "team", "main", "nvidia.com/gpu", ("GPU-x", "GPU-a::3")), "GPU-a"),
        (ContainerHolding("p", "team", "main", "nvidia.com/mig-1g.10gb", ("MIG-c",)), "GPU-b"),
        (claimed("gpu-1"), "GPU-a"),
        (claimed("gpu-0-mig-1g10gb-19-3"), "GPU-b"),
        (claimed("gpu-1", pool="other"), ""),
        (claimed("gpu-1", driver="example.com"), ""),
        (ContainerHolding("p", "team", "main", "example.com/device", ("x",)), ""),
    ],
    ids=[
        "a whole GPU",
        "a replica",
        "an instance",
        "a claimed GPU",
        "a claimed instance",
        "a claim on another node",
        "a claim of another driver",
        "another device",
    ],
)
def test_a_pod_uses_a_gpu_by(holding: ContainerHolding, of: str) -> None:
    for gpu in GPUS:
        expected = (PodUser("team", "p"),) if gpu.uuid == of else ()
        assert pods_of_gpu(gpu.uuid, GPUS, [holding, holding], "n") == expected
