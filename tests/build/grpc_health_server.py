"""A gRPC server with the health service, whose answers a test chooses."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import grpc
import grpc.aio

from shoal.agent.protos import health_pb2 as messages


class HealthOfServices:
    """By the name of the service; a service that it does not have is not known."""

    def __init__(self, statuses: dict[str, messages.HealthCheckResponse.ServingStatus]) -> None:
        self.statuses = statuses
        self.agents: list[str] = []

    async def check(self, request: bytes, context: grpc.aio.ServicerContext[bytes, bytes]) -> bytes:
        metadata = dict(context.invocation_metadata() or ())
        self.agents.append(str(metadata.get("user-agent", "")))
        service = messages.HealthCheckRequest.FromString(request).service
        if service not in self.statuses:
            await context.abort(grpc.StatusCode.NOT_FOUND, "unknown service")
        return messages.HealthCheckResponse(status=self.statuses[service]).SerializeToString()


@asynccontextmanager
async def grpc_health_server(health: HealthOfServices, service: str = "grpc.health.v1.Health") -> AsyncIterator[int]:
    """The port on loopback. `service`: another name, for a server without the health service."""
    server = grpc.aio.server()
    handlers = {"Check": grpc.unary_unary_rpc_method_handler(health.check)}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, handlers),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield port
    finally:
        await server.stop(None)
