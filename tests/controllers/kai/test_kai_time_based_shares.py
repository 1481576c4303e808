"""Fair shares that depend on what queues used before: measured on a cluster, and kept over restarts."""

from __future__ import annotations

import json
from base64 import b64encode
from pathlib import Path
from random import Random
from typing import Any

import pytest

from build.jumping_clock import JumpingClock
from build.kai_clusters import add_kai_queue, add_work, bound, kai_cluster, start_kai, terminating
from build.live_schedulers import add_node
from build.small_clusters import SmallCluster
from build.virtual_time import virtual
from shoal.api.groups.kai import USAGE_ANNOTATION
from shoal.client.ecosystem_kinds import KAI_SHARDS
from shoal.client.kind import PODS
from shoal.client.port import Deletion
from shoal.engine.queues.disciplines.kai.usage_record import Bucket, UsageRecord, UsageState, UsageWindow
from shoal.engine.queues.disciplines.kai.usage_text import usage_state, usage_text

_USAGE: dict[str, Any] = {"usageDBConfig": {"clientType": "prometheus", "usageParams": {"windowSize": "1d"}}}


async def _add_shard(cluster: SmallCluster, **spec: Any) -> None:
    await cluster.create(KAI_SHARDS, {"metadata": {"name": "default"}, "spec": spec})


async def _add_queues(cluster: SmallCluster) -> None:
    await add_node(cluster, "n1", gpus=4)
    for name in ("a", "b"):
        await add_kai_queue(cluster, name, 0)


async def _run(cluster: SmallCluster, queue: str, count: int) -> None:
    for index in range(count):
        await add_work(cluster, f"{queue}{index}", queue, priorityClassName="train")
    await cluster.until(lambda: _count(cluster, queue, count))
    for index in range(count):
        started = {"phase": "Running", "startTime": cluster.clock.text()}
        await cluster.patch(PODS, f"{queue}{index}", {"status": started}, "status")


async def _count(cluster: SmallCluster, start: str, count: int) -> bool:
    return len(await bound(cluster, start)) == count


async def _annotation(cluster: SmallCluster) -> str:
    notes: dict[str, str] = (await cluster.get(KAI_SHARDS, "default"))["metadata"].get("annotations") or {}
    return notes.get(USAGE_ANNOTATION, "")


@pytest.mark.parametrize(
    ("spec", "yields"),
    [({**_USAGE, "kValue": 0}, 2), ({**_USAGE, "kValue": 0.5}, 3)],
    ids=["a k of 0", "a k of one half"],
)
@virtual
async def test_a_queue_that_had_all_gpus_yields_more_of_them(tmp_path: Path, spec: dict[str, Any], yields: int) -> None:
    async with kai_cluster(tmp_path) as cluster:
        start_kai(cluster)
        await _add_shard(cluster, **spec)
        await _add_queues(cluster)
        await _run(cluster, "a", 4)
        await cluster.pass_time(700)
        for index in range(4):
            await add_work(cluster, f"b{index}", "b", priorityClassName="train")
        await cluster.pass_time(10)
        assert len(await terminating(cluster)) == yields


@virtual
async def test_what_was_used_counts_after_a_restart(tmp_path: Path) -> None:
    async with kai_cluster(tmp_path) as cluster:
        first = start_kai(cluster)
        await _add_shard(cluster, **_USAGE)
        await _add_queues(cluster)
        await _run(cluster, "a", 4)
        await cluster.pass_time(900)
        for index in range(4):
            await cluster.delete(PODS, f"a{index}", Deletion(grace_s=0))
        await cluster.pass_time(400)
        await first.kill()
        await cluster.pass_time(60)
        start_kai(cluster)
        for name in ("a", "b"):
            for index in range(4, 8):
                await add_work(cluster, f"{name}{index}", name, priorityClassName="train")
        await cluster.pass_time(10)
        assert len(await terminating(cluster)) == 3, "without a record it would be two"


@virtual
async def test_pods_that_run_on_are_measured_as_if_no_process_had_ended(tmp_path: Path) -> None:
    async with kai_cluster(tmp_path) as cluster:
        first = start_kai(cluster)
        await _add_shard(cluster, **_USAGE)
        await _add_queues(cluster)
        await _run(cluster, "a", 3)
        await cluster.pass_time(1000)
        await first.kill()
        await cluster.pass_time(2000)
        start_kai(cluster)
        await cluster.pass_time(700)
        state = usage_state(await _annotation(cluster))
        assert UsageRecord(UsageWindow(), state).usage()["a"][0] == pytest.approx(0.75, abs=0.01)


@virtual
async def test_the_record_is_written_at_most_every_five_minutes(tmp_path: Path) -> None:
    async with kai_cluster(tmp_path) as cluster:
        start_kai(cluster)
        await _add_shard(cluster, **_USAGE)
        await _add_queues(cluster)
        await _run(cluster, "a", 1)
        texts = {await _annotation(cluster)}
        for _ in range(30):
            await cluster.pass_time(60)
            texts.add(await _annotation(cluster))
        assert 4 <= len(texts) <= 7


@virtual
async def test_without_usage_db_config_nothing_is_written(tmp_path: Path) -> None:
    async with kai_cluster(tmp_path) as cluster:
        start_kai(cluster)
        await _add_shard(cluster)
        await _add_queues(cluster)
        await _run(cluster, "a", 1)
        await cluster.pass_time(700)
        assert await _annotation(cluster) == ""


@virtual
async def test_an_annotation_that_is_no_record_is_begun_anew(tmp_path: Path) -> None:
    async with kai_cluster(tmp_path) as cluster:
        notes = {USAGE_ANNOTATION: "nothing"}
        await cluster.create(KAI_SHARDS, {"metadata": {"name": "default", "annotations": notes}, "spec": _USAGE})
        start_kai(cluster)
        await _add_queues(cluster)
        await _run(cluster, "a", 4)
        await cluster.pass_time(700)
        assert usage_state(await _annotation(cluster)).buckets


@pytest.mark.parametrize("for_s", [20, 400], ids=["a moment", "some minutes"])
@virtual
async def test_a_clock_that_ran_ahead_stops_no_measurement(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, for_s: float
) -> None:
    async with kai_cluster(tmp_path) as cluster:
        true, clock = cluster.clock, JumpingClock(cluster.clock)
        cluster.clock = clock  # type: ignore[assignment]
        start_kai(cluster)
        cluster.clock = true
        await _add_shard(cluster, **_USAGE)
        await _add_queues(cluster)
        await _run(cluster, "a", 2)
        await cluster.pass_time(700)
        clock.ahead_s = 30 * 86_400
        await cluster.pass_time(for_s)
        clock.ahead_s = 0
        await cluster.pass_time(1000)
        state = usage_state(await _annotation(cluster))
        assert 0 <= cluster.clock.seconds() - state.until_s <= 400
        assert UsageRecord(UsageWindow(), state).usage()["a"][0] == pytest.approx(0.5, abs=0.01)
        assert any("the clock ran ahead" in one.message for one in caplog.records) is (for_s > 60)


@virtual
async def test_a_record_that_is_too_long_to_be_written_is_logged_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with kai_cluster(tmp_path) as cluster:
        draw, now = Random(1), int(cluster.clock.seconds())
        uses = {b64encode(draw.randbytes(90)).decode(): [1, 1, 1] for _ in range(1800)}
        record = UsageRecord(UsageWindow(), UsageState(now, now, [Bucket(now - 60, now, now, [60, 60, 60], uses)]))
        notes = {USAGE_ANNOTATION: usage_text(record, 260_000)}
        await cluster.create(KAI_SHARDS, {"metadata": {"name": "default", "annotations": notes}, "spec": _USAGE})
        start_kai(cluster)
        await _add_queues(cluster)
        await cluster.pass_time(1000)
        assert sum("too long for an annotation" in one.message for one in caplog.records) == 1


class _Prometheus:
    """Says that queue a used all GPUs all the time, or does not answer."""

    def __init__(self) -> None:
        self.answers = True
        self.asked: list[str] = []

    async def ask(self, address: str) -> str:
        self.asked.append(address)
        if not self.answers:
            raise OSError("status 503")
        labels = {"queue_name": "a"} if "kai_queue_allocated" in address else {}
        series = [{"metric": labels, "values": [[1, "100"]]}]
        return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": series}})


async def _told(cluster: SmallCluster) -> list[str]:
    return [event["reason"] for event in await cluster.events("default") if event["reason"].startswith("Usage")]


@pytest.mark.parametrize("answers", [True, False], ids=["it answers", "it does not"])
@virtual
async def test_what_a_server_says_counts_at_once_and_else_what_was_measured(tmp_path: Path, answers: bool) -> None:
    config = {**_USAGE["usageDBConfig"], "connectionString": "http://prometheus:9090/"}
    async with kai_cluster(tmp_path) as cluster:
        server = _Prometheus()
        server.answers = answers
        start_kai(cluster, ask=server.ask)
        await _add_shard(cluster, usageDBConfig=config, kValue=0.5)
        await _add_queues(cluster)
        await _run(cluster, "a", 4)
        await cluster.pass_time(5)
        for index in range(4):
            await add_work(cluster, f"b{index}", "b", priorityClassName="train")
        await cluster.pass_time(10)
        assert len(await terminating(cluster)) == (3 if answers else 2), "nothing was measured yet"
        assert await _told(cluster) == ["UsageRead" if answers else "UsageNotRead"]
        assert server.asked[0].startswith("http://prometheus:9090/api/v1/query_range?query=sum_over_time")


@virtual
async def test_a_server_that_stops_answering_is_told_once_and_counts_for_its_staleness_period(tmp_path: Path) -> None:
    config = {**_USAGE["usageDBConfig"], "connectionString": "http://prometheus:9090"}
    async with kai_cluster(tmp_path) as cluster:
        server = _Prometheus()
        kai = start_kai(cluster, ask=server.ask)
        await _add_shard(cluster, usageDBConfig=config)
        await _add_queues(cluster)
        await _run(cluster, "b", 2)
        discipline = kai.discipline.discipline.disciplines["default"]
        await cluster.pass_time(70)
        assert discipline.usage == {"a": (1.0, 1.0, 1.0)}
        server.answers = False
        await cluster.pass_time(200)
        assert discipline.usage == {"a": (1.0, 1.0, 1.0)}
        await cluster.pass_time(300)
        assert discipline.usage["b"][0] == pytest.approx(0.5, abs=0.05), "as it was measured"
        assert "a" not in discipline.usage
        server.answers = True
        await cluster.pass_time(70)
        assert discipline.usage == {"a": (1.0, 1.0, 1.0)}
        assert await _told(cluster) == ["UsageRead", "UsageNotRead", "UsageRead"]
