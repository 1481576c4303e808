"""Serves one resource to the kubelet: lists its devices, prefers some of them, and allocates.

Guarantees: each change of the devices or of their health is sent once to every stream; a request with an unknown device
is refused in the plugin's words; an allocation does not wait for the driver.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Protocol
from uuid import uuid4

import grpc
import msgspec

from shoal.agent.plugin.kubelet_calls import HEALTHY, UNHEALTHY, VERSION, plugin_handlers, register
from shoal.agent.protos import deviceplugin_pb2 as messages
from shoal.devices.advertised_devices import PhysicalDevice
from shoal.devices.allocation_answer import AllocationAnswer, AnswerSettings, answer_of
from shoal.devices.gpu_groups import Scores
from shoal.devices.preferred_allocation import preferred
from shoal.devices.requested_devices import request_problem

_THREADS = 8
_STOP_S = 1.0


class DeviceChoice(Protocol):
    """The scheduler's choice of devices for the pods of this node."""

    def wanted(self, resource: str, count: int, available: Sequence[PhysicalDevice]) -> Sequence[PhysicalDevice]:
        """The devices that the next pod with this request is to get; empty if nothing was chosen."""
        ...

    def kept_for_others(self, resource: str, count: int, available: Sequence[PhysicalDevice]) -> frozenset[str]:
        """The devices that were chosen for other pods, which wait for them."""
        ...

    def allocated(self, resource: str, ids: Sequence[str]) -> None:
        """The kubelet has allocated these devices to one container."""
        ...


class ServedDevices(msgspec.Struct, frozen=True):
    """The devices of one resource, and what the answers depend on."""

    resource: str
    devices: tuple[PhysicalDevice, ...]
    unhealthy: frozenset[str]
    """The ids of those that cannot be used at present."""
    settings: AnswerSettings
    scores: Scores


class ResourceServer:
    """`folder`: the kubelet's folder for device plugins."""

    def __init__(
        self,
        folder: Path,
        served: ServedDevices,
        choice: DeviceChoice | None = None,
        new_id: Callable[[], str] = lambda: str(uuid4()),
    ) -> None:
        self._served, self._choice, self._new_id = served, choice, new_id
        self._by_id = {device.id: device for device in served.devices}
        self._changed = threading.Condition()
        self._version = 0
        self._is_stopped = False
        self._server: grpc.Server | None = None
        name = served.resource.rpartition("/")[2]
        self.socket = folder / f"nvidia-{name}.sock"

    @property
    def served(self) -> ServedDevices:
        return self._served

    # Life.

    def start(self) -> None:
        """Listen. Raises `OSError` if the socket cannot be created."""
        self.socket.unlink(missing_ok=True)
        server = grpc.server(ThreadPoolExecutor(_THREADS, thread_name_prefix=f"plugin-{self.socket.stem}"))
        server.add_generic_rpc_handlers((plugin_handlers(self),))
        try:
            server.add_insecure_port(f"unix:{self.socket}")
        except RuntimeError as error:
            raise OSError(f"{self.socket}: cannot listen: {error}") from error
        server.start()
        self._server = server

    def register(self, kubelet: Path) -> None:
        """Raises `grpc.RpcError`."""
        request = messages.RegisterRequest(
            version=VERSION,
            endpoint=self.socket.name,
            resource_name=self._served.resource,
            options=self.options(),
        )
        register(kubelet, request)

    def update(self, served: ServedDevices) -> None:
        """Take over other devices or another health of them."""
        with self._changed:
            if served == self._served:
                return
            is_listed_anew = (served.devices, served.unhealthy) != (self._served.devices, self._served.unhealthy)
            self._served = served
            self._by_id = {device.id: device for device in served.devices}
            if is_listed_anew:
                self._version += 1
                self._changed.notify_all()

    def stop(self) -> None:
        with self._changed:
            self._is_stopped = True
            self._changed.notify_all()
        if self._server is not None:
            self._server.stop(_STOP_S).wait(_STOP_S)
        with suppress(OSError):
            self.socket.unlink(missing_ok=True)

    # The kubelet's calls.

    def options(self) -> messages.DevicePluginOptions:
        return messages.DevicePluginOptions(get_preferred_allocation_available=True)

    def devices(self, context: grpc.ServicerContext) -> Iterator[messages.ListAndWatchResponse]:
        context.add_callback(self._wake)
        sent = -1
        while True:
            with self._changed:
                while sent == self._version and not self._is_stopped and context.is_active():
                    self._changed.wait()
                if self._is_stopped or not context.is_active():
                    return
                sent, served = self._version, self._served
            yield _listed(served)

    def preferred(self, request: messages.PreferredAllocationRequest) -> messages.PreferredAllocationResponse:
        answers = [
            messages.ContainerPreferredAllocationResponse(
                deviceIDs=self._preferred(
                    one.available_deviceIDs, one.must_include_deviceIDs, one.allocation_size, self._served
                )
            )
            for one in request.container_requests
        ]
        return messages.PreferredAllocationResponse(container_responses=answers)

    def allocate(self, request: messages.AllocateRequest, context: grpc.ServicerContext) -> messages.AllocateResponse:
        with self._changed:
            served, by_id = self._served, self._by_id
        answers = []
        for one in request.container_requests:
            ids = list(one.devices_ids)
            problem = request_problem(ids, by_id, served.settings.config)
            if problem is not None:
                context.abort(grpc.StatusCode.UNKNOWN, problem.message)
            answers.append(_answer(answer_of([by_id[id_] for id_ in ids], served.settings, self._new_id())))
            if self._choice is not None:
                self._choice.allocated(served.resource, ids)
        return messages.AllocateResponse(container_responses=answers)

    def _preferred(
        self, available: Sequence[str], required: Sequence[str], count: int, served: ServedDevices
    ) -> list[str]:
        free = [self._by_id[one] for one in available if one in self._by_id]
        needed = [self._by_id[one] for one in required if one in self._by_id]
        chosen = self._choice.wanted(served.resource, count, free) if self._choice is not None else ()
        wanted = [device.id for device in chosen]
        if len(wanted) == count and {*required} <= {*wanted}:
            return wanted
        packed = served.settings.config.packed
        if self._choice is not None:
            kept = self._choice.kept_for_others(served.resource, count, free)
            left = [device for device in free if device.id not in kept or device.id in required]
            free = left if len(left) >= count else free
        found = preferred(free, needed, served.devices, count, packed=packed, scores=served.scores)
        return [device.id for device in found]

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()


def _listed(served: ServedDevices) -> messages.ListAndWatchResponse:
    return messages.ListAndWatchResponse(
        devices=[
            messages.Device(
                ID=device.id,
                health=UNHEALTHY if device.id in served.unhealthy else HEALTHY,
                topology=messages.TopologyInfo(nodes=[messages.NUMANode(ID=device.numa)]),
            )
            for device in served.devices
        ]
    )


def _answer(found: AllocationAnswer) -> messages.ContainerAllocateResponse:
    return messages.ContainerAllocateResponse(
        envs=found.environment,
        mounts=[
            messages.Mount(container_path=one.container, host_path=one.host, read_only=one.read_only)
            for one in found.mounts
        ],
        devices=[
            messages.DeviceSpec(container_path=one.path, host_path=one.host_path or one.path, permissions="rw")
            for one in found.nodes
        ],
        annotations=found.annotations,
        cdi_devices=[messages.CDIDevice(name=name) for name in found.cdi],
    )


def unhealthy_ids(devices: Sequence[PhysicalDevice], is_usable: Callable[[PhysicalDevice], bool]) -> frozenset[str]:
    """All replicas of a GPU or MIG instance that cannot be used."""
    found: dict[str, bool] = {}
    for device in devices:
        if device.physical not in found:
            found[device.physical] = is_usable(device)
    return frozenset(device.id for device in devices if not found[device.physical])
