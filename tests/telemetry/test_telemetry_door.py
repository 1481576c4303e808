"""The door where figures and health are read: open on this machine alone, patient with nobody, silent about faults."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import pytest

from build.promtool import faults
from shoal.client.connection_timeouts import Timeouts
from shoal.engine.queues.decisions import Admitted, Decisions
from shoal.engine.queues.facts import QuotaAssignment
from shoal.prometheus.exposition import OPEN, PLAIN
from shoal.prometheus.registry import Registry
from shoal.telemetry.health import HealthChecks
from shoal.telemetry.metrics_endpoint import MetricsEndpoint, MetricsEndpointSettings
from shoal.telemetry.process import measure_process
from shoal.telemetry.queues import QueueMetrics
from shoal.telemetry.requests import LeaderMetrics, RequestMetrics
from shoal.telemetry.scheduling import SchedulingMetrics
from shoal.units.errors import UserError


class Open:
    def __init__(self, door: MetricsEndpoint, session: aiohttp.ClientSession) -> None:
        self.door = door
        self.session = session

    async def ask(self, path: str, method: str = "GET", **headers: str) -> tuple[int, str, str]:
        async with self.session.request(method, f"http://{self.door.address}{path}", headers=headers) as answer:
            return answer.status, await answer.text(), answer.headers.get("Content-Type", "")


@asynccontextmanager
async def opened(
    registry: Registry | None = None, health: HealthChecks | None = None, haste: Timeouts | None = None
) -> AsyncIterator[Open]:
    door = MetricsEndpoint(
        registry or Registry(), health or HealthChecks({}, {}), MetricsEndpointSettings(port=0), haste or Timeouts()
    )
    await door.start()
    async with aiohttp.ClientSession() as session:
        yield Open(door, session)
    await door.close()


async def test_figures_are_read_in_either_format() -> None:
    registry = Registry()
    registry.counter("calls_total", "Calls.").of().inc()
    async with opened(registry) as there:
        assert await there.ask("/metrics") == (
            200,
            "# HELP calls_total Calls.\n# TYPE calls_total counter\ncalls_total 1\n",
            PLAIN,
        )
        code, text, form = await there.ask("/metrics", Accept="application/openmetrics-text")
        assert (code, text.endswith("# EOF\n"), form) == (200, True, OPEN)
        assert there.door.address.startswith("127.0.0.1:")


async def test_readiness_is_what_the_checks_say() -> None:
    fault = ["the caches are not filled"]
    async with opened(health=HealthChecks({}, {"informer-sync": lambda: fault[0]})) as there:
        assert (await there.ask("/healthz"))[:2] == (200, "ok")
        assert (await there.ask("/livez"))[:2] == (200, "ok")
        code, text, _ = await there.ask("/readyz")
        assert (code, text) == (
            500,
            "[+]ping ok\n[-]informer-sync failed: the caches are not filled\nreadyz check failed\n",
        )
        assert (await there.ask("/readyz?exclude=informer-sync"))[:2] == (200, "ok")
        assert (await there.ask("/readyz/informer-sync"))[0] == 500
        fault[0] = ""
        assert (await there.ask("/readyz"))[:2] == (200, "ok")
        assert "[+]informer-sync ok" in (await there.ask("/readyz?verbose"))[1]
        assert (await there.ask("/livez/informer-sync"))[0] == 404


async def test_no_story_is_told_through_the_door() -> None:
    def broken() -> str:
        raise RuntimeError("secret words")

    def unready() -> None:
        raise RuntimeError("secret words")

    registry = Registry()
    async with opened(registry, HealthChecks({}, {"broken": broken})) as there:
        for path in ("/readyz", "/readyz/broken", "/nowhere"):
            _, text, _ = await there.ask(path)
            assert "secret" not in text
            assert "Traceback" not in text
        assert (await there.ask("/nowhere"))[0] == 404
        assert (await there.ask("/metrics", "POST"))[0] == 405


async def test_who_says_nothing_is_hung_up_on() -> None:
    async with opened(haste=Timeouts(first_request_s=0.05)) as there:
        host, _, port = there.door.address.rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"GET /metrics HTTP/1.1\r\nHost: a\r\nX-Slow")
        assert await asyncio.wait_for(reader.read(), 60) == b""
        writer.close()
        assert (await there.ask("/healthz"))[0] == 200


async def test_who_comes_beyond_the_limit_is_hung_up_on() -> None:
    async with opened(haste=Timeouts(most=2)) as there:
        host, _, port = there.door.address.rpartition(":")
        held = [await asyncio.open_connection(host, int(port)) for _ in range(3)]
        assert await asyncio.wait_for(held[2][0].read(), 60) == b""
        for _, writer in held:
            writer.close()


async def test_what_is_no_request_is_answered_shortly() -> None:
    async with opened() as there:
        host, _, port = there.door.address.rpartition(":")
        for words in (b"\x16\x03\x01 hello\r\n\r\n", b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\n\r\n"):
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(words)
            answer = await asyncio.wait_for(reader.read(), 60)
            assert answer.startswith((b"HTTP/1.0 400", b"HTTP/1.1 400"))
            assert b"Traceback" not in answer
            writer.close()


async def test_an_address_that_is_taken_is_the_users_to_change() -> None:
    async with opened() as there:
        port = int(there.door.address.rpartition(":")[2])
        with pytest.raises(UserError, match="metrics cannot be served at 127"):
            await MetricsEndpoint(Registry(), HealthChecks({}, {}), MetricsEndpointSettings(port=port)).start()


@pytest.mark.external("promtool")
async def test_promtool_is_content_with_all_that_is_measured() -> None:
    registry = Registry()
    measure_process(registry, "1.0", 1.0)
    SchedulingMetrics(registry).attempts.of("scheduled", "shoal").inc()
    RequestMetrics(registry).done("get", "200", 0.1)
    LeaderMetrics(registry).leads("shoal")
    QueueMetrics(registry, "leader").around(
        lambda: Decisions(admitted=[Admitted("a/b", "cq", QuotaAssignment("cq", ()))])
    )
    async with opened(registry) as there:
        _, text, _ = await there.ask("/metrics")
        assert "process_resident_memory_bytes" in text
        assert faults(text.encode()) == ""
