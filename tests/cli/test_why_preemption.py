"""What `shoal why` says of preemption on a living cluster: as the scheduler there would preempt, not otherwise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from build.gpu_queues import gpu_queue, gpu_workload, gpus
from build.manifests import Object, as_file, node, pod, volcano_group
from build.queue_manifests import flavor
from shoal.cli.main import main

GROUP = "scheduling.k8s.io/group-name"
PENDING = {"phase": "Pending"}


class Why:
    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._folder = folder
        self._capsys = capsys

    def told(self, name: str, *objects: Object) -> str:
        assert main(["why", name, "-f", as_file(self._folder, *objects)]) == 0
        return " ".join(self._capsys.readouterr().out.split())


@pytest.fixture
def why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Why:
    return Why(tmp_path, capsys)


def as_living(name: str, gpus: int, model: str) -> Object:
    made = node(name, gpus, labels={"nvidia.com/gpu.product": model})
    made["metadata"]["uid"] = f"uid-{name}"
    return made


def gang_on_two_nodes(priority: int = 0) -> list[Object]:
    """A gang of two pods with 4 GPUs each, and free GPUs elsewhere for both."""
    running = {"phase": "Running"}
    members: dict[str, Any] = {"annotations": {GROUP: "g"}, "status": running, "priority": priority}
    return [
        as_living("a", 8, "A100"),
        *(as_living(name, 4, "L4") for name in "bcd"),
        volcano_group("t/g", 2),
        pod("t/g-0", 4, "a", **members),
        pod("t/g-1", 4, "b", **members),
        pod("t/other", 4, "a", status=running, priority=1000),
    ]


def asks_a100(**spec: Any) -> Object:
    return pod("t/new", 4, status=PENDING, nodeSelector={"nvidia.com/gpu.product": "A100"}, **spec)


@pytest.mark.parametrize(
    "spec", [{}, {"preemptionPolicy": "Never", "priority": 100}], ids=["equal-priority", "never-preempts"]
)
def test_on_a_living_cluster_no_pods_are_said_to_move_for_a_pod(spec: Object, why: Why) -> None:
    told = why.told("t/new", *gang_on_two_nodes(), asks_a100(**spec))
    assert told.startswith("t/new waits: ")
    assert "moved to" not in told
    assert "has to preempt" not in told
    assert "once pods of lower priority" not in told


def test_a_pod_of_higher_priority_has_to_preempt_the_whole_gang_on_a_living_cluster(why: Why) -> None:
    told = why.told("t/new", *gang_on_two_nodes(), asks_a100(priority=100))
    assert "once pods of lower priority are preempted" in told
    assert "has to preempt t/g-0, t/g-1" in told


def test_a_pod_that_fits_only_after_another_one_preempted_does_not_fit_by_now(why: Why) -> None:
    running = {"phase": "Running"}
    low = pod("t/low", 8, "n", status=running)
    world = [
        as_living("n", 8, "A100"),
        low,
        pod("t/high", 4, status=PENDING, priority=100),
        pod("t/next", 4, status=PENDING),
    ]
    told = why.told("t/next", *world)
    assert told.startswith("t/next waits: it would fit on n, GPU 4, 5, 6, 7, once t/low is preempted for t/high")


def test_a_gang_that_has_to_preempt_others_does_not_fit_by_now(why: Why) -> None:
    low = pod("t/low", 8, "n", status={"phase": "Running"})
    annotations = {GROUP: "new"}
    members = [pod(f"t/new-{at}", 4, status=PENDING, priority=100, annotations=annotations) for at in range(2)]
    told = why.told("gang/new", as_living("n", 8, "A100"), low, volcano_group("t/new", 2), *members)
    assert told.startswith("gang t/new waits: its pods fit once pods of lower priority are preempted")
    assert "has to preempt t/low" in told


def waiting_gang(gpus: int, priority: int = 0) -> list[Object]:
    annotations = {GROUP: "new"}
    pods = [pod(f"t/new-{at}", gpus, status=PENDING, priority=priority, annotations=annotations) for at in range(2)]
    return [volcano_group("t/new", 2), *pods]


def test_a_gang_that_fits_only_after_others_were_preempted_for_another_pod_does_not_fit_by_now(why: Why) -> None:
    low = pod("t/low", 8, "n", status={"phase": "Running"})
    high = pod("t/high", 4, status=PENDING, priority=100)
    told = why.told("gang/new", as_living("n", 8, "A100"), low, high, *waiting_gang(2))
    assert told.startswith("gang t/new waits: its pods would fit once t/low is preempted for t/high")
    assert "by now" not in told


def test_a_gang_that_waits_for_pods_to_end_says_which(why: Why) -> None:
    meta = {"deletionTimestamp": "2026-01-01T00:05:00Z"}
    ending = pod("t/ends", 8, "n", status={"phase": "Running"}, meta=meta)
    told = why.told("gang/new", as_living("n", 8, "A100"), ending, *waiting_gang(4))
    assert told.startswith("gang t/new waits for capacity on n: other pods are ending there")
    assert "ending t/ends, until 00:05:00 UTC at the latest" in told
    elsewhere = why.told("gang/new", as_living("n", 8, "A100"), as_living("m", 8, "A100"), ending, *waiting_gang(4))
    assert elsewhere.startswith("gang t/new waits: by now it would be admitted"), "it fits on the other node"


def queued_world(high_gpus: int) -> list[Object]:
    """One workload of low priority holds all quota, one of high priority asks for some of it, and a small one waits."""
    low = pod("t/low-0", 8, "n", status={"phase": "Running"}, annotations={"kueue.x-k8s.io/workload": "low"})
    return [
        as_living("n", 8, "A100"),
        flavor(),
        *gpu_queue("t", gpus(8), preemption={"withinClusterQueue": "LowerPriority"}),
        gpu_workload("t/low", 1, 8, on="f"),
        gpu_workload("t/high", 1, high_gpus, priority=100),
        gpu_workload("t/next", 1, 4),
        low,
    ]


def test_a_workload_that_has_to_preempt_another_one_would_not_be_admitted_by_now(why: Why) -> None:
    told = why.told("workload/high", *queued_world(8))
    assert told.startswith("workload t/high waits: it would be admitted once other workloads are preempted")
    assert "has to preempt t/low" in told
    assert "by now" not in told


def test_a_workload_that_gets_quota_only_after_a_preemption_for_another_one_would_not_be_admitted_by_now(
    why: Why,
) -> None:
    told = why.told("workload/next", *queued_world(4))
    assert told.startswith("workload t/next waits: it would be admitted once t/low is preempted for t/high")
    assert "by now" not in told


def with_rules(**preemption: Any) -> Object:
    head = {"apiVersion": "config.shoal.dev/v1alpha1", "kind": "ShoalConfiguration"}
    return {**head, "metadata": {"name": "configuration"}, "preemption": preemption}


def test_where_the_scheduler_moves_pods_by_its_configuration_a_move_is_told(why: Why) -> None:
    gang = [*gang_on_two_nodes(), asks_a100()]
    assert "moved to" not in why.told("t/new", *gang)
    assert "t/g-0 (moved to " in why.told("t/new", *gang, with_rules(moves=True))
    assert "moved to" not in why.told("t/new", *gang, with_rules(moves=False))


def test_the_minimal_run_time_of_the_configuration_is_told_as_the_obstacle(why: Why) -> None:
    started = {"phase": "Running", "startTime": "2026-01-01T00:00:00Z"}
    clock = pod("t/clock", 1, "m", status={**started, "startTime": "2026-01-01T00:01:00Z"})
    world = [
        as_living("n", 8, "A100"),
        as_living("m", 1, "L4"),
        pod("t/low", 8, "n", status=started),
        clock,
        pod("t/high", 8, status=PENDING, priority=100),
    ]
    assert "has to preempt t/low" in why.told("t/high", *world)
    told = why.told("t/high", *world, with_rules(minRuntime="1h"))
    assert "has to preempt" not in told
    assert "the pods to preempt have not run long enough yet" in told
