"""MPS daemons have the folders, limits and refusals of NVIDIA's device plugin."""

from __future__ import annotations

import pytest

from shoal.devices.mps_daemons import MpsDaemon, MpsPlan, client_mib, mps_plan
from shoal.devices.plugin_config import PluginConfig
from shoal.devices.port import InstalledGpu, MigInstance

ROOT = "/run/nvidia/mps"


def gpu(
    index: int, memory_mib: int | None = 81_559, capability: str | None = "9.0", *, is_mig: bool = False
) -> InstalledGpu:
    instances = (MigInstance(f"MIG-{index}", "1g.10gb", 1, 0, 1, 9_728),) if is_mig else ()
    return InstalledGpu(
        index,
        f"GPU-{index}",
        "NVIDIA H100 80GB HBM3",
        f"00000000:{index + 16:02X}:00.0",
        memory_mib=memory_mib,
        compute_capability=capability,
        is_mig=is_mig,
        instances=instances,
    )


def shared(replicas: int = 4, *, rename: bool = False, resource: str = "nvidia.com/gpu") -> PluginConfig:
    return PluginConfig(sharing="mps", replicas=((resource, replicas),), rename=rename)


def only(plan: MpsPlan) -> MpsDaemon:
    assert plan.problem == ""
    (found,) = plan.daemons
    return found


def test_one_daemon_serves_all_gpus_of_a_resource_with_limits_by_index() -> None:
    daemon = only(mps_plan([gpu(0), gpu(3, 40_960)], shared(), ROOT))
    assert daemon.default_limits == (
        "set_default_device_pinned_mem_limit 0 20389M",
        "set_default_device_pinned_mem_limit 3 10240M",
        "set_default_active_thread_percentage 25",
    )
    assert daemon.environment == {
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "CUDA_MPS_PIPE_DIRECTORY": "/run/nvidia/mps/nvidia.com/gpu/pipe",
        "CUDA_MPS_LOG_DIRECTORY": "/run/nvidia/mps/nvidia.com/gpu/log",
    }
    assert daemon.folders.started_file == "/run/nvidia/mps/nvidia.com/gpu/.started"
    assert daemon.folders.ready_file == "/run/nvidia/mps/.ready"


def test_a_server_that_runs_gets_the_same_limits_by_its_process() -> None:
    daemon = only(mps_plan([gpu(0)], shared(3), ROOT))
    assert daemon.limits_of_server(77) == (
        "set_device_pinned_mem_limit 77 0 27186M",
        "set_active_thread_percentage 77 33",
    )


def test_a_gpu_of_unknown_memory_has_no_limit_of_memory() -> None:
    assert only(mps_plan([gpu(0, None)], shared(), ROOT)).default_limits == ("set_default_active_thread_percentage 25",)


def test_the_folders_have_the_new_name_of_a_renamed_resource() -> None:
    assert only(mps_plan([gpu(0)], shared(rename=True), ROOT)).resource == "nvidia.com/gpu.shared"


@pytest.mark.parametrize(
    "config",
    [
        PluginConfig(),
        PluginConfig(sharing="time-slicing", replicas=(("nvidia.com/gpu", 4),)),
        shared(resource="nvidia.com/other"),
    ],
    ids=["sharing is off", "time-slicing has no daemon", "no device has the shared resource"],
)
def test_no_daemon_runs_where_mps_shares_nothing(config: PluginConfig) -> None:
    assert mps_plan([gpu(0)], config, ROOT) == MpsPlan()


def test_a_node_with_a_mig_gpu_has_the_plugins_problem_and_no_daemon() -> None:
    plan = mps_plan([gpu(0), gpu(1, is_mig=True)], shared(), ROOT)
    assert plan == MpsPlan(problem="sharing.mps is not supported for MIG devices")


@pytest.mark.parametrize(
    ("capability", "replicas", "is_refused"),
    [("9.0", 48, False), ("9.0", 49, True), ("7.0", 16, False), ("7.0", 17, True), (None, 17, True)],
)
def test_more_clients_than_a_gpu_can_have_are_refused(
    capability: str | None, replicas: int, *, is_refused: bool
) -> None:
    plan = mps_plan([gpu(0), gpu(1, capability=capability)], shared(replicas), ROOT)
    assert plan.problem.startswith("maximum allowed replicas exceeded") == is_refused
    assert bool(plan.daemons) != is_refused


def test_the_limits_of_all_clients_together_are_at_most_the_memory() -> None:
    for memory in (1, 47, 48, 81_559):
        for replicas in range(2, 49):
            assert client_mib(memory, replicas) * replicas <= memory
