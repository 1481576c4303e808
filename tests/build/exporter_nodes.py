"""A node with an exporter: simulated GPUs, a clock that the test moves, pods, and GPUs that do not answer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from threading import Event

from build.gpu_pods import device_manager
from shoal.agent.exporter.gpu_sampler import GpuSampler
from shoal.agent.exporter.node_state import NodeState
from shoal.agent.exporter.node_watch import NodeWatch, Sources
from shoal.agent.exporter.process_owners import ProcessOwners
from shoal.agent.exporter.settings import ExporterSettings
from shoal.devices.dcgm_holders import ContainerHolding
from shoal.devices.port import DriverVersions, GpuList, GpuReadings, LostGpu, XidEvent
from shoal.embedded.gpus.dcgm import DcgmExporter
from shoal.embedded.gpus.simulated_driver import SimulatedDriver
from shoal.units.errors import TemporaryError

_SAMPLE = re.compile(r"(?P<name>[a-zA-Z_:][a-zA-Z_0-9:]*)(?:\{(?P<labels>.*)\})? (?P<value>\S+)")
_LABEL = re.compile(r'([a-zA-Z_0-9]+)="((?:[^"\\]|\\.)*)"')
Row = tuple[dict[str, str], float]


def rows_in(text: str) -> dict[str, list[Row]]:
    """The rows of each metric."""
    found: dict[str, list[Row]] = {}
    for line in text.splitlines():
        match = _SAMPLE.fullmatch(line)
        assert match is not None or line.startswith("# "), line
        if match is not None:
            row = dict(_LABEL.findall(match["labels"] or "")), float(match["value"])
            found.setdefault(match["name"], []).append(row)
    return found


class FaultyDriver:
    """A driver some of whose GPUs do not answer, or fail with an error that no driver should raise."""

    def __init__(self, driver: SimulatedDriver) -> None:
        self._driver = driver
        self.hung: dict[str, Event] = {}
        self.broken: set[str] = set()
        self.changes: dict[str, GpuReadings] = {}
        self.xids: list[XidEvent] = []

    def versions(self) -> DriverVersions:
        return self._driver.versions()

    def gpus(self) -> GpuList:
        return self._driver.gpus()

    def read(self, uuid: str) -> GpuReadings | LostGpu:
        if uuid in self.broken:
            raise ZeroDivisionError("a defect of the driver")
        if uuid in self.hung:
            self.hung[uuid].wait(60)
        return self.changes.get(uuid) or self._driver.read(uuid)

    def next_xid(self, timeout_s: float) -> XidEvent | None:
        return self.xids.pop(0) if self.xids else self._driver.next_xid(timeout_s)

    def close(self) -> None:
        self._driver.close()


class ListedPods:
    """Implements PodDevices with the devices that a test gives."""

    def __init__(self) -> None:
        self.now: Sequence[ContainerHolding] | None = ()

    def holdings(self) -> Sequence[ContainerHolding]:
        if self.now is None:
            raise TemporaryError("the kubelet does not answer", 1.0)
        return self.now


class ExporterNode:
    def __init__(
        self,
        machine: str = "dgx-h100",
        settings: ExporterSettings = ExporterSettings(hostname="node-1"),  # noqa: B008
        owners: ProcessOwners | None = None,
        *,
        asks_kubelet: bool = True,
    ) -> None:
        self.now_s = 1_000.0
        self.manager = device_manager(machine)
        exporter = DcgmExporter(self.manager, booted_s=0.0)
        self.driver = FaultyDriver(SimulatedDriver(self.manager, exporter, lambda: self.now_s))
        self.pods = ListedPods()
        self.state = NodeState(settings, self.driver.versions().driver, asks_kubelet=asks_kubelet)
        sources = Sources(self.pods if asks_kubelet else None, owners)
        self.watch = NodeWatch(self.driver, self.state, settings, sources, lambda: self.now_s)
        self.state.list_gpus(self.driver.gpus())

    def read(self, at_s: float | None = None) -> None:
        """Read each GPU that answers, as its thread would."""
        self.now_s = at_s if at_s is not None else self.now_s
        for gpu in self.driver.gpus().gpus:
            if gpu.uuid not in self.driver.hung:
                self.sampler(gpu.uuid).take()

    def sampler(self, uuid: str) -> GpuSampler:
        return GpuSampler(self.driver, uuid, lambda: self.now_s, self.watch.take)

    def rows(self) -> dict[str, list[Row]]:
        return rows_in(self.state.text(self.now_s))


def owners_below(folder: Path, pods: dict[int, tuple[str, str, str]]) -> ProcessOwners:
    """`pods`: namespace, name and UID of the pod of each process."""
    for pid, (namespace, name, uid) in pods.items():
        process = folder / "proc" / str(pid)
        process.mkdir(parents=True)
        (process / "cgroup").write_text(f"0::/kubepods/burstable/pod{uid}/{'c' * 64}\n")
        (folder / "logs" / f"{namespace}_{name}_{uid}").mkdir(parents=True)
    return ProcessOwners(folder / "proc", folder / "logs")
