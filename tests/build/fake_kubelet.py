"""A kubelet's device manager over its real interface: gRPC in both directions on unix sockets.

It registers plugins, follows their lists of devices, and allocates devices to containers as the kubelet does: the
plugin's preferred ones of the free healthy devices. A checkpoint file keeps allocations over a restart. Waits end as
soon as what is waited for is there; nothing sleeps.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import grpc

from shoal.agent.plugin.kubelet_calls import HEALTHY, KUBELET_SOCKET, DevicePluginClient, registration_handlers
from shoal.agent.protos import deviceplugin_pb2 as messages

_PATIENCE_S = 20.0


class FakeKubelet:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._changed = threading.Condition()
        self._clients: dict[str, DevicePluginClient] = {}
        self._streams: dict[str, Any] = {}
        self._listed: dict[str, dict[str, str]] = {}
        """By resource: the health of each device."""
        self.lists_received = 0
        self.lengths: dict[str, list[int]] = {}
        """By resource: the number of devices in each list."""
        self.registrations: list[messages.RegisterRequest] = []
        self.refusal = ""
        """Why registrations are refused; empty: they are not."""
        self.held: dict[str, dict[str, list[str]]] = {}
        """By container: the devices of each resource."""
        checkpoint = folder / "kubelet_internal_checkpoint"
        if checkpoint.exists():
            self.held = json.loads(checkpoint.read_text())
        for path in folder.glob("*.sock"):
            path.unlink()
        self._server = grpc.server(ThreadPoolExecutor(4))
        self._server.add_generic_rpc_handlers((registration_handlers(self._register),))
        self._server.add_insecure_port(f"unix:{folder / KUBELET_SOCKET}")
        self._server.start()

    def stop(self) -> None:
        for stream in self._streams.values():
            stream.cancel()
        for client in self._clients.values():
            client.close()
        self._server.stop(0).wait()
        (self._folder / KUBELET_SOCKET).unlink(missing_ok=True)

    # What is known.

    def capacity(self, resource: str = "nvidia.com/gpu") -> int:
        return len(self._listed.get(resource, {}))

    def allocatable(self, resource: str = "nvidia.com/gpu") -> int:
        return len(self._healthy(resource))

    def devices(self, resource: str = "nvidia.com/gpu") -> dict[str, str]:
        return dict(self._listed.get(resource, {}))

    def until(self, look: Callable[[], bool]) -> None:
        """Wait until it is true, after any message of a plugin."""
        with self._changed:
            assert self._changed.wait_for(look, _PATIENCE_S), (self._listed, self.registrations)

    # Containers.

    def allocate(
        self, container: str, count: int, resource: str = "nvidia.com/gpu", required: tuple[str, ...] = ()
    ) -> messages.ContainerAllocateResponse:
        """Raises `LookupError` if there are too few devices, and `grpc.RpcError` if the plugin refuses."""
        used = {one for held in self.held.values() for one in held.get(resource, ())}
        free = [one for one in self._healthy(resource) if one not in used]
        if len(free) < count:
            raise LookupError(f"requested number of devices unavailable for {resource}")
        client = self._clients[resource]
        request = messages.PreferredAllocationRequest(
            container_requests=[
                messages.ContainerPreferredAllocationRequest(
                    available_deviceIDs=free, must_include_deviceIDs=required, allocation_size=count
                )
            ]
        )
        preferred = [one for one in client.preferred(request).container_responses[0].deviceIDs if one in free]
        ids = [*preferred, *(one for one in free if one not in preferred)][:count]
        asked = messages.AllocateRequest(container_requests=[messages.ContainerAllocateRequest(devices_ids=ids)])
        answer = client.allocate(asked)
        self.held.setdefault(container, {})[resource] = ids
        (self._folder / "kubelet_internal_checkpoint").write_text(json.dumps(self.held))
        return answer.container_responses[0]

    def ask(self, *ids: str, resource: str = "nvidia.com/gpu") -> messages.AllocateResponse:
        """Allocate exactly these, without bookkeeping."""
        requests = [messages.ContainerAllocateRequest(devices_ids=ids)]
        return self._clients[resource].allocate(messages.AllocateRequest(container_requests=requests))

    def end(self, container: str) -> None:
        del self.held[container]

    def _healthy(self, resource: str) -> list[str]:
        return [one for one, health in self._listed.get(resource, {}).items() if health == HEALTHY]

    # The plugins' side.

    def _register(self, request: messages.RegisterRequest) -> None:
        if self.refusal:
            raise ValueError(self.refusal)
        if request.version != "v1beta1":
            raise ValueError(f"unsupported version {request.version}")
        client = DevicePluginClient(self._folder / request.endpoint)
        with self._changed:
            self.registrations.append(request)
            self._clients[request.resource_name] = client
            self._changed.notify_all()
        stream = self._streams[request.resource_name] = client.devices()
        threading.Thread(target=self._follow, args=(request.resource_name, stream), daemon=True).start()

    def _follow(self, resource: str, stream: Any) -> None:
        with suppress(grpc.RpcError):
            for answer in stream:
                with self._changed:
                    self._listed[resource] = {device.ID: device.health for device in answer.devices}
                    self.lists_received += 1
                    self.lengths.setdefault(resource, []).append(len(answer.devices))
                    self._changed.notify_all()
        with self._changed:
            if self._streams.get(resource) is stream:
                self._listed[resource] = {}
                self._changed.notify_all()


@contextmanager
def fake_kubelet(folder: Path) -> Iterator[FakeKubelet]:
    kubelet = FakeKubelet(folder)
    try:
        yield kubelet
    finally:
        kubelet.stop()
