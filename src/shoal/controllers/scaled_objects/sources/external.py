"""Asks external scalers, servers that speak KEDA's gRPC interface, for their metrics and values.

One channel per question, to a checked address. Proxies and service configurations from the network are not used.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import NamedTuple, TypeVar

import grpc
import grpc.aio
from google.protobuf.message import Message

from shoal.autoscale.scaled_objects.external_scaler import NamedTarget
from shoal.autoscale.scaled_objects.trigger_metadata import USUAL_TIMEOUT_S
from shoal.autoscale.scaled_objects.trigger_sources import ExternalScaler, ExternalScalerMetric, ServerTls
from shoal.controllers.scaled_objects.sources.connections import Connections, asking, failed
from shoal.controllers.scaled_objects.sources.protos.externalscaler_pb2 import (
    GetMetricSpecResponse,
    GetMetricsRequest,
    GetMetricsResponse,
    IsActiveResponse,
    ScaledObjectRef,
)

_SERVICE = "/externalscaler.ExternalScaler/"
_LONGEST = 1 << 20
"""Bytes of an answer."""
T = TypeVar("T", bound=Message)


class ExternalValue(NamedTuple):
    value: float
    is_active: bool


async def external_targets(
    connections: Connections, scaler: ExternalScaler, namespace: str, owner: str, timeout_s: float = USUAL_TIMEOUT_S
) -> Sequence[NamedTarget]:
    """Raises TemporaryError, which names the server."""
    async with _asked(connections, scaler, timeout_s) as server:
        about = _reference(scaler, namespace, owner)
        answer = await server.call("GetMetricSpec", about, GetMetricSpecResponse)
    return [NamedTarget(one.metricName, one.targetSizeFloat or float(one.targetSize)) for one in answer.metricSpecs]


async def external_value(
    connections: Connections, asked: ExternalScalerMetric, timeout_s: float = USUAL_TIMEOUT_S
) -> ExternalValue:
    """Raises TemporaryError, which names the server."""
    about = _reference(asked.scaler, asked.namespace, asked.owner)
    async with _asked(connections, asked.scaler, timeout_s) as server:
        request = GetMetricsRequest(scaledObjectRef=about, metricName=asked.name)
        answer = await server.call("GetMetrics", request, GetMetricsResponse)
        active = await server.call("IsActive", about, IsActiveResponse)
    if not answer.metricValues:
        raise failed(server.name, "it has no value")
    first = answer.metricValues[0]
    value = first.metricValueFloat or float(first.metricValue)
    if not math.isfinite(value):
        raise failed(server.name, "its value is not a finite number")
    return ExternalValue(value, active.result)


class _Server:
    def __init__(self, name: str, channel: grpc.aio.Channel, timeout_s: float) -> None:
        self.name = name
        self._channel, self._timeout_s = channel, timeout_s

    async def call(self, method: str, request: Message, answer: type[T]) -> T:
        call = self._channel.unary_unary(
            _SERVICE + method,
            request_serializer=type(request).SerializeToString,
            response_deserializer=answer.FromString,
        )
        try:
            found: T = await call(request, timeout=self._timeout_s)
        except grpc.aio.AioRpcError as error:
            # Its text may repeat what was sent.
            raise failed(self.name, f"{method} was answered with {error.code().name}") from None
        return found


@asynccontextmanager
async def _asked(connections: Connections, scaler: ExternalScaler, timeout_s: float) -> AsyncIterator[_Server]:
    name = f"the external scaler at {scaler.host}:{scaler.port}"
    async with asking(name, timeout_s):
        address = await connections.resolved(scaler.host, scaler.port)
        target = f"ipv6:[{address}]:{scaler.port}" if ":" in address else f"ipv4:{address}:{scaler.port}"
        options = [
            ("grpc.enable_http_proxy", 0),
            ("grpc.service_config_disable_resolution", 1),
            ("grpc.default_authority", f"{scaler.host}:{scaler.port}"),
            ("grpc.max_receive_message_length", _LONGEST),
        ]
        if scaler.tls is None:
            channel = grpc.aio.insecure_channel(target, options)
        else:
            options.append(("grpc.ssl_target_name_override", scaler.host))
            channel = grpc.aio.secure_channel(target, _credentials(scaler.tls), options)
        async with channel:
            yield _Server(name, channel, timeout_s)


def _credentials(tls: ServerTls) -> grpc.ChannelCredentials:
    ca, key, cert = (text.encode() or None for text in (tls.ca, tls.key, tls.cert))
    return grpc.ssl_channel_credentials(ca, key, cert)


def _reference(scaler: ExternalScaler, namespace: str, owner: str) -> ScaledObjectRef:
    return ScaledObjectRef(name=owner, namespace=namespace, scalerMetadata=dict(scaler.metadata))
