"""The device plugin of a node with 8 GPUs in 7 MIG instances each and 50 pods, each figure beside its bar.

python -m bench.agent_plugin [--quick]

`shoal agent run` is a process of its own with simulated GPUs, registered at a kubelet of the tests. The time of the
handler, and that from an Xid to the kubelet's list, are measured in this process, with the agent's threads.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import combinations
from pathlib import Path
from random import Random
from time import monotonic, perf_counter

from rich.console import Console

import bench.cluster  # noqa: F401 - makes the helpers of the tests importable
from bench.cluster.figures import Figure, table
from build.fake_kubelet import FakeKubelet, fake_kubelet
from build.gpu_pods import container, device_manager, pod_of
from shoal.agent.health.watcher import HealthTimes, HealthWatcher
from shoal.agent.parts import Stop
from shoal.agent.plugin.device_plugin import DevicePlugin, NodeParts, PluginSettings
from shoal.agent.plugin.scheduler_choice import SchedulerChoice
from shoal.devices.gpu_groups import Scores, pair_scores
from shoal.devices.plugin_config import PluginConfig
from shoal.devices.plugin_flags import PluginFlags
from shoal.embedded.gpus.dcgm import DcgmExporter
from shoal.embedded.gpus.device_manager import DeviceManager
from shoal.embedded.gpus.simulated_driver import SimulatedDriver

_MACHINE, _MIG, _GPU = "dgx-h100[mig=all-1g.10gb]", "nvidia.com/mig-1g.10gb", "nvidia.com/gpu"
_PODS = 50
_HANDLER_MS, _ROUND_TRIP_MS, _XID_S = 2, 5, 1
_HOSTS = ("dgx-a100-40", "dgx-a100-80", "dgx-h100", "l40s-box-8")
_XID = 95


class _NoAbort:
    """Stands for the context of a call."""

    def abort(self, _: object, details: str) -> None:
        raise AssertionError(details)


class _Node:
    """The plugin of a machine in this process, with its threads."""

    def __init__(self, folder: Path, machine: str, choice: SchedulerChoice | None = None) -> None:
        self.manager: DeviceManager = device_manager(machine)
        driver = SimulatedDriver(self.manager, DcgmExporter(self.manager, booted_s=0.0), monotonic)
        self._health = HealthWatcher(driver, monotonic, times=HealthTimes(wait_s=0.05))
        parts = NodeParts(driver, self._health.is_usable, monotonic)
        settings = PluginSettings(PluginFlags(mps_root="/run/nvidia/mps"), PluginConfig(mig_strategy="mixed"))
        self.plugin = DevicePlugin(folder, parts, settings, choice)
        self._health.listen(lambda _: self.plugin.wake())
        self._stop = Stop()
        self._thread = threading.Thread(target=self.plugin.run, args=(self._stop,), daemon=True)

    @contextmanager
    def running(self) -> Iterator[None]:
        self._health.start()
        self._thread.start()
        try:
            yield
        finally:
            self._stop.set()
            self._thread.join()
            self._health.stop()


def handler_ms(folder: Path, kubelet: FakeKubelet, count: int) -> list[float]:
    """Sorted. 50 pods wait for their devices."""
    from shoal.agent.protos import deviceplugin_pb2 as messages

    choice = SchedulerChoice(wait_s=0)
    node = _Node(folder, _MACHINE, choice)
    times = []
    with node.running():
        kubelet.until(lambda: kubelet.allocatable(_MIG) == 56)
        server = node.plugin.server(_MIG)
        ids = [device.id for device in server.served.devices]
        for number in range(count):
            if number % _PODS == 0:
                choice.set_pods([pod_of(f"p{number + one}", [container("main", 1, _MIG)]) for one in range(_PODS)])
            request = messages.AllocateRequest(
                container_requests=[messages.ContainerAllocateRequest(devices_ids=[ids[number % len(ids)]])]
            )
            begun = perf_counter()
            server.allocate(request, _NoAbort())  # type: ignore[arg-type]
            times.append((perf_counter() - begun) * 1000)
    return sorted(times)


def round_trips(folder: Path, kubelet: FakeKubelet, count: int) -> tuple[list[float], int]:
    """The times of Allocate over the socket, sorted; and how many containers got other devices than were asked for, or
    devices of another container.
    """
    random, times, wrong = Random(1), list[float](), 0
    with _agent(folder):
        kubelet.until(lambda: kubelet.allocatable(_MIG) == 56)
        for number in range(count):
            while len(kubelet.held) >= _PODS:
                kubelet.end(random.choice(sorted(kubelet.held)))
            name = f"c{number}"
            answer = kubelet.allocate(name, 1, _MIG)
            given = kubelet.held[name][_MIG]
            others = {one for other, held in kubelet.held.items() if other != name for one in held[_MIG]}
            wrong += answer.envs["NVIDIA_VISIBLE_DEVICES"] != ",".join(given) or not others.isdisjoint(given)
            begun = perf_counter()
            kubelet.ask(*given, resource=_MIG)
            times.append((perf_counter() - begun) * 1000)
    return sorted(times), wrong


def xid_s(folder: Path, kubelet: FakeKubelet, times: int) -> float:
    """The longest time from an Xid to a list in which the GPU is unhealthy."""
    node, longest = _Node(folder, "dgx-h100"), 0.0
    with node.running():
        for index in range(times):
            _until_healthy(kubelet, 8 - index)
            begun = perf_counter()
            node.manager.fail(index, _XID)
            _until_healthy(kubelet, 7 - index)
            longest = max(longest, perf_counter() - begun)
    return longest


def _until_healthy(kubelet: FakeKubelet, count: int) -> None:
    kubelet.until(lambda: kubelet.allocatable() == count)


def groups_below_the_best(folder: Path, kubelet: FakeKubelet) -> int:
    """Over hosts: how often 4 of 8 free GPUs are connected less well than the best 4."""
    below = 0
    for host in _HOSTS:
        node = _Node(folder, host)
        scores = pair_scores(node.manager.reported)
        with node.running():
            kubelet.until(lambda: kubelet.allocatable() == 8)
            kubelet.allocate(host, 4)
            found = kubelet.held.pop(host)[_GPU]
        kubelet.until(lambda: kubelet.allocatable() == 0)

        best = max(_score(group, scores) for group in combinations([gpu.uuid for gpu in node.manager.reported], 4))
        below += _score(found, scores) < best
    return below


def _score(group: Sequence[str], scores: Scores) -> int:
    return sum(scores.get((one, other), 0) for one, other in combinations(group, 2))


@contextmanager
def _agent(folder: Path) -> Iterator[None]:
    command = [sys.executable, "-m", "shoal", "agent", "run", "--fake", _MACHINE, "--mig-strategy", "mixed"]
    with subprocess.Popen(  # noqa: S603
        [*command, "--device-plugin-dir", str(folder)], stderr=subprocess.DEVNULL
    ) as process:
        try:
            yield
        finally:
            process.terminate()


@contextmanager
def _kubelet() -> Iterator[tuple[Path, FakeKubelet]]:
    with tempfile.TemporaryDirectory(prefix="plugins-") as name, fake_kubelet(Path(name)) as kubelet:
        yield Path(name), kubelet


def measure(count: int) -> list[Figure]:
    with _kubelet() as (folder, kubelet):
        handler = handler_ms(folder, kubelet, count)
    with _kubelet() as (folder, kubelet):
        over_socket, wrong = round_trips(folder, kubelet, count)
    with _kubelet() as (folder, kubelet):
        longest = xid_s(folder, kubelet, 7)
    with _kubelet() as (folder, kubelet):
        below = groups_below_the_best(folder, kubelet)
    at = int(count * 0.99)
    beside = f"{count} allocations"
    median = f"{beside}, median {over_socket[count // 2]:.1f} ms"
    return [
        Figure("Allocate, handler, 99 of 100", handler[at], " ms", most=_HANDLER_MS, beside=f"{beside}, 50 pods wait"),
        Figure("Allocate over the socket, 99 of 100", over_socket[at], " ms", most=_ROUND_TRIP_MS, beside=median),
        Figure("wrong allocations", wrong, "", most=0, beside=beside),
        Figure("Xid to the kubelet's list, longest", longest, " s", most=_XID_S, beside="7 GPUs, one after the other"),
        Figure("4 of 8 GPUs below the best score", below, "", most=0, beside=", ".join(_HOSTS)),
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer allocations")
    chosen = parser.parse_args(arguments)
    Console(highlight=False).print(table(measure(200 if chosen.quick else 1000)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
