"""The device plugin against a kubelet's real interface: registration, lists, allocations, restarts and faults."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import grpc
import msgspec
import pytest

from build.fake_kubelet import FakeKubelet, fake_kubelet
from build.gpu_pods import device_manager
from build.silent_driver import SilentDriver
from shoal.agent.health.watcher import HealthTimes, HealthWatcher
from shoal.agent.parts import Stop
from shoal.agent.plugin.device_plugin import DevicePlugin, NodeParts, PluginSettings
from shoal.devices.device_ids import device_of_replica
from shoal.devices.plugin_config import parse_plugin_config
from shoal.devices.plugin_flags import PluginFlags
from shoal.devices.port import GpuList, MigInstance
from shoal.embedded.gpus.dcgm import DcgmExporter
from shoal.embedded.gpus.simulated_driver import SimulatedDriver

GPU = "nvidia.com/gpu"
SHARED = """
version: v1
sharing:
  timeSlicing:
    resources:
    - name: nvidia.com/gpu
      replicas: 4
"""
FLAGS = PluginFlags(mps_root="/run/nvidia/mps")


def settings(config: str = "version: v1", flags: PluginFlags = FLAGS) -> PluginSettings:
    return PluginSettings(flags, parse_plugin_config(config, "mixed"))


class Node:
    """A machine with its plugin, in a folder of its own because paths of sockets are short."""

    def __init__(self, folder: Path, machine: str = "dgx-h100", chosen: PluginSettings | None = None) -> None:
        self.folder = folder
        self.now_s = 0.0
        self.manager = device_manager(machine)
        simulated = SimulatedDriver(self.manager, DcgmExporter(self.manager, booted_s=0.0), lambda: self.now_s)
        self.driver = driver = SilentDriver(simulated)
        self.health = HealthWatcher(driver, lambda: self.now_s, times=HealthTimes(wait_s=0))
        self.health.read()
        parts = NodeParts(driver, self.health.is_usable, lambda: self.now_s, patience_s=0.2)
        self.plugin = DevicePlugin(folder, parts, chosen or settings())

    def fail(self, gpu: int, xid: int) -> None:
        self.manager.fail(gpu, xid)
        self.health.next_xid()
        self.health.read()
        self.plugin.check()

    def mend(self, gpu: int) -> None:
        self.manager.mend(gpu)
        self.now_s += 120.0
        self.health.read()
        self.plugin.check()


@pytest.fixture
def folder() -> Iterator[Path]:
    with TemporaryDirectory(prefix="plugins-") as name:
        yield Path(name)


@pytest.fixture
def make(folder: Path) -> Iterator[Callable[..., Node]]:
    """Makes nodes in the folder; their plugins are stopped at the end, because threads of gRPC outlive a test."""
    made: list[Node] = []

    def one(*given: Any, **named: Any) -> Node:
        made.append(Node(folder, *given, **named))
        return made[-1]

    yield one
    for node in made:
        node.plugin.stop()


@pytest.fixture
def node(make: Callable[..., Node]) -> Node:
    return make()


@pytest.fixture
def kubelet(folder: Path) -> Iterator[FakeKubelet]:
    with fake_kubelet(folder) as found:
        yield found


def test_the_kubelet_knows_all_gpus_after_the_first_check(node: Node, kubelet: FakeKubelet) -> None:
    node.plugin.check()
    kubelet.until(lambda: kubelet.allocatable() == 8)
    assert [(one.resource_name, one.endpoint) for one in kubelet.registrations] == [(GPU, "nvidia-gpu.sock")]
    assert kubelet.registrations[0].options.get_preferred_allocation_available
    assert set(kubelet.devices()) == {slot.uuid for slot in node.manager.machine.gpus}


def test_a_container_sees_the_gpus_that_it_was_given(node: Node, kubelet: FakeKubelet) -> None:
    node.plugin.check()
    kubelet.until(lambda: kubelet.allocatable() == 8)
    answer = kubelet.allocate("a", 2)
    assert answer.envs == {"NVIDIA_VISIBLE_DEVICES": ",".join(kubelet.held["a"][GPU])}
    assert not answer.devices


def test_an_unknown_device_is_refused_in_the_plugins_words(node: Node, kubelet: FakeKubelet) -> None:
    node.plugin.check()
    kubelet.until(lambda: kubelet.allocatable() == 8)
    with pytest.raises(grpc.RpcError, match="invalid request: unknown device: GPU-x"):
        kubelet.ask("GPU-x")


def test_without_a_kubelet_the_plugin_waits_and_then_registers(node: Node, folder: Path) -> None:
    node.plugin.check()
    assert node.plugin.resources == {}
    with fake_kubelet(folder) as kubelet:
        node.plugin.check()
        kubelet.until(lambda: kubelet.allocatable() == 8)


def test_a_restarted_kubelet_gets_everything_again_and_keeps_its_allocations(node: Node, folder: Path) -> None:
    with fake_kubelet(folder) as kubelet:
        node.plugin.check()
        kubelet.until(lambda: kubelet.allocatable() == 8)
        kubelet.allocate("a", 3)
        held = kubelet.held["a"][GPU]
    with fake_kubelet(folder) as again:
        node.plugin.check()
        again.until(lambda: again.allocatable() == 8)
        again.allocate("b", 5)
        assert set(again.held["b"][GPU]).isdisjoint(held)


def test_a_restarted_plugin_takes_over_the_socket(make: Callable[..., Node], kubelet: FakeKubelet) -> None:
    first = make()
    first.plugin.check()
    kubelet.until(lambda: kubelet.allocatable() == 8)
    second = make()
    second.plugin.check()
    kubelet.until(lambda: len(kubelet.registrations) == 2)
    kubelet.until(lambda: kubelet.allocatable() == 8)
    assert kubelet.allocate("a", 1).envs


def test_the_end_of_the_plugin_withdraws_its_devices(node: Node, kubelet: FakeKubelet) -> None:
    node.plugin.check()
    kubelet.until(lambda: kubelet.allocatable() == 8)
    node.plugin.stop()
    kubelet.until(lambda: kubelet.allocatable() == 0)


def test_a_registration_that_the_kubelet_refuses_is_tried_again(node: Node, kubelet: FakeKubelet) -> None:
    kubelet.refusal = "not ready"
    node.plugin.check()
    assert kubelet.registrations == []
    kubelet.refusal = ""
    node.plugin.check()
    assert kubelet.registrations == [], "it waits before the next try"
    node.now_s += 1.0
    node.plugin.check()
    kubelet.until(lambda: kubelet.allocatable() == 8)


def test_a_gpu_with_a_fault_is_listed_as_unhealthy_and_returns_when_it_recovers(
    node: Node, kubelet: FakeKubelet
) -> None:
    node.plugin.check()
    kubelet.until(lambda: kubelet.allocatable() == 8)
    node.fail(2, 95)
    kubelet.until(lambda: kubelet.allocatable() == 7)
    assert kubelet.capacity() == 8
    assert kubelet.devices()[node.manager.machine.gpus[2].uuid] == "Unhealthy"
    node.mend(2)
    kubelet.until(lambda: kubelet.allocatable() == 8)


def test_a_lost_gpu_stays_listed(node: Node, kubelet: FakeKubelet) -> None:
    node.plugin.check()
    kubelet.until(lambda: kubelet.allocatable() == 8)
    node.fail(5, 79)
    kubelet.until(lambda: kubelet.allocatable() == 7)
    assert kubelet.capacity() == 8


@pytest.mark.parametrize("hangs", [True, False])
def test_a_driver_that_does_not_respond_keeps_no_change_of_the_health_from_the_kubelet(
    node: Node, kubelet: FakeKubelet, hangs: bool
) -> None:
    node.plugin.check()
    kubelet.until(lambda: kubelet.allocatable() == 8)
    node.manager.fail(2, 79)
    node.health.next_xid()
    node.driver.is_silent, node.driver.hangs_at_list = not hangs, hangs
    node.driver.hold.clear()
    node.plugin.check()
    kubelet.until(lambda: (kubelet.allocatable(), kubelet.capacity()) == (7, 8))
    node.driver.hold.set()


@pytest.mark.parametrize("hangs", [True, False])
def test_a_kubelet_that_restarts_while_the_driver_does_not_respond_gets_the_known_devices(
    node: Node, folder: Path, hangs: bool
) -> None:
    with fake_kubelet(folder) as kubelet:
        node.plugin.check()
        kubelet.until(lambda: kubelet.allocatable() == 8)
    node.driver.is_silent, node.driver.hangs_at_list = not hangs, hangs
    node.driver.hold.clear()
    with fake_kubelet(folder) as again:
        node.plugin.check()
        again.until(lambda: again.allocatable() == 8)
    node.driver.hold.set()


def test_an_error_of_a_program_changes_nothing(node: Node, kubelet: FakeKubelet) -> None:
    node.plugin.check()
    kubelet.until(lambda: kubelet.allocatable() == 8)
    lists = kubelet.lists_received
    node.fail(2, 13)
    assert (kubelet.allocatable(), kubelet.lists_received) == (8, lists)


def test_mig_instances_are_resources_of_their_own(make: Callable[..., Node], kubelet: FakeKubelet) -> None:
    node = make("dgx-h100[mig=all-balanced]")
    node.plugin.check()
    kubelet.until(lambda: len(kubelet.registrations) == 3)
    assert {one.resource_name: one.endpoint for one in kubelet.registrations} == {
        f"nvidia.com/mig-{name}": f"nvidia-mig-{name}.sock" for name in ("1g.10gb", "2g.20gb", "3g.40gb")
    }
    kubelet.until(lambda: kubelet.allocatable("nvidia.com/mig-3g.40gb") == 8)
    answer = kubelet.allocate("a", 1, "nvidia.com/mig-3g.40gb")
    assert answer.envs["NVIDIA_VISIBLE_DEVICES"].startswith("MIG-")


def test_a_fault_of_a_gpu_takes_all_its_instances(make: Callable[..., Node], kubelet: FakeKubelet) -> None:
    node = make("dgx-h100[mig=all-1g.10gb]")
    node.plugin.check()
    name = "nvidia.com/mig-1g.10gb"
    kubelet.until(lambda: kubelet.allocatable(name) == 56)
    node.fail(0, 95)
    kubelet.until(lambda: kubelet.allocatable(name) == 49)


def test_replicas_of_one_gpu_are_spread_over_gpus(make: Callable[..., Node], kubelet: FakeKubelet) -> None:
    node = make(chosen=settings(SHARED))
    node.plugin.check()
    kubelet.until(lambda: kubelet.allocatable() == 32)
    for number in range(8):
        kubelet.allocate(f"c{number}", 1)
    given = [device_of_replica(kubelet.held[f"c{number}"][GPU][0]) for number in range(8)]
    assert len(set(given)) == 8


def test_a_fault_takes_every_replica_of_the_gpu(make: Callable[..., Node], kubelet: FakeKubelet) -> None:
    node = make(chosen=settings(SHARED))
    node.plugin.check()
    kubelet.until(lambda: kubelet.allocatable() == 32)
    node.fail(1, 95)
    kubelet.until(lambda: kubelet.allocatable() == 28)


def test_another_configuration_is_used_without_a_restart(node: Node, kubelet: FakeKubelet) -> None:
    node.plugin.check()
    kubelet.until(lambda: kubelet.allocatable() == 8)
    node.plugin.configure(settings(SHARED))
    node.plugin.check()
    kubelet.until(lambda: kubelet.allocatable() == 32)
    renamed = SHARED.replace("timeSlicing:", "timeSlicing:\n    renameByDefault: true")
    node.plugin.configure(settings(renamed))
    node.plugin.check()
    kubelet.until(lambda: (kubelet.allocatable(), kubelet.allocatable("nvidia.com/gpu.shared")) == (0, 32))


def test_a_configuration_that_does_not_fit_the_gpus_changes_nothing(
    make: Callable[..., Node], kubelet: FakeKubelet
) -> None:
    node = make("dgx-h100[mig=all-balanced]")
    node.plugin.check()
    name = "nvidia.com/mig-3g.40gb"
    kubelet.until(lambda: kubelet.allocatable(name) == 8)
    node.plugin.configure(
        PluginSettings(FLAGS, parse_plugin_config("version: v1\nflags: {migStrategy: single}", "none"))
    )
    node.plugin.check()
    assert kubelet.allocatable(name) == 8


def test_a_fault_is_served_also_while_the_configuration_does_not_fit_the_gpus(
    make: Callable[..., Node], kubelet: FakeKubelet
) -> None:
    node = make("dgx-h100[mig=all-1g.10gb]")
    node.plugin.check()
    name = "nvidia.com/mig-1g.10gb"
    kubelet.until(lambda: kubelet.allocatable(name) == 56)
    node.plugin.configure(settings(SHARED.replace("timeSlicing", "mps")))
    node.plugin.check()
    node.fail(0, 79)
    kubelet.until(lambda: (kubelet.allocatable(name), kubelet.capacity(name)) == (49, 56))


def test_a_kubelet_that_restarts_while_the_configuration_does_not_fit_gets_the_former_devices(
    make: Callable[..., Node], folder: Path
) -> None:
    node = make("dgx-h100[mig=all-1g.10gb]")
    with fake_kubelet(folder) as kubelet:
        node.plugin.check()
        kubelet.until(lambda: kubelet.allocatable("nvidia.com/mig-1g.10gb") == 56)
    node.plugin.configure(settings(SHARED.replace("timeSlicing", "mps")))
    with fake_kubelet(folder) as again:
        node.plugin.check()
        again.until(lambda: again.allocatable("nvidia.com/mig-1g.10gb") == 56)


def test_devices_that_no_longer_exist_are_unhealthy_while_the_rest_does_not_fit_the_configuration(
    make: Callable[..., Node], kubelet: FakeKubelet
) -> None:
    single = PluginSettings(FLAGS, parse_plugin_config("version: v1\nflags: {migStrategy: single}", "none"))
    node = make("dgx-h100[mig=all-1g.10gb]", single)
    node.plugin.check()
    kubelet.until(lambda: kubelet.allocatable() == 56)
    first, *others = node.driver.gpus().gpus
    divided = msgspec.structs.replace(
        first, instances=(msgspec.structs.replace(first.instances[0], uuid="MIG-new", profile="7g.80gb", start=0),)
    )
    node.driver.list = GpuList((divided, *others))
    node.plugin.check()
    kubelet.until(lambda: (kubelet.allocatable(), kubelet.capacity()) == (49, 56))


def test_a_socket_that_was_removed_is_served_again(node: Node, kubelet: FakeKubelet, folder: Path) -> None:
    node.plugin.check()
    kubelet.until(lambda: kubelet.allocatable() == 8)
    (folder / "nvidia-gpu.sock").unlink()
    node.plugin.check()
    kubelet.until(lambda: len(kubelet.registrations) == 2 and kubelet.allocatable() == 8)


def test_mps_clients_get_the_pipe_of_their_daemon(make: Callable[..., Node], kubelet: FakeKubelet) -> None:
    node = make(chosen=settings(SHARED.replace("timeSlicing", "mps")))
    node.plugin.check()
    kubelet.until(lambda: kubelet.allocatable() == 32)
    answer = kubelet.allocate("a", 1)
    assert answer.envs["CUDA_MPS_PIPE_DIRECTORY"] == "/mps/nvidia.com/gpu/pipe"
    assert {one.container_path: one.host_path for one in answer.mounts} == {
        "/mps/nvidia.com/gpu/pipe": "/run/nvidia/mps/nvidia.com/gpu/pipe",
        "/dev/shm": "/run/nvidia/mps/shm",  # noqa: S108
    }
    with pytest.raises(grpc.RpcError, match="maximum request size for shared resources is 1; found 2"):
        kubelet.allocate("b", 2)


def test_device_nodes_and_cdi_names_are_answered_where_they_are_configured(
    make: Callable[..., Node], kubelet: FakeKubelet
) -> None:
    flags = msgspec.structs.replace(
        FLAGS, device_list_strategy=("envvar", "cdi-cri", "cdi-annotations"), pass_device_specs=True
    )
    node = make(chosen=msgspec.structs.replace(settings(flags=flags), common_nodes=("/dev/nvidiactl",)))
    node.plugin.check()
    kubelet.until(lambda: kubelet.allocatable() == 8)
    answer = kubelet.allocate("a", 1)
    uuid = kubelet.held["a"][GPU][0]
    index = next(slot.index for slot in node.manager.machine.gpus if slot.uuid == uuid)
    assert [(one.host_path, one.permissions) for one in answer.devices] == [
        ("/dev/nvidiactl", "rw"),
        (f"/dev/nvidia{index}", "rw"),
    ]
    assert [one.name for one in answer.cdi_devices] == [f"k8s.device-plugin.nvidia.com/gpu={uuid}"]
    assert list(answer.annotations.values()) == [f"k8s.device-plugin.nvidia.com/gpu={uuid}"]
    assert next(iter(answer.annotations)).startswith("cdi.k8s.io/nvidia-device-plugin_")


def test_a_thousand_allocations_never_give_a_device_twice(node: Node, kubelet: FakeKubelet) -> None:
    node.plugin.check()
    kubelet.until(lambda: kubelet.allocatable() == 8)
    random, names = Random(7), iter(range(10_000))
    done = 0
    while done < 1000:
        if kubelet.held and random.random() < 0.5:
            kubelet.end(random.choice(sorted(kubelet.held)))
            continue
        name = f"c{next(names)}"
        try:
            answer = kubelet.allocate(name, random.randint(1, 4))
        except LookupError:
            kubelet.end(random.choice(sorted(kubelet.held)))
            continue
        done += 1
        given = kubelet.held[name][GPU]
        assert answer.envs["NVIDIA_VISIBLE_DEVICES"] == ",".join(given)
        others = [one for other, held in kubelet.held.items() if other != name for one in held[GPU]]
        assert set(given).isdisjoint(others)


def test_the_plugin_runs_until_it_is_stopped(node: Node, kubelet: FakeKubelet) -> None:
    stop = Stop()
    thread = threading.Thread(target=node.plugin.run, args=(stop, 3600.0), daemon=True)
    thread.start()
    kubelet.until(lambda: kubelet.allocatable() == 8)
    node.manager.fail(3, 95)
    node.health.next_xid()
    node.plugin.wake()
    kubelet.until(lambda: kubelet.allocatable() == 7)
    stop.set()
    thread.join(20)
    assert not thread.is_alive()
    kubelet.until(lambda: kubelet.allocatable() == 0)


def test_new_devices_are_described_before_the_kubelet_can_give_them_to_containers(
    node: Node, kubelet: FakeKubelet
) -> None:
    """A container that refers to a device without a CDI specification does not start."""
    described: list[int] = []
    node.plugin.prepare_by(lambda gpus: described.append(sum(map(len, [one.instances or (one,) for one in gpus]))))
    listed = node.driver.gpus()
    node.plugin.check()
    kubelet.until(lambda: kubelet.allocatable() == 8)
    assert described == [8]
    instance = MigInstance("MIG-new", "7g.80gb", 0, 0, 8, 80_000)
    divided = msgspec.structs.replace(listed.gpus[0], is_mig=True, instances=(instance, instance))
    node.driver.list = GpuList((divided, *listed.gpus[1:]))
    node.plugin.prepare_by(lambda _: described.append(kubelet.capacity("nvidia.com/mig-7g.80gb")))
    node.plugin.check()
    assert described == [8, 9, 0]
    node.plugin.check()
    assert described == [8, 9, 0], "nothing has changed"
