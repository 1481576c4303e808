"""Probes a container by the health service of gRPC, with the kubelet's words for each failure.

Each probe has a connection of its own: one that is kept would hide that the server accepts no new ones.
"""

from __future__ import annotations

from ipaddress import IPv6Address
from typing import Any

import grpc
import grpc.aio

from shoal.agent.protos import health_pb2 as messages
from shoal.agent.unary_calls import CHANNEL, async_unary_call

Obj = dict[str, Any]
_CHECK = "/grpc.health.v1.Health/Check"
_STATUSES = messages.HealthCheckResponse.ServingStatus


async def grpc_fault(action: Obj, host: str, agent: str, timeout_s: float) -> str:
    """The failure's message; empty if the service is healthy."""
    address = f"{_in_address(host)}:{action['port']}"
    options = (*CHANNEL, ("grpc.primary_user_agent", agent), ("grpc.use_local_subchannel_pool", 1))
    request = messages.HealthCheckRequest(service=action.get("service") or "")
    async with grpc.aio.insecure_channel(f"ipv{6 if address[0] == '[' else 4}:{address}", options) as channel:
        try:
            answer = await async_unary_call(channel, _CHECK, request, messages.HealthCheckResponse, timeout_s)
        except grpc.aio.AioRpcError as error:
            return _words(error, address, timeout_s)
    if answer.status == messages.HealthCheckResponse.SERVING:
        return ""
    known = answer.status in _STATUSES.values()
    return f'service unhealthy (responded with "{_STATUSES.Name(answer.status) if known else answer.status}")'


def _words(error: grpc.aio.AioRpcError, address: str, timeout_s: float) -> str:
    code, details = error.code(), error.details()
    if code is grpc.StatusCode.UNIMPLEMENTED:
        return f"error: this server does not implement the grpc health protocol (grpc.health.v1.Health): {details}"
    if code is grpc.StatusCode.DEADLINE_EXCEEDED:
        return f"timeout: health rpc did not complete within {timeout_s:g}s"
    if code is grpc.StatusCode.UNAVAILABLE:
        return f'error: failed to connect service at "{address}": {details}'
    return f"error: health rpc probe failed: rpc error: code = {code.name} desc = {details}"


def _in_address(host: str) -> str:
    try:
        return f"[{IPv6Address(host)}]"
    except ValueError:
        return host
