"""Alerts over the metrics of another process: those of the scheduler, which the process with the alerts lacks."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from build.small_clusters import small_cluster
from build.virtual_time import virtual
from shoal.api.alert_targets import read_sources
from shoal.controllers.alerting.alert_loop import AlertLoop, MetricSources
from shoal.controllers.alerting.scraped_metrics import ScrapedMetrics
from shoal.prometheus.exposition import text_of
from shoal.prometheus.registry import Registry
from shoal.store.history.alert_rows import AlertRows
from shoal.store.history.memory_tables import MemoryTables
from shoal.units.errors import UserError

GANGS = 'shoal_waiting_gangs{gpus="free"} 2\n'
LEADS = 'leader_election_master_status{name="shoal"} 1\n'
STANDS_BY = 'leader_election_master_status{name="shoal"} 0\n'
ADDRESS = "http://shoal-metrics.shoal-system.svc:8080/metrics"


class Scraping:
    """Each fetch takes the next answer; the last one stays."""

    def __init__(self, *answers: str | OSError | TimeoutError) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []
        self.registry = Registry()
        self.metrics = ScrapedMetrics([ADDRESS], self._fetch, self.registry)

    async def _fetch(self, address: str) -> str:
        self.asked.append(address)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, str):
            return answer
        raise answer

    def up(self) -> list[str]:
        text = text_of(self.registry.read()).decode()
        return [line for line in text.splitlines() if line.startswith("shoal_alerts_scrape_up{")]


@virtual
async def test_an_alert_fires_over_the_metrics_of_the_scheduler(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        scraping = Scraping(LEADS + GANGS)
        sources = MetricSources(dict, scraping.registry.read, scraping.metrics.texts)
        loop = AlertLoop(cluster.clock, sources, AlertRows(MemoryTables()), [])
        task = asyncio.ensure_future(loop.run())
        await cluster.pass_time(16 * 60)
        assert [one.labels["alertname"] for one in loop.states.alerts()] == ["GangWaitsForFreeGPUs"]
        task.cancel()


@virtual
async def test_a_scrape_that_fails_does_not_stop_the_alerts_of_other_metrics(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        scraping = Scraping(OSError("connection refused"))
        hot = {"n1": 'DCGM_FI_DEV_GPU_TEMP{gpu="0",Hostname="n1"} 90\n'}
        sources = MetricSources(lambda: hot, scraping.registry.read, scraping.metrics.texts)
        loop = AlertLoop(cluster.clock, sources, AlertRows(MemoryTables()), [])
        task = asyncio.ensure_future(loop.run())
        await cluster.pass_time(6 * 60)
        assert [one.labels["alertname"] for one in loop.states.alerts()] == ["GPUHighTemperature"]
        task.cancel()


async def test_the_metrics_of_a_standby_are_not_taken_for_those_of_the_leader() -> None:
    scraping = Scraping(STANDS_BY + "shoal_waiting_gangs 9\n", STANDS_BY, LEADS + GANGS)
    assert await scraping.metrics.texts() == {ADDRESS: LEADS + GANGS}
    assert scraping.asked == [ADDRESS] * 3


async def test_a_process_without_leader_election_is_read_as_it_is() -> None:
    scraping = Scraping(GANGS)
    assert await scraping.metrics.texts() == {ADDRESS: GANGS}
    assert scraping.asked == [ADDRESS]


@pytest.mark.parametrize(
    ("answer", "what"),
    [
        (OSError("status 503"), "status 503"),
        (TimeoutError(), "no answer"),
        (STANDS_BY, "only standbys answer"),
    ],
    ids=["an error", "no answer", "standbys alone"],
)
async def test_a_failing_scrape_is_one_line_of_the_log_and_a_metric(
    answer: str | OSError | TimeoutError, what: str, caplog: pytest.LogCaptureFixture
) -> None:
    scraping = Scraping(answer)
    for _ in range(3):
        assert await scraping.metrics.texts() == {}
    assert scraping.up() == ['shoal_alerts_scrape_up{address="http://shoal-metrics.shoal-system.svc:8080"} 0']
    messages = [one.getMessage() for one in caplog.records if one.name == "shoal.alerts"]
    assert messages == [f"the metrics at http://shoal-metrics.shoal-system.svc:8080 cannot be read: {what}"]
    scraping.answers = [LEADS]
    await scraping.metrics.texts()
    assert scraping.up() == ['shoal_alerts_scrape_up{address="http://shoal-metrics.shoal-system.svc:8080"} 1']


def test_addresses_are_read_and_a_wrong_one_is_named() -> None:
    assert read_sources([ADDRESS, "https://h/m"]) == (ADDRESS, "https://h/m")
    for text in ("shoal-metrics:8080", "ftp://x", "http://"):
        with pytest.raises(UserError, match=r"--alerts-scrape: .* is no address of metrics"):
            read_sources([text])
