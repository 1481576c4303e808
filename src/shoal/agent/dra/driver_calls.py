"""The methods of the kubelet's interface for drivers of resource claims, for servers and clients.

The generated modules have the messages; the services are declared here, with types.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import grpc
from google.protobuf.message import Message

from shoal.agent.protos import dra_pb2 as dra
from shoal.agent.protos import drahealth_pb2 as drahealth
from shoal.agent.protos import pluginregistration_pb2 as registration
from shoal.agent.unary_calls import CHANNEL, T, unary_call, unary_handler

PLUGIN_TYPE, VERSION = "DRAPlugin", "v1.DRAPlugin"
HEALTH_VERSION = "v1alpha1.DRAResourceHealth"
_PLUGIN, _REGISTRATION = "k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin", "pluginregistration.Registration"


class DraService(Protocol):
    def prepare(self, request: dra.NodePrepareResourcesRequest) -> dra.NodePrepareResourcesResponse: ...

    def unprepare(self, request: dra.NodeUnprepareResourcesRequest) -> dra.NodeUnprepareResourcesResponse: ...


class HealthService(Protocol):
    def watch(self, context: grpc.ServicerContext) -> Iterator[drahealth.NodeWatchResourcesResponse]: ...


class RegistrationService(Protocol):
    def info(self) -> registration.PluginInfo: ...

    def registered(self, status: registration.RegistrationStatus) -> None: ...


def dra_handlers(service: DraService) -> grpc.GenericRpcHandler[Any, Any]:
    def prepare(request: Any, _: Any) -> dra.NodePrepareResourcesResponse:
        return service.prepare(request)

    def unprepare(request: Any, _: Any) -> dra.NodeUnprepareResourcesResponse:
        return service.unprepare(request)

    return grpc.method_handlers_generic_handler(
        _PLUGIN,
        {
            "NodePrepareResources": unary_handler(prepare, dra.NodePrepareResourcesRequest),
            "NodeUnprepareResources": unary_handler(unprepare, dra.NodeUnprepareResourcesRequest),
        },
    )


def health_handlers(service: HealthService) -> grpc.GenericRpcHandler[Any, Any]:
    def watch(_: Any, context: grpc.ServicerContext) -> Iterator[drahealth.NodeWatchResourcesResponse]:
        return service.watch(context)

    method = grpc.unary_stream_rpc_method_handler(
        watch, drahealth.NodeWatchResourcesRequest.FromString, lambda answer: answer.SerializeToString()
    )
    return grpc.method_handlers_generic_handler(HEALTH_VERSION, {"NodeWatchResources": method})


def registration_handlers(service: RegistrationService) -> grpc.GenericRpcHandler[Any, Any]:
    def info(_: Any, __: Any) -> registration.PluginInfo:
        return service.info()

    def registered(status: Any, _: Any) -> registration.RegistrationStatusResponse:
        service.registered(status)
        return registration.RegistrationStatusResponse()

    return grpc.method_handlers_generic_handler(
        _REGISTRATION,
        {
            "GetInfo": unary_handler(info, registration.InfoRequest),
            "NotifyRegistrationStatus": unary_handler(registered, registration.RegistrationStatus),
        },
    )


class DraClient:
    """A kubelet's view of one driver, by the socket of its service or of its registration."""

    def __init__(self, socket: Path) -> None:
        self._channel = grpc.insecure_channel(f"unix:{socket}", options=CHANNEL)

    def info(self) -> registration.PluginInfo:
        return self._call(f"/{_REGISTRATION}/GetInfo", registration.InfoRequest(), registration.PluginInfo)

    def notify(self, status: registration.RegistrationStatus) -> None:
        name = f"/{_REGISTRATION}/NotifyRegistrationStatus"
        self._call(name, status, registration.RegistrationStatusResponse)

    def prepare(self, request: dra.NodePrepareResourcesRequest) -> dra.NodePrepareResourcesResponse:
        return self._call(f"/{_PLUGIN}/NodePrepareResources", request, dra.NodePrepareResourcesResponse)

    def unprepare(self, request: dra.NodeUnprepareResourcesRequest) -> dra.NodeUnprepareResourcesResponse:
        return self._call(f"/{_PLUGIN}/NodeUnprepareResources", request, dra.NodeUnprepareResourcesResponse)

    def health(self) -> Any:
        """A stream of NodeWatchResourcesResponse, which `cancel` ends."""
        call = self._channel.unary_stream(
            f"/{HEALTH_VERSION}/NodeWatchResources",
            request_serializer=drahealth.NodeWatchResourcesRequest.SerializeToString,
            response_deserializer=drahealth.NodeWatchResourcesResponse.FromString,
        )
        return call(drahealth.NodeWatchResourcesRequest())

    def close(self) -> None:
        self._channel.close()

    def _call(self, path: str, request: Message, answer: type[T], timeout_s: float = 20.0) -> T:
        return unary_call(self._channel, path, request, answer, timeout_s)
