"""The metrics of a cluster whose queues KAI's fair share decides about."""

from __future__ import annotations

from itertools import count
from pathlib import Path

from build.kai_clusters import add_kai_itself, add_kai_queue, add_work, bound, kai_cluster, kai_scheduler
from build.live_schedulers import add_node
from build.virtual_time import virtual
from shoal.client.ecosystem_kinds import KAI_POD_GROUPS
from shoal.engine.queues.disciplines.kai.action_counts import ActionCounts
from shoal.prometheus.exposition import text_of
from shoal.prometheus.registry import Registry
from shoal.telemetry.kai import KaiMetrics


def _lines(registry: Registry, name: str) -> list[str]:
    return [line for line in text_of(registry.read()).decode().splitlines() if line.startswith(name)]


@virtual
async def test_cycles_are_timed_and_counted_and_queues_are_read_until_kai_itself_runs(tmp_path: Path) -> None:
    async with kai_cluster(tmp_path) as cluster:
        live, admission = kai_scheduler(cluster, asks_for_kai=True)
        registry, ticks = Registry(), count()
        metrics = KaiMetrics(registry)
        metrics.follow(admission)
        admission.measure(metrics, lambda: next(ticks) / 1024)
        live.start()
        await add_node(cluster, "n1", gpus=2)
        await add_kai_queue(cluster, "team", 1)
        for index in range(3):
            await add_work(cluster, f"w{index}", "team")
        await cluster.pass_time(5)
        assert len(await bound(cluster)) == 2
        assert _lines(registry, "kai_queue_allocated_gpus{")[0].endswith(" 2")
        assert _lines(registry, "kai_podgroups_scheduled_by_action{") == [
            'kai_podgroups_scheduled_by_action{action="allocate"} 2'
        ]
        assert _lines(registry, "kai_e2e_scheduling_latency_milliseconds ") == [
            "kai_e2e_scheduling_latency_milliseconds 6.8359375"
        ], "seven steps of one tick each"
        await add_kai_itself(cluster)
        await cluster.pass_time(40)
        assert _lines(registry, "kai_queue_info{") == []


@virtual
async def test_a_pod_group_that_is_gone_has_no_metrics(tmp_path: Path) -> None:
    async with kai_cluster(tmp_path) as cluster:
        live, admission = kai_scheduler(cluster)
        registry = Registry()
        metrics = KaiMetrics(registry)
        admission.measure(metrics, lambda: 0.0)
        live.start()
        for name in ("gone", "kept"):
            await cluster.create(
                KAI_POD_GROUPS, {"metadata": {"name": name}, "spec": {"queue": "team", "minMember": 1}}
            )
        await cluster.pass_time(5)
        counts = ActionCounts()
        counts.evicted.update({("default/gone", "reclaim"): 1, ("default/kept", "reclaim"): 1})
        metrics.count(counts, "", lambda job: job)
        await cluster.delete(KAI_POD_GROUPS, "gone")
        await cluster.pass_time(5)
        (line,) = _lines(registry, "kai_pod_group_evicted_pods_total{")
        assert 'podgroup="kept"' in line
