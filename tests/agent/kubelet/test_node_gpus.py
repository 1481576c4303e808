"""Pods see the GPUs that they were given, and no others."""

from __future__ import annotations

from build.changing_driver import ChangingDriver
from build.gpu_pods import device_manager, gpu_pod, watched
from build.silent_driver import SilentDriver
from shoal.agent.health.watcher import HealthWatcher
from shoal.agent.kubelet.gpus import NodeGpus
from shoal.devices.pod_refusal import Refused
from shoal.devices.port import XidEvent
from shoal.embedded.gpus.dcgm import DcgmExporter
from shoal.embedded.gpus.simulated_driver import SimulatedDriver


def driver_of(spec: str) -> SimulatedDriver:
    machine = device_manager(spec)
    return SimulatedDriver(machine, DcgmExporter(machine, booted_s=0.0), lambda: 0.0)


def gpus_of(spec: str) -> NodeGpus:
    return NodeGpus(watched(driver_of(spec)))


def with_xid(watcher: HealthWatcher, driver: SilentDriver, event: XidEvent) -> None:
    driver.xids.append(event)
    assert watcher.next_xid()


def test_a_machine_without_a_driver_advertises_nothing_and_hides_all_gpus() -> None:
    gpus = NodeGpus(None)

    assert gpus.capacity() == {}
    assert gpus.environment("u", "main") == {"CUDA_VISIBLE_DEVICES": "", "NVIDIA_VISIBLE_DEVICES": "void"}


def test_pods_get_different_gpus_by_uuid() -> None:
    gpus = gpus_of("dgx-h100")

    assert gpus.capacity() == {"nvidia.com/gpu": "8"}
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


def test_a_gpu_that_is_lost_is_given_to_no_pod_until_it_is_listed_again() -> None:
    driver = ChangingDriver(driver_of("dgx-h100"))
    watcher = watched(driver)
    gpus = NodeGpus(watcher)
    assert gpus.admit(gpu_pod("a", 1)) is None
    first, before = driver_of("dgx-h100").gpus().gpus[0], driver.list
    driver.lose_first()
    watcher.read()

    assert (gpus.capacity(), gpus.allocatable()) == ({"nvidia.com/gpu": "8"}, {"nvidia.com/gpu": "7"})
    refused = gpus.admit(gpu_pod("b", 8))
    assert isinstance(refused, Refused)
    assert gpus.admit(gpu_pod("c", 6)) is None
    seen = gpus.environment("c", "main")["CUDA_VISIBLE_DEVICES"]
    assert first.uuid not in seen
    gpus.release("a")
    gpus.release("c")
    driver.list = before
    watcher.read()
    assert gpus.allocatable() == {"nvidia.com/gpu": "8"}
    assert gpus.admit(gpu_pod("d", 8)) is None


def test_a_gpu_with_an_xid_is_not_healthy_and_its_pods_are_known() -> None:
    driver = SilentDriver(driver_of("dgx-h100"))
    watcher = watched(driver)
    gpus = NodeGpus(watcher)
    gpus.admit(gpu_pod("a", 2))
    uuid = gpus.environment("a", "main")["CUDA_VISIBLE_DEVICES"].split(",")[0]
    with_xid(watcher, driver, XidEvent(uuid, 79))

    assert gpus.allocatable() == {"nvidia.com/gpu": "7"}
    assert gpus.users(uuid) == ("a",)
    assert gpus.users("GPU-of-no-pod") == ()


def test_gpus_of_a_stored_pod_that_the_driver_lists_only_later_are_not_given_to_another_pod() -> None:
    held = gpus_of("dgx-h100")
    held.admit(gpu_pod("a", 3))
    driver = ChangingDriver(driver_of("dgx-h100"))
    listed, driver.list = driver.list, None
    watcher = watched(driver)
    gpus = NodeGpus(watcher)
    gpus.restore("a", held.held("a"))
    assert gpus.held("a") == held.held("a")
    driver.list = listed
    watcher.read()

    assert gpus.admit(gpu_pod("b", 5)) is None
    assert isinstance(gpus.admit(gpu_pod("c", 1)), Refused)
    assert gpus.environment("a", "main") == held.environment("a", "main")
    assert gpus.held("a") == held.held("a")


def test_pods_get_instances_of_gpus_in_mig_mode_and_a_fault_of_one_leaves_the_others() -> None:
    resource = "nvidia.com/mig-1g.10gb"
    manager = device_manager("dgx-h100[mig=all-1g.10gb]")
    driver = SilentDriver(SimulatedDriver(manager, DcgmExporter(manager, booted_s=0.0), lambda: 0.0))
    watcher = watched(driver)
    gpus = NodeGpus(watcher)

    assert gpus.capacity() == {resource: "56"}
    assert gpus.admit(gpu_pod("a", 2, resource)) is None
    seen = gpus.environment("a", "main")["CUDA_VISIBLE_DEVICES"].split(",")
    assert [one[:4] for one in seen] == ["MIG-", "MIG-"]
    first = driver.gpus().gpus[0]
    instance = first.instances[3].instance
    with_xid(watcher, driver, XidEvent(first.uuid, 95, instance))
    assert gpus.allocatable() == {resource: "55"}
