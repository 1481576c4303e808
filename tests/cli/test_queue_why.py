"""`shoal why` behind queues: the story of a workload, and of pods that have not been let go."""

from __future__ import annotations

from pathlib import Path

import pytest

from build.gpu_queues import RECLAIMS, gpu_job, gpu_queue, gpu_workload, gpus
from build.manifests import Object, as_file, node
from build.queue_manifests import flavor
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
