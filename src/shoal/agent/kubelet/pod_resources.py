"""Asks the kubelet which containers hold which devices, over its socket for pod resources.

The call has a deadline. The connection is kept and made again by gRPC when the kubelet restarts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal.devices.dcgm_holders import ClaimedDevice, ContainerHolding
from shoal.units.errors import TemporaryError, Where

if TYPE_CHECKING:
    from shoal.agent.protos.podresources_pb2 import ContainerResources, PodResources

USUAL_SOCKET = Path("/var/lib/kubelet/pod-resources/kubelet.sock")
_METHOD = "/v1.PodResourcesLister/List"
_DEADLINE_S, _RETRY_S = 5.0, 1.0
_LONGEST_BYTES = 64 << 20
_RECONNECT_MS = 100


class KubeletPodDevices:
    """Implements PodDevices."""

    def __init__(self, socket: Path = USUAL_SOCKET, deadline_s: float = _DEADLINE_S) -> None:
        import grpc

        from shoal.agent.protos import podresources_pb2 as messages

        self._socket, self._deadline_s = socket, deadline_s
        self._error: type[Exception] = grpc.RpcError
        self._request = messages.ListPodResourcesRequest()
        options = [
            ("grpc.max_receive_message_length", _LONGEST_BYTES),
            ("grpc.enable_http_proxy", 0),
            ("grpc.initial_reconnect_backoff_ms", _RECONNECT_MS),
            ("grpc.min_reconnect_backoff_ms", _RECONNECT_MS),
            ("grpc.max_reconnect_backoff_ms", 10 * _RECONNECT_MS),
        ]
        self._channel = grpc.insecure_channel(f"unix:{socket}", options=options)
        self._list: Any = self._channel.unary_unary(
            _METHOD,
            request_serializer=messages.ListPodResourcesRequest.SerializeToString,
            response_deserializer=messages.ListPodResourcesResponse.FromString,
        )

    def holdings(self) -> Sequence[ContainerHolding]:
        if not self._socket.exists():
            raise self._silent("there is no such socket")
        try:
            # A kubelet that is starting has its socket before it answers.
            answer = self._list(self._request, timeout=self._deadline_s, wait_for_ready=True)
        except self._error as error:
            raise self._silent(_words(error)) from error
        return [found for pod in answer.pod_resources for one in pod.containers for found in _of(pod, one)]

    def _silent(self, why: str) -> TemporaryError:
        what = f"the kubelet does not list the devices of pods: {why}"
        return TemporaryError(what, _RETRY_S, where=Where(file=str(self._socket)))

    def close(self) -> None:
        self._channel.close()


def _of(pod: PodResources, container: ContainerResources) -> Iterator[ContainerHolding]:
    names = (pod.name, pod.namespace, container.name)
    for devices in container.devices:
        yield ContainerHolding(*names, devices.resource_name, tuple(devices.device_ids))
    claimed = tuple(
        ClaimedDevice(
            one.claim_name, one.claim_namespace, resource.driver_name, resource.pool_name, resource.device_name
        )
        for one in container.dynamic_resources
        for resource in one.claim_resources
    )
    if claimed:
        yield ContainerHolding(*names, claimed=claimed)


def _words(error: Exception) -> str:
    """Its status, and what the other side said."""
    code, details = getattr(error, "code", None), getattr(error, "details", None)
    if code is None or details is None:
        return str(error)
    return f"{code().name}: {details()}"
