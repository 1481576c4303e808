"""Calls and handlers of gRPC methods with one request and one answer, for the kubelet's interfaces."""

from __future__ import annotations

from typing import Any, TypeVar

import grpc
import grpc.aio
from google.protobuf.message import Message

T = TypeVar("T", bound=Message)
CHANNEL = (("grpc.enable_http_proxy", 0),)
"""The options of channels to sockets of this machine."""


def unary_handler(function: Any, request: type[Message]) -> Any:
    """`function` gets the request and the context of the call."""
    return grpc.unary_unary_rpc_method_handler(function, request.FromString, lambda answer: answer.SerializeToString())


async def async_unary_call(
    channel: grpc.aio.Channel, path: str, request: Message, answer: type[T], timeout_s: float
) -> T:
    """For an event loop. Raises `grpc.aio.AioRpcError`; an end of the task ends the call."""
    call = channel.unary_unary(
        path, request_serializer=type(request).SerializeToString, response_deserializer=answer.FromString
    )
    found: T = await call(request, timeout=timeout_s)
    return found


def unary_call(channel: grpc.Channel, path: str, request: Message, answer: type[T], timeout_s: float) -> T:
    """Raises `grpc.RpcError`."""
    call = channel.unary_unary(
        path, request_serializer=type(request).SerializeToString, response_deserializer=answer.FromString
    )
    found: T = call(request, timeout=timeout_s)
    return found
