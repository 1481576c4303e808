"""Computes which MPS control daemons a node needs: one for each resource that MPS shares, over all GPUs of it.

The folders, files and commands are those of NVIDIA's device plugin. Limits of memory name a GPU by its index, because
daemons ignore UUIDs there. Guarantee: a configuration with which the plugin would not start gives a problem and no
daemon.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath

import msgspec

from shoal.devices.advertised_devices import PhysicalDevice, inventory
from shoal.devices.discovered import layouts_of, slots_of
from shoal.devices.mps_limits import check_mps_clients, most_clients_of
from shoal.devices.plugin_config import PluginConfig
from shoal.devices.plugin_resources import PluginConfigError
from shoal.devices.port import InstalledGpu

MPS_INSIDE = "/mps"
"""The root in containers."""
HEALTH_COMMAND = "get_default_active_thread_percentage"


class MpsFolders(msgspec.Struct, frozen=True):
    """Of the daemon of one resource. `root`: that of all daemons."""

    root: str
    resource: str

    @property
    def own(self) -> PurePosixPath:
        return PurePosixPath(self.root) / self.resource

    @property
    def pipe(self) -> str:
        return str(self.own / "pipe")

    @property
    def log(self) -> str:
        return str(self.own / "log")

    @property
    def shared_memory(self) -> str:
        """Of the daemons and the containers of all resources."""
        return str(PurePosixPath(self.root) / "shm")

    @property
    def started_file(self) -> str:
        return str(self.own / ".started")

    @property
    def ready_file(self) -> str:
        return str(PurePosixPath(self.root) / ".ready")


class MpsGpu(msgspec.Struct, frozen=True):
    index: int
    uuid: str
    client_mib: int
    """The memory that each client can allocate; 0: the memory of the GPU is unknown, and there is no limit."""


class MpsDaemon(msgspec.Struct, frozen=True):
    folders: MpsFolders
    gpus: tuple[MpsGpu, ...]
    thread_percent: int
    """The part of the multiprocessors that each client can use."""
    is_alone: bool = False
    """Whether it sees these GPUs only, numbered in this order."""

    @property
    def resource(self) -> str:
        return self.folders.resource

    @property
    def environment(self) -> dict[str, str]:
        """Indexes of GPUs are then the driver's, also on a node with different models."""
        visible = {"CUDA_VISIBLE_DEVICES": ",".join(gpu.uuid for gpu in self.gpus)} if self.is_alone else {}
        return {
            "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
            "CUDA_MPS_PIPE_DIRECTORY": self.folders.pipe,
            "CUDA_MPS_LOG_DIRECTORY": self.folders.log,
            **visible,
        }

    @property
    def default_limits(self) -> tuple[str, ...]:
        """The commands that limit clients of servers that the daemon starts from now on."""
        memory = (f"set_default_device_pinned_mem_limit {gpu.index} {gpu.client_mib}M" for gpu in self._limited)
        return (*memory, f"set_default_active_thread_percentage {self.thread_percent}")

    def limits_of_server(self, pid: int) -> tuple[str, ...]:
        """The commands that limit new clients of a server that is running."""
        memory = (f"set_device_pinned_mem_limit {pid} {gpu.index} {gpu.client_mib}M" for gpu in self._limited)
        return (*memory, f"set_active_thread_percentage {pid} {self.thread_percent}")

    @property
    def _limited(self) -> tuple[MpsGpu, ...]:
        return tuple(gpu for gpu in self.gpus if gpu.client_mib)


class MpsPlan(msgspec.Struct, frozen=True):
    daemons: tuple[MpsDaemon, ...] = ()
    problem: str = ""
    """Why the device plugin does not start with this configuration; empty: it starts."""


def mps_plan(gpus: Sequence[InstalledGpu], config: PluginConfig, root: str) -> MpsPlan:
    """`root`: the folder of MPS on the host."""
    if config.sharing != "mps":
        return MpsPlan()
    found = inventory(slots_of(gpus), layouts_of(gpus), config)
    if found.problem is not None:
        return MpsPlan(problem=found.problem.message)
    shared = {name: of for name, devices in found.devices.items() if (of := _shared(devices))}
    capabilities = {gpu.uuid: gpu.compute_capability or "" for gpu in gpus}
    try:
        for name, devices in shared.items():
            for one in devices:
                check_mps_clients(one.replicas, most_clients_of(capabilities[one.physical]), name)
    except PluginConfigError as error:
        return MpsPlan(problem=str(error))
    return MpsPlan(tuple(_daemon(MpsFolders(root, name), devices) for name, devices in shared.items()))


def client_mib(memory_mib: int, replicas: int) -> int:
    """The memory limit of a client."""
    return memory_mib // replicas


def _shared(devices: Sequence[PhysicalDevice]) -> tuple[PhysicalDevice, ...]:
    """One device for each GPU that has replicas."""
    first: dict[str, PhysicalDevice] = {}
    for device in devices:
        if device.replicas > 1:
            first.setdefault(device.physical, device)
    return tuple(first.values())


def _daemon(folders: MpsFolders, devices: Sequence[PhysicalDevice]) -> MpsDaemon:
    replicas = devices[0].replicas
    gpus = (MpsGpu(one.gpu, one.physical, client_mib(one.memory_mib, replicas)) for one in devices)
    return MpsDaemon(folders, tuple(sorted(gpus, key=lambda gpu: gpu.index)), 100 // replicas)
