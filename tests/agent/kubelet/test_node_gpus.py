"""Pods see the GPUs that they were given, and no others."""

from __future__ import annotations

from build.gpu_pods import device_manager, gpu_pod
from shoal.agent.kubelet.gpus import NodeGpus
from shoal.devices.pod_refusal import Refused
from shoal.embedded.gpus.dcgm import DcgmExporter
from shoal.embedded.gpus.simulated_driver import SimulatedDriver


def gpus_of(spec: str) -> NodeGpus:
    machine = device_manager(spec)
    return NodeGpus(SimulatedDriver(machine, DcgmExporter(machine, booted_s=0.0), lambda: 0.0))


def test_a_machine_without_a_driver_advertises_nothing_and_hides_all_gpus() -> None:
    gpus = NodeGpus(None)

    assert gpus.amounts() == {}
    assert gpus.environment("u", "main") == {"CUDA_VISIBLE_DEVICES": "", "NVIDIA_VISIBLE_DEVICES": "void"}


def test_pods_get_different_gpus_by_uuid() -> None:
    gpus = gpus_of("dgx-h100")

    assert gpus.amounts() == {"nvidia.com/gpu": "8"}
    assert gpus.admit(gpu_pod("a", 6)) is None
    assert gpus.admit(gpu_pod("b", 2)) is None
    first, second = (gpus.environment(uid, "main")["CUDA_VISIBLE_DEVICES"].split(",") for uid in "ab")
    assert len({*first, *second}) == 8
    assert all(one.startswith("GPU-") for one in (*first, *second))
    refused = gpus.admit(gpu_pod("c", 1))
    assert isinstance(refused, Refused)
    assert refused.reason == "UnexpectedAdmissionError"


def test_a_later_kubelet_gives_running_pods_the_same_gpus() -> None:
    before, later = gpus_of("dgx-h100"), gpus_of("dgx-h100")
    before.admit(gpu_pod("a", 3))

    later.restore("a", before.held("a"))
    later.admit(gpu_pod("b", 5))

    assert later.environment("a", "main") == before.environment("a", "main")
    assert isinstance(later.admit(gpu_pod("c", 1)), Refused)
    later.release("a")
    assert later.admit(gpu_pod("d", 3)) is None
