"""Metrics of other processes for alerts, over real connections."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from aiohttp import web

from shoal.cli.main import main
from shoal.wiring.alerts import scraped_metrics

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


async def served(answer: Handler) -> tuple[web.AppRunner, str]:
    app = web.Application()
    app.router.add_get("/metrics", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    return runner, f"http://{host}:{port}/metrics"


async def test_each_scrape_has_a_connection_of_its_own() -> None:
    peers: list[object] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        peers.append(request.transport.get_extra_info("peername"))
        return web.Response(text=f'leader_election_master_status{{name="shoal"}} {int(len(peers) > 2)}\n')

    runner, address = await served(answer)
    async with scraped_metrics([address], None) as metrics:
        assert list(await metrics.texts()) == [address]
    await runner.cleanup()
    assert len(set(peers)) == 3


async def test_an_answer_that_is_too_long_or_leads_elsewhere_is_not_used() -> None:
    async def long(request: web.Request) -> web.StreamResponse:
        return web.Response(body=b"#" * ((32 << 20) + 1))

    async def elsewhere(request: web.Request) -> web.StreamResponse:
        raise web.HTTPFound("http://127.0.0.1:1/metrics")

    for handler in (long, elsewhere):
        runner, address = await served(handler)
        async with scraped_metrics([address], None) as metrics:
            assert await metrics.texts() == {}
        await runner.cleanup()


def test_addresses_need_alerts_and_are_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["run", "--history", str(tmp_path)]
    assert main([*command, "--alerts-scrape", "http://h/metrics"]) == 2
    assert "--alerts-scrape: no alerts are evaluated; give --alerts-to" in capsys.readouterr().err
    assert main([*command, "--alerts-to", "none", "--alerts-scrape", "h:8080"]) == 2
    assert "is no address of metrics; write http://HOST:8080/metrics" in capsys.readouterr().err
