"""Alerts without Prometheus, from the text of an exporter to their receivers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from build.live_schedulers import add_node
from build.small_clusters import SmallCluster, small_cluster
from build.virtual_time import virtual
from shoal.api.alert_targets import AlertTargets, read_targets
from shoal.controllers.alerting.alert_loop import AlertLoop, AlertReceiver, MetricSources
from shoal.controllers.alerting.receivers import AlertmanagerReceiver, EventReceiver, WebhookReceiver
from shoal.policy.alert_messages import prometheus_answer
from shoal.prometheus.registry import Registry
from shoal.store.history.alert_rows import AlertRows
from shoal.store.history.history import UsageHistory, open_history, read_history
from shoal.store.history.ledger import LedgerChanges
from shoal.store.history.memory_tables import MemoryTables
from shoal.units.errors import UserError

HOT = 'DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="GPU-1",Hostname="n1",namespace="default",pod="train-0"} '
USE = 'DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-1",Hostname="n1",namespace="default",pod="train-0"} '


class Alerting:
    def __init__(self, cluster: SmallCluster, tables: MemoryTables | None = None) -> None:
        self.cluster = cluster
        self.texts: dict[str, str] = {}
        self.registry = Registry()
        self.sent: list[tuple[str, Any]] = []
        self.fault: OSError | None = None
        self.history = UsageHistory(tables or MemoryTables())
        self._tasks: list[asyncio.Task[None]] = []

    async def post(self, address: str, body: bytes) -> None:
        if self.fault is not None:
            raise self.fault
        self.sent.append((address, json.loads(body)))

    def start(self, *receivers: AlertReceiver) -> AlertLoop:
        sources = MetricSources(lambda: dict(self.texts), self.registry.read)
        loop = AlertLoop(self.cluster.clock, sources, AlertRows(self.history.tables), receivers)
        self._tasks.append(asyncio.ensure_future(loop.run()))
        return loop

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()


Make = Callable[[SmallCluster], Alerting]


@virtual
async def test_alertmanager_gets_an_alert_once_a_minute_until_it_has_ended(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        alerting = Alerting(cluster)
        alerting.start(AlertmanagerReceiver("http://alerts:9093", alerting.post))
        alerting.texts = {"n1": HOT + "90\n"}
        await cluster.pass_time(4 * 60)
        assert alerting.sent == []
        await cluster.pass_time(5 * 60)
        assert {address for address, _ in alerting.sent} == {"http://alerts:9093/api/v2/alerts"}
        assert 4 <= len(alerting.sent) <= 6
        (alert,) = alerting.sent[0][1]
        assert alert["labels"]["alertname"] == "GPUHighTemperature"
        assert alert["labels"]["pod"] == "train-0"
        assert alert["annotations"]["summary"] == "GPU 0 of n1 is hot"
        assert alert["endsAt"] > alert["startsAt"]
        count = len(alerting.sent)
        alerting.texts = {"n1": HOT + "60\n"}
        await cluster.pass_time(5 * 60)
        (ended,) = alerting.sent[count][1]
        assert ended["labels"] == alert["labels"]
        assert len(alerting.sent) == count + 1
        await alerting.stop()


@virtual
async def test_an_alert_is_sent_again_until_the_receiver_accepts_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with small_cluster(tmp_path) as cluster:
        alerting = Alerting(cluster)
        alerting.fault = OSError("status 503")
        alerting.start(WebhookReceiver("https://user:secret@hooks.example/x?token=1", alerting.post))
        alerting.texts = {"n1": HOT + "90\n"}
        await cluster.pass_time(8 * 60)
        complaints = [one.getMessage() for one in caplog.records if one.name == "shoal.alerts"]
        assert complaints == ["alerts cannot be sent to https://hooks.example: status 503"]
        alerting.fault = None
        await cluster.pass_time(60)
        ((_, body),) = alerting.sent
        assert (body["version"], body["status"], len(body["alerts"])) == ("4", "firing", 1)
        assert body["commonLabels"]["alertname"] == "GPUHighTemperature"
        alerting.texts = {}
        await cluster.pass_time(60)
        assert alerting.sent[-1][1]["status"] == "resolved"
        await alerting.stop()


@virtual
async def test_an_alert_is_an_event_of_its_pod_or_node_and_information_is_none(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await add_node(cluster, "n1", gpus=8)
        alerting = Alerting(cluster)
        context = cluster.context("alerts")
        alerting.start(EventReceiver(context))
        writing = asyncio.ensure_future(context.events.run())
        without_pod = HOT.replace(',namespace="default",pod="train-0"', "").replace('gpu="0"', 'gpu="1"')
        alerting.texts = {"n1": HOT + "90\n" + without_pod + "90\n" + USE + "1\n"}
        await cluster.pass_time(40 * 60)
        (event,) = await cluster.events("train-0")
        assert (event["reason"], event["type"]) == ("GPUHighTemperature", "Warning")
        assert "Check fans" in event["message"]
        assert [one["reason"] for one in await cluster.events("n1") if "GPU" in one["reason"]] == ["GPUHighTemperature"]
        writing.cancel()
        await alerting.stop()


@virtual
async def test_metrics_of_this_process_fire_alerts_too(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        alerting = Alerting(cluster)
        loop = alerting.start()
        gangs = alerting.registry.gauge("shoal_waiting_gangs", "Gangs.", ("gpus",))
        gangs.of("free").set(2)
        await cluster.pass_time(16 * 60)
        assert [one.labels["alertname"] for one in loop.states.alerts()] == ["GangWaitsForFreeGPUs"]
        found = prometheus_answer(loop.states.alerts())["data"]["alerts"]
        assert (found[0]["state"], found[0]["labels"]["gpus"]) == ("firing", "free")
        await alerting.stop()


@virtual
async def test_a_process_that_starts_again_continues_what_was_pending(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        tables = MemoryTables()
        first = Alerting(cluster, tables)
        first.start()
        first.texts = {"n1": HOT + "90\n"}
        await cluster.pass_time(4 * 60)
        await first.stop()
        second = Alerting(cluster, tables)
        second.start(AlertmanagerReceiver("http://alerts:9093", second.post))
        second.texts = {"n1": HOT + "90\n"}
        await cluster.pass_time(2 * 60)
        assert len(second.sent) >= 1
        await second.stop()
        stored = second.history.alerts.active()
        assert [(one.labels["alertname"], one.state) for one in stored] == [("GPUHighTemperature", "firing")]


@virtual
async def test_alerts_that_have_ended_are_in_the_history_and_are_forgotten_with_their_namespace(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        alerting = Alerting(cluster)
        alerting.start()
        alerting.texts = {"n1": HOT + "90\n"}
        await cluster.pass_time(8 * 60)
        alerting.texts = {"n1": HOT + "60\n"}
        await cluster.pass_time(8 * 60)
        await alerting.stop()
        (ended,) = alerting.history.alerts.between(0, 1 << 60)
        assert ended.ended_ms is not None
        assert alerting.history.alerts.active() == []
        assert alerting.history.forget("default") == 1
        assert alerting.history.alerts.between(0, 1 << 60) == []


def test_a_history_of_an_earlier_version_has_no_alerts(tmp_path: Path) -> None:
    history = open_history(tmp_path)
    history.ledger.write(LedgerChanges(1))
    history.tables.transaction()
    history.tables._database.execute("drop table alert")  # type: ignore[attr-defined]
    history.close()
    reader = read_history(tmp_path)
    assert reader.alerts.active() == []
    reader.close()


def test_targets_are_read() -> None:
    found = read_targets(["events", "alertmanager=http://a:9093/", "webhook=https://h/x", "none"])
    assert found == AlertTargets(True, ("http://a:9093",), ("https://h/x",))


@pytest.mark.parametrize(
    "text", ["mail", "webhook=ftp://x", "alertmanager=", "webhook=http://a b", "webhook=http://[x"]
)
def test_a_wrong_target_is_named(text: str) -> None:
    with pytest.raises(UserError, match="is no target of alerts"):
        read_targets([text])
