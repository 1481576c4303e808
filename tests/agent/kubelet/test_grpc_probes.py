"""A gRPC probe asks the health service of a container, and fails with the kubelet's words."""

from __future__ import annotations

import asyncio
from typing import Any

from build.free_ports import free_port
from build.grpc_health_server import HealthOfServices, grpc_health_server
from build.no_runtime import NoRuntime
from shoal.agent.kubelet.probes import check_once
from shoal.agent.kubelet.runtime import RunKey
from shoal.agent.protos import health_pb2 as messages

SERVING, NOT_SERVING = messages.HealthCheckResponse.SERVING, messages.HealthCheckResponse.NOT_SERVING


async def probed(port: int, service: str | None = None, timeout_s: int = 20) -> str | None:
    action: dict[str, Any] = {"port": port} if service is None else {"port": port, "service": service}
    return await check_once(
        {"grpc": action, "timeoutSeconds": timeout_s}, {}, NoRuntime(), RunKey("u", "main", 0), "127.0.0.1"
    )


async def test_the_status_of_the_service_decides() -> None:
    health = HealthOfServices({"": SERVING, "slow": NOT_SERVING})
    async with grpc_health_server(health) as port:
        assert await probed(port) == ""
        assert await probed(port, "slow") == 'service unhealthy (responded with "NOT_SERVING")'
        assert "unknown service" in (await probed(port, "none") or "")

    assert health.agents[0].startswith("kube-probe/")


async def test_a_server_without_the_health_service_is_named() -> None:
    async with grpc_health_server(HealthOfServices({}), "other.Service") as port:
        fault = await probed(port)

    assert fault is not None
    assert fault.startswith("error: this server does not implement the grpc health protocol (grpc.health.v1.Health):")


async def test_a_port_without_a_server_fails() -> None:
    port = free_port()

    assert (await probed(port) or "").startswith(f'error: failed to connect service at "127.0.0.1:{port}"')


async def test_a_server_that_does_not_answer_fails_within_the_timeout() -> None:
    server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server:
        fault = await probed(port, timeout_s=1)

    assert fault == "timeout: health rpc did not complete within 1s"
