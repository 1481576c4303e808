"""A real Alertmanager takes the alerts that Shoal evaluates, routes them, and learns when they end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from build.server_processes import free_port, running, said
from shoal.client.clock import WallClock
from shoal.controllers.alerting.receivers import AlertmanagerReceiver
from shoal.policy.alert_states import AlertChanges, AlertRound, RuleAlert
from shoal.wiring.alerts import posted

_PATIENCE_S = 60


class Pager:
    """The receiver to which Alertmanager routes."""

    def __init__(self) -> None:
        self.told: asyncio.Queue[dict[str, Any]] = asyncio.Queue()

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        await self.told.put(await request.json())
        return web.Response(text="ok")

    async def next(self) -> dict[str, Any]:
        return await asyncio.wait_for(self.told.get(), _PATIENCE_S)


@asynccontextmanager
async def alertmanager(folder: Path, pager: Pager) -> AsyncIterator[str]:
    """Its address. It sends warnings of the team ml, and nothing else, to the pager."""
    runner = web.ServerRunner(web.Server(pager.answer))
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    url = f"http://127.0.0.1:{runner.addresses[0][1]}/"
    config = folder / "alertmanager.yml"
    config.write_text(
        f"""
route:
  receiver: none
  routes:
    - {{receiver: pager, matchers: [severity="warning", namespace="ml"], group_wait: 0s, group_interval: 1s}}
receivers:
  - name: none
  - name: pager
    webhook_configs: [{{url: "{url}", send_resolved: true}}]
"""
    )
    port = free_port()
    options = ("--config.file", str(config), "--storage.path", str(folder / "data"), "--cluster.listen-address=")
    listen = f"--web.listen-address=127.0.0.1:{port}"
    async with running("prometheus-alertmanager", *options, listen) as process:
        await said(process, b"Listening on")
        yield f"http://127.0.0.1:{port}"
    await runner.cleanup()


def wall_ms() -> int:
    return round(WallClock().seconds() * 1000)


def idle(pod: str, namespace: str, now_ms: int, ended_ms: int | None = None) -> RuleAlert:
    labels = {"alertname": "GPUIdleWhileHeld", "severity": "warning", "namespace": namespace, "pod": pod}
    texts = {"summary": "idle", "description": f'{pod} holds GPUs and says "nothing"'}
    return RuleAlert(labels, texts, "firing", now_ms - 60_000, 2.0, now_ms, ended_ms)


@pytest.mark.external("prometheus-alertmanager")
async def test_alertmanager_routes_an_alert_and_learns_when_it_has_ended(tmp_path: Path) -> None:
    pager = Pager()
    now_ms = wall_ms()
    async with alertmanager(tmp_path, pager) as address, aiohttp.ClientSession() as session:
        receiver = AlertmanagerReceiver(address, partial(posted, session))
        mine, other = idle("train-0", "ml", now_ms), idle("train-1", "other", now_ms)
        await receiver.send(AlertRound(now_ms, [mine, other], AlertChanges([mine, other], [])))
        told = await pager.next()
        assert told["status"] == "firing"
        (alert,) = told["alerts"]
        assert alert["labels"] == mine.labels
        assert alert["annotations"] == mine.annotations
        async with session.get(f"{address}/api/v2/alerts") as answer:
            known = await answer.json()
        assert {one["labels"]["pod"] for one in known} == {"train-0", "train-1"}
        ended = idle("train-0", "ml", now_ms, wall_ms())
        await receiver.send(AlertRound(wall_ms(), [other], AlertChanges([], [ended])))
        told = await pager.next()
        assert told["status"] == "resolved"
        assert [one["labels"]["pod"] for one in told["alerts"]] == ["train-0"]
