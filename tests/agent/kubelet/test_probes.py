"""Probes decide by thresholds, and name the failure."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from build.no_runtime import NoRuntime
from shoal.agent.kubelet.probes import check_once, port_of, verdicts
from shoal.agent.kubelet.runtime import RunKey

KEY = RunKey("u", "main", 0)


def results(*faults: str | None) -> Callable[[], Awaitable[str | None]]:
    left = list(faults)

    async def check() -> str | None:
        return left.pop(0)

    return check


async def test_thresholds_count_results_in_a_row() -> None:
    waits: list[float] = []
    said: list[tuple[bool, str]] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    def decide(is_good: bool, fault: str) -> bool:
        said.append((is_good, fault))
        return len(said) == 2

    probe = {"initialDelaySeconds": 5, "periodSeconds": 3, "failureThreshold": 2, "successThreshold": 1}
    await verdicts(probe, results("a", "", "b", "c"), sleep, decide)

    assert said == [(True, ""), (False, "c")]
    assert waits == [5, 3, 3, 3]


async def test_a_probe_without_a_result_counts_for_nothing() -> None:
    said: list[tuple[bool, str]] = []

    async def sleep(seconds: float) -> None:
        assert seconds >= 0

    def decide(is_good: bool, fault: str) -> bool:
        said.append((is_good, fault))
        return True

    await verdicts({"failureThreshold": 2}, results("a", None, None, "b"), sleep, decide)

    assert said == [(False, "b")]


async def answered(answer: bytes, probe: dict[str, object]) -> str | None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        writer.write(answer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server:
        container = {"ports": [{"name": "web", "containerPort": port}]}
        return await check_once({"httpGet": {"port": "web", **probe}}, container, NoRuntime(), KEY, "127.0.0.1")


async def test_http_answers_below_400_are_good() -> None:
    assert await answered(b"HTTP/1.1 302 Found\r\n\r\n", {}) == ""
    assert await answered(b"HTTP/1.1 503 No\r\n\r\n", {"path": "/x"}) == "HTTP probe failed with statuscode: 503"


async def test_a_port_that_is_closed_fails_a_tcp_probe() -> None:
    server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    server.close()
    await server.wait_closed()

    fault = await check_once({"tcpSocket": {"port": port}}, {}, NoRuntime(), KEY, "127.0.0.1")

    assert fault is not None
    assert "refused" in fault.lower() or "connect" in fault.lower()


def test_ports_have_names() -> None:
    container = {"ports": [{"name": "web", "containerPort": 8080}]}

    assert [port_of(one, container) for one in (80, "81", "web", "other")] == [80, 81, 8080, 0]
