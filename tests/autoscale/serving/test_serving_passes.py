"""Passes over a model remember what shrinking depends on; annotations and pods are read as they are written."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from shoal.api.conditions import Condition
from shoal.autoscale.serving.annotations import AnnotationError, QueueEndpoint, ServingSettings, serving_settings
from shoal.autoscale.serving.cold_start import ColdStart
from shoal.autoscale.serving.passes import ModelMemory, SeenModel, SeenReplica, serving_pass
from shoal.autoscale.serving.replica_groups import (
    ContainerRun,
    RunningState,
    ServingContainer,
    ServingPod,
    ServingPodMeta,
    ServingPodStatus,
    single_pods,
    worker_groups,
)
from shoal.autoscale.serving.replicas import ServingPolicy
from shoal.autoscale.serving.server_load import ServerLoad

PREFIX = "serving.shoal.dev/"
START = datetime(2026, 11, 27, 12, tzinfo=UTC)


def settings_of(**written: str) -> ServingSettings:
    return serving_settings({f"{PREFIX}{name.replace('_', '-')}": text for name, text in written.items()})


def test_annotations_have_usual_values() -> None:
    assert settings_of(max_replicas="4").policy == ServingPolicy(most=4)
    found = settings_of(
        max_replicas="8",
        min_replicas="0",
        ttft_objective="500ms",
        window="2m",
        metrics_port="80",
        queue_url="http://q/m",
    )
    assert found.policy == ServingPolicy(8.0, 0.5, least=0, most=8, window_s=120.0, is_buffered=True)
    assert found.queue == QueueEndpoint("http://q/m", "inference_extension_flow_control_queue_size")
    assert (found.port, found.path) == (80, "/metrics")


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ({"max_replicas": "many"}, 'max-replicas: "many" is not a whole number of at least 1'),
        ({"max_replicas": "0"}, '"0" is not a whole number of at least 1'),
        ({"max_replicas": "2", "min_replicas": "3"}, "min-replicas: 3 is above max-replicas 2"),
        ({"max_replicas": "2", "window": "soon"}, 'window: "soon" is not a duration'),
        ({"max_replicas": "2", "target_concurrency": "NaN"}, 'target-concurrency: "NaN" is not a number above 0'),
        ({"max_replicas": "2", "cache_limit": "80"}, "cache-limit: 80 is above 1"),
        ({"max_replicas": "2", "metrics_path": "metrics"}, "metrics-path: the path begins with /"),
        ({"max_replicas": "2", "queue_url": "q"}, "queue-url: write http://HOST:PORT/PATH"),
        ({"max_replicas": "2", "max_replica": "3"}, "serving.shoal.dev/max-replica is not known"),
    ],
)
def test_an_annotation_that_cannot_be_read_is_named(written: dict[str, str], words: str) -> None:
    with pytest.raises(AnnotationError) as refusal:
        settings_of(**written)
    assert words in str(refusal.value)


def replicas(*loads: ServerLoad | None) -> list[SeenReplica]:
    return [SeenReplica(f"pod-{number}", 1000.0, load) for number, load in enumerate(loads)]


IDLE, BUSY = ServerLoad(0), ServerLoad(20, 12)


def test_replicas_grow_at_once_and_shrink_one_by_one_after_the_measured_start() -> None:
    settings = settings_of(max_replicas="4", window="10s")
    memory = ModelMemory(start=ColdStart().with_start({"image": 30.0, "weights": 60.0}))
    decision, memory = serving_pass(SeenModel(replicas(BUSY), 1), settings, memory, 0.0)
    assert (decision.replicas, decision.reason) == (4, "32 requests, 8 for each replica")
    quiet = SeenModel(replicas(IDLE, IDLE, IDLE, IDLE), 4)
    for at_s in (15.0, 60.0, 104.0):
        decision, memory = serving_pass(quiet, settings, memory, at_s)
        assert decision.replicas == 4
    decision, memory = serving_pass(quiet, settings, memory, 105.0)
    assert decision.replicas == 3
    fewer = SeenModel(replicas(IDLE, IDLE, IDLE), 3)
    decision, memory = serving_pass(fewer, settings, memory, 120.0)
    assert decision.replicas == 3
    decision, memory = serving_pass(fewer, settings, memory, 210.0)
    assert decision.replicas == 2


def test_one_busy_pass_begins_the_time_of_calm_anew() -> None:
    settings, memory = settings_of(max_replicas="4", window="60s"), ModelMemory()
    seen = {at_s: SeenModel(replicas(BUSY if at_s == 45 else IDLE, IDLE, IDLE, IDLE), 4) for at_s in range(0, 120, 15)}
    found = []
    for at_s, one in seen.items():
        decision, memory = serving_pass(one, settings, memory, float(at_s))
        found.append(decision.replicas)
    assert found == [4] * 8


def test_the_last_replicas_go_when_they_have_cost_as_much_as_a_start() -> None:
    settings = settings_of(max_replicas="2", min_replicas="0", window="10s", queue_url="http://q/")
    memory = ModelMemory(start=ColdStart().with_start({"weights": 100.0}))
    decisions = {}
    for at_s in (0.0, 60.0, 99.0, 100.0):
        decision, memory = serving_pass(SeenModel(replicas(IDLE), 1), settings, memory, at_s)
        decisions[at_s] = decision.replicas
    assert decisions == {0.0: 1, 60.0: 1, 99.0: 1, 100.0: 0}
    decision, memory = serving_pass(SeenModel([], 0, 0.0), settings, memory, 115.0)
    assert decision.replicas == 0
    decision, memory = serving_pass(SeenModel([], 0, 3.0), settings, memory, 130.0)
    assert (decision.replicas, decision.reason) == (1, "3 requests wait for a replica")


def test_nothing_shrinks_while_a_queue_or_a_replica_cannot_be_read() -> None:
    settings = settings_of(max_replicas="2", min_replicas="0", window="0s", queue_url="http://q/")
    for seen in (SeenModel(replicas(IDLE, None), 2), SeenModel(replicas(IDLE, IDLE), 2, None)):
        memory = ModelMemory()
        for at_s in (0.0, 1000.0, 2000.0):
            decision, memory = serving_pass(seen, settings, memory, at_s)
            assert decision.replicas == 2
            assert decision.reason.endswith("not known")


def test_the_time_to_the_first_token_is_that_of_the_requests_since_the_last_pass() -> None:
    settings, memory = settings_of(max_replicas="4", ttft_objective="500ms"), ModelMemory()
    slow = {0.5: 0.0, 1.0: 100.0, float("inf"): 100.0}
    quick = {0.5: 100.0, 1.0: 200.0, float("inf"): 200.0}
    decision, memory = serving_pass(SeenModel(replicas(ServerLoad(1, ttft=slow)), 1), settings, memory, 0.0)
    assert decision.replicas == 1
    decision, memory = serving_pass(SeenModel(replicas(ServerLoad(1, ttft=quick)), 1), settings, memory, 15.0)
    assert decision.replicas == 1
    late = {0.5: 100.0, 1.0: 300.0, float("inf"): 300.0}
    decision, memory = serving_pass(SeenModel(replicas(ServerLoad(1, ttft=late)), 1), settings, memory, 30.0)
    assert (decision.replicas, decision.reason) == (2, "the first token takes 0.95 s instead of 0.5 s")


# -- pods -----------------------------------------------------------------------------------------------------------


def pod(name: str, labels: dict[str, str] | None = None, *, is_ready: bool = True, restarts: int = 0) -> ServingPod:
    def after(seconds: float) -> datetime:
        return START + timedelta(seconds=seconds)

    conditions = [Condition("PodScheduled", "True", last_transition_time=after(120))]
    conditions += [Condition("Ready", "True" if is_ready else "False", last_transition_time=after(260))]
    container = ServingContainer(restarts, ContainerRun(RunningState(after(180))))
    meta = ServingPodMeta(name, name, labels or {}, START)
    return ServingPod(meta, ServingPodStatus("Running", "10.0.0.1", tuple(conditions), (container,)))


def test_a_start_is_measured_by_phases() -> None:
    assert pod("a").start_phases() == {"node": 120.0, "image": 60.0, "weights": 80.0}
    assert pod("a", is_ready=False).start_phases() == {}
    assert pod("a", restarts=1).start_phases() == {}
    assert [one.is_ready for one in single_pods([pod("a"), pod("b", is_ready=False)])] == [True, False]


def test_a_group_is_a_replica_when_all_its_pods_are_ready() -> None:
    def member(group: int, worker: int, *, is_ready: bool = True) -> ServingPod:
        labels = {
            "leaderworkerset.sigs.k8s.io/group-index": str(group),
            "leaderworkerset.sigs.k8s.io/worker-index": str(worker),
        }
        return pod(f"{group}-{worker}", labels, is_ready=is_ready)

    pods = [member(0, 1), member(0, 0), member(1, 0), member(2, 0), member(2, 1, is_ready=False), member(3, 1)]
    found = {one.leader.metadata.name: one.is_ready for one in worker_groups(pods, 2)}
    assert found == {"0-0": True, "1-0": False, "2-0": False}
