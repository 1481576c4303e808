"""`shoal why` behind queues: the story of a workload, and of pods that have not been let go."""

from __future__ import annotations

from pathlib import Path

import pytest

from build.gpu_queues import RECLAIMS, gpu_job, gpu_queue, gpu_workload, gpus
from build.manifests import Object, as_file, node
from build.queue_manifests import flavor, local_queue
from shoal.cli.main import main


class Explanation:
    """What the command says about a name."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._folder = folder
        self._capsys = capsys

    def of(self, name: str, *objects: Object) -> str:
        assert main(["why", "-f", as_file(self._folder, *objects), name]) == 0
        # Cells wrap at the width of the terminal; what is said does not depend on it.
        return " ".join(self._capsys.readouterr().out.split())


@pytest.fixture
def explanation(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Explanation:
    return Explanation(tmp_path, capsys)


def world(*more: Object) -> list[Object]:
    return [node("n", 8), flavor(), *gpu_queue("t", gpus(8)), gpu_workload("t/held", 1, 6, "f"), *more]


def test_of_a_workload_that_waits(explanation: Explanation) -> None:
    told = explanation.of("job-late", *world(gpu_job("t/late", 2, 2)))
    assert told.startswith("workload t/job-late waits: WaitingForQuota queue t/q asks 2 x main, each 2 nvidia.com/gpu")
    assert "priority 0; is tried again when something changes" in told
    assert "outlook It starts when others of its queue or cohort finish" in told
    assert "It starts if the workload ends: t/held." in told


def test_of_a_pod_that_is_held_back(explanation: Explanation) -> None:
    told = explanation.of("t/late-1", *world(gpu_job("t/late", 2, 2)))
    assert told.startswith("t/late-1 of workload t/job-late waits: WaitingForQuota")


def test_of_a_workload_that_is_admitted(explanation: Explanation) -> None:
    told = explanation.of("t/held", *world())
    assert told.startswith("workload t/held is admitted queue t/q asks 1 x main")
    assert "holds 1 x main of f in t pods t/held-main-0" in told
    assert "proof" not in told
    bare = explanation.of("t/held", *world()[1:])
    assert "not proven: no nodes are known." in bare


def test_of_a_pod_that_was_let_go(explanation: Explanation) -> None:
    assert explanation.of("t/held-main-0", *world()).startswith("t/held-main-0 runs on n, GPU 0, 1, 2, 3, 4, 5")


def test_of_a_pod_whose_workload_had_to_make_room(explanation: Explanation) -> None:
    queues = [*gpu_queue("a", gpus(8), cohort="c", preemption=RECLAIMS), *gpu_queue("b", gpus(0), cohort="c")]
    work = [gpu_workload("b/old", 1, 8, "f"), gpu_job("a/new", 1, 8, "2026-01-02T00:00:00Z")]
    told = explanation.of("old-main-0", node("n", 8), flavor(), *queues, *work)
    assert told.startswith("b/old-main-0 of workload b/old waits: WaitingForQuota")


def lost_job(queue: str, gpus_each: int = 2) -> Object:
    return gpu_job("t/lost", 1, gpus_each, labels={"kueue.x-k8s.io/queue-name": queue})


def living(*objects: Object) -> list[Object]:
    """Only objects of a cluster have uids, and only on a cluster can commands act."""
    return [{**each, "metadata": {**each["metadata"], "uid": f"uid-{each['metadata']['name']}"}} for each in objects]


def research(*more: Object) -> list[Object]:
    """The LocalQueue t/research leads to the ClusterQueue t, of which two GPUs are free."""
    return [*world(*more), local_queue("t/research", "t")]


def test_a_misspelled_queue_is_named_with_the_nearest_one_and_the_command(explanation: Explanation) -> None:
    told = explanation.of("job/lost", *living(*research(lost_job("reserch"))))
    assert 'LocalQueue t/reserch does not exist; did you mean "research"?' in told
    assert 'In job t/lost, metadata.labels["kueue.x-k8s.io/queue-name"]: research instead of reserch.' in told
    assert "kubectl label job lost -n t kueue.x-k8s.io/queue-name=research --overwrite" in told
    assert "Create LocalQueue" not in told
    assert "kubectl" not in explanation.of("job/lost", *research(lost_job("reserch")))


def test_a_corrected_queue_without_quota_is_no_remedy_alone(explanation: Explanation) -> None:
    told = explanation.of("job/lost", *research(lost_job("reserch", 4)), node("m", 8))
    assert "Two changes are needed. First: In job t/lost" in told
    assert "Then: Raise nominalQuota of nvidia.com/gpu in flavor f of ClusterQueue t from 8 to 10." in told
    too_large = explanation.of("job/lost", *research(lost_job("reserch", 16)))
    assert 'did you mean "research"? In LocalQueue "research" it would wait as well.' in too_large
    assert "kubectl" not in too_large


def test_a_queue_that_is_like_no_other_is_told_with_those_that_exist(explanation: Explanation) -> None:
    told = explanation.of("job/lost", *research(lost_job("zzz")))
    assert "LocalQueue t/zzz does not exist; those that exist in namespace t: q, research." in told
    alone = explanation.of("job/lost", node("n", 8), flavor(), *gpu_queue("u", gpus(8)), lost_job("q"))
    assert "LocalQueue t/q does not exist; no other one exists in namespace t." in alone


def test_a_missing_cluster_queue_is_told_once(explanation: Explanation) -> None:
    told = explanation.of("job/lost", *world(lost_job("nowhere"), local_queue("t/nowhere", "gone")))
    assert "would help ClusterQueue gone does not exist: create it." in told


def test_quota_that_is_given_back_names_the_jobs_that_hold_it(explanation: Explanation) -> None:
    queues = [*gpu_queue("a", gpus(8), cohort="c"), *gpu_queue("b", gpus(0), cohort="c")]
    reference = {"apiVersion": "batch/v1", "kind": "Job", "name": "old", "uid": "1", "controller": True}
    first, second = (gpu_workload(f"b/{name}", 1, 4, "f", priority=at) for at, name in enumerate(("job-old", "bare")))
    first["metadata"]["ownerReferences"] = [reference]
    nodes = [node("n", 8), node("m", 8)]
    told = explanation.of("a/job-new", *nodes, flavor(), *queues, first, second, gpu_job("a/new", 1, 2))
    borrowed = (
        "It starts if ClusterQueue b gives back 2 of the 8 nvidia.com/gpu in flavor f that it borrows, which happens"
    )
    assert f"{borrowed} when job b/old ends or is preempted." in told
    all_of_it = explanation.of("a/job-new", *nodes, flavor(), *queues, first, second, gpu_job("a/new", 1, 6))
    assert "when job b/old, b/bare end or are preempted." in all_of_it
