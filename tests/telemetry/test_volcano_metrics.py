"""Volcano's metrics: what queues hold and deserve, and what the actions of a session did."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import pytest

from build.volcano_worlds import PLUGINS, World, plugin, queue
from shoal.controllers.volcano.measured_sessions import MeasuredSessions, SessionObserver
from shoal.engine.cycle import cycle
from shoal.engine.placement import Placement
from shoal.engine.profile import NO_PREFERENCES
from shoal.engine.queues.disciplines.volcano.configuration import VolcanoConfiguration
from shoal.engine.queues.disciplines.volcano.session import Session
from shoal.prometheus.exposition import text_of
from shoal.prometheus.registry import Registry
from shoal.telemetry.volcano import VolcanoMetrics

ACTIONS = ("enqueue", "allocate", "preempt", "reclaim", "backfill")


class Scene:
    """Eight cores and four GPUs; queue `a` has used up its share of the cores, `b` waits for some of its own."""

    def __init__(self) -> None:
        queues = [queue("root"), queue("a", weight=1), queue("b", weight=3, capability={"cpu": 6})]
        self.world = World(queues, {"n": {"cpu": 8, "gpu": 4}}, (tuple(plugin(name) for name in PLUGINS),))
        self.world.job("big", "a", *["n:2"] * 3, minimum=1, gpus=1)
        self.world.job("want", "b", ":4", min_resources={"cpu": 4}, is_enqueued=False)
        self.registry = Registry()
        self.metrics = VolcanoMetrics(self.registry)
        self.metrics.follow(self)
        self.moment_s = 0.0
        self.is_ours = True

    @property
    def session(self) -> Session | None:
        discipline = self.world.discipline
        return discipline.session if discipline is not None and self.is_ours else None

    def group_phases(self) -> Mapping[tuple[str, str], int]:
        return Counter({("a", "Running"): 1, ("b", "Pending"): 1})

    def tick(self) -> float:
        """Each look at the clock is a tenth of a second after the one before."""
        self.moment_s += 0.1
        return self.moment_s

    def run(self, observer: SessionObserver, cycles: int = 1) -> None:
        discipline = self.world.discipline
        assert discipline is not None
        measured = MeasuredSessions(observer, self.tick, discipline)
        placement = Placement(self.world.cluster, NO_PREFERENCES)
        for _ in range(cycles):
            cycle(self.world.cluster, placement, now_s=0.0, seed=0, steps=measured.steps())
            measured.done()

    def lines(self, name: str) -> list[str]:
        text = text_of(self.registry.read()).decode()
        return [line.removeprefix("volcano_") for line in text.splitlines() if line.startswith(f"volcano_{name}")]


class _Sessions:
    def __init__(self) -> None:
        self.victims: list[Mapping[str, Mapping[str, int]]] = []

    def observe(self, seconds: Mapping[str, float], victims: Mapping[str, Mapping[str, int]]) -> None:
        del seconds
        self.victims.append({action: dict(by_job) for action, by_job in victims.items()})


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("queue_allocated_milli_cpu", {"a": 6000, "b": 0, "root": 6000}),
        ("queue_request_milli_cpu", {"a": 6000, "b": 4000, "root": 10000}),
        ("queue_deserved_milli_cpu", {"a": 4000, "b": 4000, "root": 0}),
        ("queue_capacity_mill_cpu", {"a": 0, "b": 6000, "root": 0}),
        ("queue_real_capacity_mill_cpu", {"a": 8000, "b": 6000, "root": 0}),
        ("queue_weight", {"a": 1, "b": 3, "root": 1}),
        ("queue_share", {"a": 1.5, "b": 0, "root": 0}),
        ("queue_overused", {"a": 1, "b": 0, "root": 0}),
        ("queue_pod_group_running_count", {"a": 1, "b": 0, "root": 0}),
        ("queue_pod_group_pending_count", {"a": 0, "b": 1, "root": 0}),
    ],
)
def test_queues_have_the_figures_of_the_last_session(name: str, expected: dict[str, float]) -> None:
    scene = Scene()
    assert scene.lines(name + "{") == []
    scene.world.run("allocate")
    assert scene.lines(name + "{") == [
        f'{name}{{queue_name="{queue}"}} {amount:g}' for queue, amount in expected.items()
    ]


def test_other_resources_are_thousandths_and_have_their_name() -> None:
    scene = Scene()
    scene.world.run("allocate")
    assert 'queue_allocated_scalar_resources{queue_name="a",resource="nvidia.com/gpu"} 3000' in scene.lines(
        "queue_allocated_scalar_resources{"
    )


def test_each_session_is_timed_by_action_and_a_cycle_without_one_is_not() -> None:
    scene = Scene()
    scene.world.jobs.pop("ns/want")
    scene.world.run(*ACTIONS)
    scene.run(_Sessions(), cycles=2)
    scene.run(scene.metrics, cycles=2)
    assert scene.lines("action_scheduling_latency_milliseconds_count") == []
    scene.world.job("more", "a", ":1")
    scene.run(scene.metrics)
    found = scene.lines("action_scheduling_latency_milliseconds_sum")
    assert [line.partition('"')[2].partition('"')[0] for line in found] == list(ACTIONS)
    assert all(line.endswith("} 100") or "99.9" in line for line in found)
    assert scene.lines("e2e_scheduling_latency_milliseconds_count") == ["e2e_scheduling_latency_milliseconds_count 1"]
    assert scene.lines("open_session_duration_milliseconds_count") == ["open_session_duration_milliseconds_count 1"]


def test_jobs_for_which_an_action_evicted_are_counted() -> None:
    scene = Scene()
    scene.metrics.observe({"open session": 0.1, "preempt": 0.5}, {"preempt": {"x": 2, "y": 1}, "reclaim": {"z": 4}})
    assert scene.lines("total_preemption_attempts") == ["total_preemption_attempts 2"]
    assert scene.lines("pod_preemption_victims") == ["pod_preemption_victims 3"]
    assert scene.lines("eviction_transactions_total") == [
        'eviction_transactions_total{action="preempt"} 2',
        'eviction_transactions_total{action="reclaim"} 1',
    ]


def test_the_evictions_of_an_action_are_those_of_its_step() -> None:
    scene, found = Scene(), _Sessions()
    scene.world.run("enqueue")
    assert scene.world.discipline is not None
    scene.world.jobs.pop("ns/want")
    scene.world.discipline.configure(VolcanoConfiguration(ACTIONS, scene.world.plugins))
    scene.world.job("more", "b", ":4")
    scene.run(found)
    assert found.victims == [{"reclaim": {"ns/more": 1}}]


def test_nothing_is_served_while_volcano_itself_decides() -> None:
    scene = Scene()
    scene.world.run("allocate")
    assert scene.lines("unschedule_job_counts") == ["unschedule_job_counts 1"]
    scene.is_ours = False
    assert scene.lines("queue_") == scene.lines("unschedule_job_counts") == []
