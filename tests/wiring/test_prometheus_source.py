"""Metrics of a Prometheus server by the rules of prometheus-adapter, with given answers and with a real server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import aiohttp
import pytest
from aiohttp import web

from build.server_processes import free_port, running, said
from build.virtual_time import virtual
from shoal.api.selector_text import parse_label_selector
from shoal.api.selectors import Selector
from shoal.autoscale.exposed_metrics.adapter_rules import read_rules
from shoal.autoscale.exposed_metrics.gpu_metrics import ObjectValue
from shoal.autoscale.exposed_metrics.prometheus_metrics import ObjectQuestion
from shoal.client.clock import LoopClock, WallClock
from shoal.client.fetched_text import fetched_text
from shoal.units.errors import TemporaryError, UserError, Where
from shoal.wiring.prometheus_source import PrometheusSource, rules_of_file

OBJECTS = {"overrides": {"namespace": {"resource": "namespace"}, "pod": {"resource": "pod"}}}
RULES: dict[str, Any] = {
    "rules": [
        {
            "seriesQuery": '{__name__=~"^queue_.*",pod!=""}',
            "resources": OBJECTS,
            "name": {"matches": "^queue_(.*)$"},
            "metricsQuery": "sum(<<.Series>>{<<.LabelMatchers>>}) by (<<.GroupBy>>)",
        }
    ],
    "externalRules": [
        {
            "seriesQuery": "orders",
            "resources": OBJECTS,
            "metricsQuery": "sum(<<.Series>>{<<.LabelMatchers>>})",
        }
    ],
}
CHOSEN = parse_label_selector("topic=a")


class Said:
    """A server that answers what the test says."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.vector: list[dict[str, Any]] = []
        self.is_silent = False

    async def ask(self, path: str, query: Mapping[str, str]) -> str:
        self.asked.append(query.get("query", query.get("match[]", "")))
        if self.is_silent:
            raise OSError("refused")
        if path.endswith("/series"):
            labels = {"__name__": "queue_length", "namespace": "team", "pod": "web-1", "topic": "a"}
            found = [labels] if "queue" in self.asked[-1] else [{"__name__": "orders", "namespace": "team"}]
            return json.dumps({"status": "success", "data": found})
        return json.dumps({"data": {"resultType": "vector", "result": self.vector}})


def source_of(said: Said) -> PrometheusSource:
    return PrometheusSource(said.ask, read_rules(RULES, Where()), LoopClock(0.0))


@virtual
async def test_metrics_are_found_by_the_rules_and_asked_for_by_objects() -> None:
    said = Said()
    source = source_of(said)
    await source.find()
    assert source.resources() == [("namespaces", "length", False), ("pods", "length", True)]
    assert source.names() == ["orders"]
    said.vector = [{"metric": {"pod": "web-1"}, "value": [1, "4"]}, {"metric": {"pod": "web-2"}, "value": [1, "NaN"]}]
    asked = ObjectQuestion("pods", "team", ("web-1", "web-2"))
    assert await source.object_values(asked, "length", CHOSEN) == [ObjectValue("team", "web-1", 4.0)]
    assert said.asked[-1] == r'sum(queue_length{namespace="team",pod=~"web\\-1|web\\-2",topic="a"}) by (pod)'
    assert await source.object_values(asked, "none", CHOSEN) is None
    said.vector = [{"metric": {}, "value": [1, "12"]}]
    assert await source.values("team", "orders", Selector.EVERYTHING) == [("orders", {}, 12_000)]
    assert said.asked[-1] == 'sum(orders{namespace="team"})'
    assert await source.values("team", "none", Selector.EVERYTHING) is None
    with pytest.raises(UserError, match="operator NotIn is not supported"):
        await source.values("team", "orders", parse_label_selector("a notin (b)"))


@virtual
async def test_a_server_that_does_not_answer_leaves_the_metrics_that_are_known() -> None:
    said = Said()
    source = source_of(said)
    await source.find()
    said.is_silent = True
    with pytest.raises(TemporaryError, match="prometheus does not answer"):
        await source.find()
    assert source.names() == ["orders"]
    with pytest.raises(TemporaryError, match="prometheus does not answer"):
        await source.values("team", "orders", Selector.EVERYTHING)


def test_a_file_of_rules_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    path = tmp_path / "rules.yaml"
    with pytest.raises(UserError, match=r"rules\.yaml: cannot be read"):
        rules_of_file(path)
    path.write_text("rules: [{seriesQuery: a}]\n")
    with pytest.raises(UserError, match=r"metricsQuery: is missing"):
        rules_of_file(path)
    path.write_text("")
    with pytest.raises(UserError, match="is not one document"):
        rules_of_file(path)


@pytest.mark.external("prometheus")
async def test_the_metrics_of_a_real_prometheus_server(tmp_path: Path) -> None:
    async def metrics(_: web.Request) -> web.StreamResponse:
        series = 'queue_length{namespace="team",pod="%s",topic="%s"} %d'
        lines = [series % one for one in (("web-1", "a", 3), ("web-1", "b", 4), ("web-2", "a", 5))]
        return web.Response(text="\n".join([*lines, 'orders{namespace="team"} 7', 'orders{namespace="other"} 9', ""]))

    application = web.Application()
    application.router.add_get("/metrics", metrics)
    runner = web.AppRunner(application)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    job = {"job_name": "queue", "scrape_interval": "1s", "honor_labels": True}
    config = tmp_path / "prometheus.yml"
    targets = [{"targets": [f"127.0.0.1:{runner.addresses[0][1]}"]}]
    config.write_text(json.dumps({"scrape_configs": [{**job, "static_configs": targets}]}))
    port = free_port()
    files = ("--config.file", str(config), "--storage.tsdb.path", str(tmp_path / "data"))
    try:
        async with (
            aiohttp.ClientSession() as session,
            running("prometheus", *files, "--web.listen-address", f"127.0.0.1:{port}") as server,
        ):
            await said(server, b"Server is ready to receive web requests")
            fetch = partial(fetched_text, session)

            async def ask(path: str, query: Mapping[str, str]) -> str:
                return await fetch(f"http://127.0.0.1:{port}{path}?{urlencode(query)}")

            source = PrometheusSource(ask, read_rules(RULES, Where()), WallClock())
            async with asyncio.timeout(30):
                while not source.names():
                    await source.find()
            asked = ObjectQuestion("pods", "team", ("web-1", "web-2"))
            found = await source.object_values(asked, "length", Selector.EVERYTHING)
            assert sorted(found or (), key=lambda one: one.name) == [
                ObjectValue("team", "web-1", 7.0),
                ObjectValue("team", "web-2", 5.0),
            ]
            found = await source.object_values(ObjectQuestion("namespaces", "", ("team",)), "length", CHOSEN)
            assert found == [ObjectValue("", "team", 8.0)]
            assert await source.values("team", "orders", Selector.EVERYTHING) == [("orders", {}, 7_000)]
    finally:
        await runner.cleanup()
