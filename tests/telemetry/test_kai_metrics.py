"""KAI's metrics: what queues hold and deserve, and what the actions of a cycle did."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from build.fair_share import NOW_S, FairWorld, queue
from shoal.api.meta import ObjectMeta
from shoal.engine.cycle import cycle
from shoal.engine.queues.disciplines.kai.action_counts import ActionCounts
from shoal.engine.queues.disciplines.kai.objects import (
    Queue,
    QueueResources,
    QueueResourceShare,
    QueueSpec,
)
from shoal.engine.queues.disciplines.kai.sharded_fairshare import ShardedFairshare
from shoal.prometheus.exposition import text_of
from shoal.prometheus.registry import Registry
from shoal.telemetry.kai import KaiMetrics

_ENDLESS = QueueResourceShare(-1, -1, 1)


def _written(name: str, gpus: float, title: str = "") -> Queue:
    resources = QueueResources(QueueResourceShare(gpus, -1, 1), QueueResourceShare(2500, -1, 1), _ENDLESS)
    return Queue(ObjectMeta(name=name), QueueSpec(title, resources=resources))


class _Source:
    def __init__(self, discipline: ShardedFairshare) -> None:
        self.discipline = discipline
        self.queues: Mapping[str, Queue] = {"a": _written("a", 2, "Team A"), "b": _written("b", -1)}


class Scene:
    """Queue a holds all four GPUs; b asks for two of its quota."""

    def __init__(self) -> None:
        self.world = FairWorld([4], queue("a", quota=2), queue("b", quota=2))
        for at in range(4):
            self.world.job(f"ns/a{at}", "a", on=["n0"])
        for at in range(2):
            self.world.job(f"ns/b{at}", "b")
        self.discipline = ShardedFairshare(self.world.discipline.queues)
        self.registry = Registry()
        self.metrics = KaiMetrics(self.registry)
        self.metrics.follow(_Source(self.discipline))

    def run(self) -> None:
        world = self.world
        cycle(world.cluster, world.placement, now_s=NOW_S, seed=0, steps=self.discipline.steps())

    def lines(self, name: str) -> list[str]:
        text = text_of(self.registry.read()).decode()
        return [line for line in text.splitlines() if line.startswith(name)]


def _labels(name: str, title: str = "") -> str:
    return f'queue_name="{name}",queue_metadata_name="{name}",queue_display_name="{title}"'


def test_quotas_are_those_of_the_queue_and_minus_one_is_unlimited() -> None:
    scene = Scene()
    a, b = _labels("a", "Team A"), _labels("b")
    assert scene.lines("kai_queue_info{") == [f"kai_queue_info{{{a}}} 1", f"kai_queue_info{{{b}}} 1"]
    assert scene.lines("kai_queue_deserved_gpus{") == [
        f"kai_queue_deserved_gpus{{{a}}} 2",
        f"kai_queue_deserved_gpus{{{b}}} -1",
    ]
    assert scene.lines("kai_queue_quota_cpu_cores{")[0] == f"kai_queue_quota_cpu_cores{{{a}}} 2.5"
    assert scene.lines("kai_queue_quota_memory_bytes{")[0] == f"kai_queue_quota_memory_bytes{{{a}}} -1"


def test_what_queues_hold_and_their_fair_shares_are_those_of_the_latest_cycle() -> None:
    scene = Scene()
    assert scene.lines("kai_queue_fair_share_gpu{") == []
    scene.run()
    a, b = _labels("a", "Team A"), _labels("b")
    assert scene.lines("kai_queue_fair_share_gpu{") == [
        f"kai_queue_fair_share_gpu{{{a}}} 2",
        f"kai_queue_fair_share_gpu{{{b}}} 2",
    ]
    assert scene.lines("kai_queue_allocated_gpus{")[0] == f"kai_queue_allocated_gpus{{{a}}} 2"
    assert scene.lines("kai_queue_fair_share_memory_gb{")[0] == f"kai_queue_fair_share_memory_gb{{{a}}} 4e-06"


def test_use_over_time_is_there_where_fair_shares_depend_on_it() -> None:
    scene = Scene()
    assert scene.lines("kai_queue_gpu_usage{") == []
    scene.discipline.disciplines[""].usage = {"a": (0.25, 0.5, 0.0)}
    assert scene.lines("kai_queue_gpu_usage{") == [f"kai_queue_gpu_usage{{{_labels('a', 'Team A')}}} 0.25"]


def test_the_actions_of_a_cycle_are_counted_once() -> None:
    scene = Scene()
    scene.run()
    (_, found), *others = scene.discipline.cycles()
    assert not others
    for _ in range(2):
        scene.metrics.count(found.counts.take(), "", lambda job: f"uid-{job}")
    assert scene.lines("kai_podgroups_scheduled_by_action{") == [
        'kai_podgroups_scheduled_by_action{action="allocate"} 0',
        'kai_podgroups_scheduled_by_action{action="reclaim"} 2',
    ]
    assert 'kai_podgroups_acted_on_by_action{action="allocate"} 2' in scene.lines("kai_podgroups_acted_on_by_action{")
    assert scene.lines("kai_total_preemption_attempts ") == ["kai_total_preemption_attempts 2"]
    evicted = scene.lines("kai_pod_group_evicted_pods_total{")
    assert len(evicted) == 2
    assert all('namespace="ns"' in line and 'nodepool="default",action="reclaim"} 1' in line for line in evicted)


def test_what_was_evicted_of_a_group_is_forgotten_with_it() -> None:
    scene = Scene()
    counts = ActionCounts()
    counts.evicted[("ns/gone", "reclaim")] += 1
    counts.evicted[("ns/gone", "preempt")] += 1
    counts.evicted[("ns/kept", "reclaim")] += 1
    counts.evicted[("other/gone", "reclaim")] += 1
    scene.metrics.count(counts, "", lambda job: f"uid-{job}")
    scene.metrics.forget("ns", "gone")
    lines = scene.lines("kai_pod_group_evicted_pods_total{")
    assert [line.split('uid="')[1].split('"')[0] for line in lines] == ["uid-ns/kept", "uid-other/gone"]


def test_durations_are_those_of_the_latest_cycle_in_milliseconds() -> None:
    scene = Scene()
    scene.metrics.observe({"open": 0.5, "allocate": 0.25, "close": 0.125})
    assert scene.lines("kai_e2e_scheduling_latency_milliseconds ") == ["kai_e2e_scheduling_latency_milliseconds 875"]
    assert scene.lines("kai_open_session_latency_milliseconds ") == ["kai_open_session_latency_milliseconds 500"]
    assert scene.lines("kai_action_scheduling_latency_milliseconds{") == [
        'kai_action_scheduling_latency_milliseconds{action="allocate"} 250'
    ]


def test_queues_that_were_deleted_have_no_series_any_more() -> None:
    scene = Scene()
    source = _Source(scene.discipline)
    source.queues = {"a": replace(source.queues["a"])}
    scene.metrics.follow(source)
    assert len(scene.lines("kai_queue_info{")) == 1
