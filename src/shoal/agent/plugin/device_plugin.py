"""Keeps the servers of all resources of this node in step with its GPUs, its configuration and its kubelet.

`check` compares the present state with what is served. Guarantees: after a restart of the kubelet, which removes the
sockets, every resource is served and registered again; while a configuration does not fit the GPUs, what was served
before remains, and devices that have a fault or no longer exist are unhealthy; a resource that cannot be registered is
tried again with increasing delays; devices of a GPU that was lost stay listed as unhealthy, because the kubelet would
otherwise forget the pods that hold them. While the driver does not respond, the devices are those that it listed last,
and changes of their health are served.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

import grpc
import msgspec

from shoal.agent.parts import Stop
from shoal.agent.patient_call import PatientCall
from shoal.agent.plugin.kubelet_calls import KUBELET_SOCKET
from shoal.agent.plugin.resource_server import DeviceChoice, ResourceServer, ServedDevices, unhealthy_ids
from shoal.devices.advertised_devices import PhysicalDevice, inventory
from shoal.devices.allocation_answer import AnswerSettings
from shoal.devices.cdi_devices import CdiInput, DriverFiles, indexes_of, nodes_of
from shoal.devices.cdi_spec import DeviceNode
from shoal.devices.discovered import layouts_of, slots_of, with_lost
from shoal.devices.gpu_groups import pair_scores
from shoal.devices.plugin_config import PluginConfig
from shoal.devices.plugin_flags import PluginFlags
from shoal.devices.port import GpuDriver, GpuList, InstalledGpu
from shoal.units.errors import TemporaryError

_log = logging.getLogger("shoal.agent.plugin")
_FIRST_RETRY_S, _LONGEST_RETRY_S = 1.0, 30.0


class PluginSettings(msgspec.Struct, frozen=True):
    flags: PluginFlags
    config: PluginConfig
    common_nodes: tuple[str, ...] = ()
    """Device nodes that the host has and every container needs."""


class NodeParts(msgspec.Struct, frozen=True):
    """What the plugin reads of its node."""

    driver: GpuDriver
    is_usable: Callable[[str, int | None], bool]
    """Whether a GPU, or this GPU instance of it, is healthy: by UUID and number."""
    clock: Callable[[], float]
    """Seconds."""
    capabilities: Callable[[], Mapping[str, int]] = dict
    """The minor numbers of MIG capabilities."""
    patience_s: float = 0.5
    """How long one list of the GPUs is waited for. A fault of a GPU is served within a second."""


class DevicePlugin:
    """`folder`: `/var/lib/kubelet/device-plugins`."""

    def __init__(
        self, folder: Path, parts: NodeParts, settings: PluginSettings, choice: DeviceChoice | None = None
    ) -> None:
        self._folder, self._parts, self._settings, self._choice = folder, parts, settings, choice
        self._servers: dict[str, ResourceServer] = {}
        self._unregistered: set[str] = set()
        self._kubelet: tuple[int, int] | None = None
        """Identifies the kubelet's socket."""
        self._list = PatientCall(parts.driver.gpus, parts.patience_s)
        self._listed: GpuList | None = None
        """As the driver listed them last."""
        self._known: dict[str, InstalledGpu] = {}
        self._fitting: Mapping[str, ServedDevices] = {}
        """The resources by the last configuration that fitted the GPUs."""
        self._retry_at_s, self._delay_s = 0.0, _FIRST_RETRY_S
        self._complaint = ""
        self._preparations: list[Callable[[Sequence[InstalledGpu]], object]] = []
        self._due = threading.Event()

    @property
    def resources(self) -> Mapping[str, int]:
        """The number of listed devices of each resource."""
        return {name: len(server.served.devices) for name, server in self._servers.items()}

    def server(self, resource: str) -> ResourceServer:
        return self._servers[resource]

    @property
    def settings(self) -> PluginSettings:
        return self._settings

    def configure(self, settings: PluginSettings) -> None:
        """Used from the next check on."""
        self._settings = settings
        self.wake()

    def prepare_by(self, prepare: Callable[[Sequence[InstalledGpu]], object]) -> None:
        """Called with the GPUs before other devices, or other answers about them, are served. Before `run`."""
        self._preparations.append(prepare)

    def wake(self) -> None:
        """Let `run` check now, as when the health of a GPU has changed."""
        self._due.set()

    def run(self, stop: Stop, interval_s: float = 1.0) -> None:
        """Checks until `stop` is set; then all servers are stopped."""
        with stop.calling(self.wake):
            try:
                while not stop.is_set():
                    self._due.clear()
                    self.check()
                    self._due.wait(interval_s)
            finally:
                self.stop()

    def stop(self) -> None:
        for server in self._servers.values():
            server.stop()
        self._servers.clear()
        self._unregistered.clear()

    def check(self) -> None:
        """Serve what the node has now, and register what the kubelet does not know."""
        kubelet = _identity(self._folder / KUBELET_SOCKET)
        if kubelet != self._kubelet:
            if kubelet is not None and self._kubelet is not None:
                _log.info("the kubelet has restarted; all resources are registered again")
            self._kubelet = kubelet
            self.stop()
            self._retry_at_s, self._delay_s = 0.0, _FIRST_RETRY_S
        if kubelet is None:
            self._complain(f"no kubelet listens at {self._folder / KUBELET_SOCKET}; waiting for it")
            return
        served = self._served()
        if served is None:
            return
        self._serve(served)
        if self._unregistered and self._parts.clock() >= self._retry_at_s:
            self._register()

    def _serve(self, wanted: Mapping[str, ServedDevices]) -> None:
        for name in [one for one in self._servers if one not in wanted]:
            _log.info("%s is not advertised any more", name)
            self._servers.pop(name).stop()
            self._unregistered.discard(name)
        for name, served in wanted.items():
            server = self._servers.get(name)
            if server is not None and server.socket.exists():
                server.update(served)
                continue
            if server is not None:
                # Another process has removed the socket.
                server.stop()
            server = ResourceServer(self._folder, served, self._choice)
            try:
                server.start()
            except OSError as error:
                self._complain(str(error))
                self._servers.pop(name, None)
                continue
            self._servers[name] = server
            self._unregistered.add(name)
            self._retry_at_s = 0.0

    def _register(self) -> None:
        for name in sorted(self._unregistered):
            server = self._servers[name]
            try:
                server.register(self._folder / KUBELET_SOCKET)
            except grpc.RpcError as error:
                self._complain(f"the kubelet did not register {name}: {_words(error)}")
                self._retry_at_s = self._parts.clock() + self._delay_s
                self._delay_s = min(2 * self._delay_s, _LONGEST_RETRY_S)
                return
            self._unregistered.discard(name)
            _log.info("registered %s with %d devices", name, len(server.served.devices))
        self._complaint, self._delay_s = "", _FIRST_RETRY_S

    def _served(self) -> Mapping[str, ServedDevices] | None:
        """None: the driver has listed no GPUs yet."""
        try:
            self._listed = self._list()
        except TemporaryError as error:
            self._complain(str(error))
        listed = self._listed
        if listed is None:
            return None
        self._known = with_lost(self._known, listed)
        gpus = sorted(self._known.values(), key=lambda gpu: gpu.index)
        lost = {one.uuid for one in listed.lost}
        found = inventory(slots_of(gpus), layouts_of(gpus), self._settings.config)
        if found.problem is not None:
            self._complain(f"the device plugin does not start: {found.problem.message}")
            return {
                name: msgspec.structs.replace(one, unhealthy=self._unhealthy(one.devices, gpus, lost))
                for name, one in self._fitting.items()
            }
        if not found.devices:
            self._complain("this machine has no GPU to advertise")
        answers, scores = self._answers(gpus), pair_scores(gpus)
        if found.devices.keys() != self._fitting.keys() or any(
            (one.devices, one.settings) != (found.devices[name], answers) for name, one in self._fitting.items()
        ):
            for prepare in self._preparations:
                prepare(gpus)
        self._fitting = {
            name: ServedDevices(name, devices, self._unhealthy(devices, gpus, lost), answers, scores)
            for name, devices in found.devices.items()
        }
        return self._fitting

    def _unhealthy(
        self, devices: Sequence[PhysicalDevice], gpus: Sequence[InstalledGpu], lost: Collection[str | None]
    ) -> frozenset[str]:
        """With those that do not exist any more."""
        parents = {gpu.uuid: gpu.uuid for gpu in gpus}
        parents |= {one.uuid: gpu.uuid for gpu in gpus for one in gpu.instances}

        def is_usable(device: PhysicalDevice) -> bool:
            uuid = parents.get(device.physical)
            number = device.cut.instance if device.cut is not None else None
            return uuid is not None and uuid not in lost and self._parts.is_usable(uuid, number)

        return unhealthy_ids(devices, is_usable)

    def _answers(self, gpus: Sequence[InstalledGpu]) -> AnswerSettings:
        settings = self._settings
        root = settings.flags.dev_root or settings.flags.driver_root
        given = CdiInput(tuple(gpus), "", DriverFiles(), self._parts.capabilities(), dev_root=root)
        prefix = root.rstrip("/")
        common = (DeviceNode(path, f"{prefix}{path}" if prefix else "") for path in settings.common_nodes)
        return AnswerSettings(settings.flags, settings.config, indexes_of(gpus), nodes_of(given), tuple(common))

    def _complain(self, what: str) -> None:
        """The same complaint is logged once."""
        if what != self._complaint:
            _log.warning("%s", what)
        self._complaint = what


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_ctime_ns


def _words(error: grpc.RpcError) -> str:
    details = getattr(error, "details", None)
    return str(details() if callable(details) else error) or type(error).__name__
