"""The methods of the kubelet's device plugin interface, for servers and clients.

The generated modules have the messages; the services are declared here, with types.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import grpc
from google.protobuf.message import Message

from shoal.agent.protos import deviceplugin_pb2 as messages
from shoal.agent.unary_calls import CHANNEL, T, unary_call, unary_handler

VERSION = "v1beta1"
HEALTHY, UNHEALTHY = "Healthy", "Unhealthy"
KUBELET_SOCKET = "kubelet.sock"
_PLUGIN, _REGISTRATION = "v1beta1.DevicePlugin", "v1beta1.Registration"


class DevicePluginService(Protocol):
    def options(self) -> messages.DevicePluginOptions: ...

    def devices(self, context: grpc.ServicerContext) -> Iterator[messages.ListAndWatchResponse]: ...

    def preferred(self, request: messages.PreferredAllocationRequest) -> messages.PreferredAllocationResponse: ...

    def allocate(
        self, request: messages.AllocateRequest, context: grpc.ServicerContext
    ) -> messages.AllocateResponse: ...


def plugin_handlers(service: DevicePluginService) -> grpc.GenericRpcHandler[Any, Any]:
    def options(_: Any, __: Any) -> messages.DevicePluginOptions:
        return service.options()

    def devices(_: Any, context: grpc.ServicerContext) -> Iterator[messages.ListAndWatchResponse]:
        return service.devices(context)

    def preferred(request: Any, _: Any) -> messages.PreferredAllocationResponse:
        return service.preferred(request)

    def allocate(request: Any, context: grpc.ServicerContext) -> messages.AllocateResponse:
        return service.allocate(request, context)

    def prepare(_: Any, __: Any) -> messages.PreStartContainerResponse:
        return messages.PreStartContainerResponse()

    return grpc.method_handlers_generic_handler(
        _PLUGIN,
        {
            "GetDevicePluginOptions": unary_handler(options, messages.Empty),
            "ListAndWatch": grpc.unary_stream_rpc_method_handler(
                devices, messages.Empty.FromString, lambda answer: answer.SerializeToString()
            ),
            "GetPreferredAllocation": unary_handler(preferred, messages.PreferredAllocationRequest),
            "Allocate": unary_handler(allocate, messages.AllocateRequest),
            "PreStartContainer": unary_handler(prepare, messages.PreStartContainerRequest),
        },
    )


def registration_handlers(register: Any) -> grpc.GenericRpcHandler[Any, Any]:
    """For a kubelet; `register` is called with each RegisterRequest and raises `ValueError` to refuse it."""

    def answer(request: messages.RegisterRequest, context: grpc.ServicerContext) -> messages.Empty:
        try:
            register(request)
        except ValueError as error:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
        return messages.Empty()

    return grpc.method_handlers_generic_handler(
        _REGISTRATION, {"Register": unary_handler(answer, messages.RegisterRequest)}
    )


class DevicePluginClient:
    """A kubelet's view of one plugin."""

    def __init__(self, socket: Path) -> None:
        self._channel = grpc.insecure_channel(f"unix:{socket}", options=CHANNEL)

    def options(self, timeout_s: float = 5.0) -> messages.DevicePluginOptions:
        request = messages.Empty()
        return self._call("GetDevicePluginOptions", request, messages.DevicePluginOptions, timeout_s)

    def devices(self) -> Any:
        """A stream of ListAndWatchResponse, which `cancel` ends."""
        call = self._channel.unary_stream(
            f"/{_PLUGIN}/ListAndWatch",
            request_serializer=messages.Empty.SerializeToString,
            response_deserializer=messages.ListAndWatchResponse.FromString,
        )
        return call(messages.Empty())

    def preferred(
        self, request: messages.PreferredAllocationRequest, timeout_s: float = 5.0
    ) -> messages.PreferredAllocationResponse:
        return self._call("GetPreferredAllocation", request, messages.PreferredAllocationResponse, timeout_s)

    def allocate(self, request: messages.AllocateRequest, timeout_s: float = 5.0) -> messages.AllocateResponse:
        return self._call("Allocate", request, messages.AllocateResponse, timeout_s)

    def close(self) -> None:
        self._channel.close()

    def _call(self, name: str, request: Message, answer: type[T], timeout_s: float) -> T:
        return unary_call(self._channel, f"/{_PLUGIN}/{name}", request, answer, timeout_s)


def register(kubelet: Path, request: messages.RegisterRequest, timeout_s: float = 5.0) -> None:
    """Register a plugin at the kubelet's socket. Raises `grpc.RpcError`."""
    with grpc.insecure_channel(f"unix:{kubelet}", options=CHANNEL) as channel:
        unary_call(channel, f"/{_REGISTRATION}/Register", request, messages.Empty, timeout_s)
