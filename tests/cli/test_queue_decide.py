"""`shoal decide` behind queues: the lists that speak of workloads, and what people read of them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from build.gpu_queues import BY_PRIORITY, RECLAIMS, gpu_job, gpu_queue, gpu_workload, gpus
from build.manifests import Object, as_file, job, node, pod, thing, topology
from build.queue_manifests import IN_Q, KUEUE, condition, flavor
from docs.pages import ROOT
from shoal.cli.main import main
from shoal.engine.queues.reasons import Wait
from shoal.views.waits import HELP

LATE = "2026-01-02T00:00:00Z"


class Command:
    """The command on objects, in this process."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._folder = folder
        self._capsys = capsys
        self.err = ""

    def text(self, *objects: Object, options: tuple[str, ...] = ()) -> str:
        code = main(["decide", "-f", as_file(self._folder, *objects), *options])
        out, self.err = self._capsys.readouterr()
        assert code == 0, self.err
        return out

    def rounds(self, *objects: Object, options: tuple[str, ...] = ()) -> list[dict[str, Any]]:
        rounds: list[dict[str, Any]] = json.loads(self.text(*objects, options=("--json", *options)))["rounds"]
        return rounds

    def complaint(self, *objects: Object) -> str:
        assert main(["decide", "-f", as_file(self._folder, *objects)]) == 2
        err = self._capsys.readouterr().err
        lines = [line for line in err.splitlines() if not line.startswith("shoal: warning: ")]
        assert len(lines) == 1
        return lines[0]


@pytest.fixture
def command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(tmp_path, capsys)


def reclaimed() -> list[Object]:
    """Queue `b` borrows all that `a` has, and `a` wants it back."""
    queues = [*gpu_queue("a", gpus(8), cohort="c", preemption=RECLAIMS), *gpu_queue("b", gpus(0), cohort="c")]
    return [node("n", 8), flavor(), *queues, gpu_workload("b/old", 1, 8, "f"), gpu_job("a/new", 1, 8, LATE)]


def test_an_admission_names_queue_count_and_flavors(command: Command) -> None:
    first, *_ = command.rounds(node("n", 8), flavor(), *gpu_queue("t", gpus(8)), gpu_job("t/a", 2, 4))
    pod_set = {"name": "main", "count": 2, "flavors": {"nvidia.com/gpu": "f"}, "topology": []}
    assert first["admitted"] == [{"workload": "t/job-a", "queue": "t/q", "podSets": [pod_set]}]
    assert (first["preempted"], first["waiting"]) == ([], [])


def test_an_admission_tells_the_pods_of_each_domain(command: Command) -> None:
    level = "example.com/rack"
    fleet = [node(f"n-{rack}", 2, labels={level: rack, "fleet": "x"}) for rack in "ab"]
    racks = [topology(KUEUE, "racks", level), flavor(topologyName="racks", nodeLabels={"fleet": "x"})]
    wide = gpu_workload("t/w", 3, 1, topologyRequest={"preferred": level})
    first, *_ = command.rounds(*fleet, *racks, *gpu_queue("t", gpus(8)), wide)
    (pod_set,) = first["admitted"][0]["podSets"]
    assert sorted(pod_set["topology"], key=lambda each: str(each["values"])) == [
        {"values": ["a"], "count": 2},
        {"values": ["b"], "count": 1},
    ]


def test_a_preemption_names_whom_it_is_for_and_kueues_reason(command: Command) -> None:
    first, second, *_ = command.rounds(*reclaimed())
    assert first["preempted"] == [{"workload": "b/old", "for": "a/job-new", "reason": "InCohortReclamation"}]
    assert [each["workload"] for each in second["admitted"]] == ["a/job-new"]


def test_who_waits_is_told_with_state_and_reason_in_every_round(command: Command) -> None:
    rounds = command.rounds(*reclaimed())
    (waiting,) = rounds[0]["waiting"]
    assert list(waiting) == ["workload", "queue", "state", "reason"]
    assert list(waiting["reason"]) == ["code", "message", "help"]
    assert (waiting["workload"], waiting["queue"], waiting["state"]) == ("a/job-new", "a/q", "active")
    assert waiting["reason"]["code"] == "WaitingForPreemptedWorkloads"
    (left,) = rounds[-1]["waiting"]
    assert (left["workload"], left["state"], left["reason"]["code"]) == ("b/old", "parked", "WaitingForQuota")


def test_whoever_stands_in_no_line_is_parked(command: Command) -> None:
    lost = gpu_job("t/a", 1, 1)
    (waiting,) = command.rounds(*gpu_queue("u", gpus(8)), flavor(), lost)[-1]["waiting"]
    assert (waiting["workload"], waiting["state"]) == ("t/job-a", "parked")
    assert waiting["reason"]["code"] == "Misconfigured"
    assert "t/q" in waiting["reason"]["message"]


def test_whoever_stands_behind_another_in_a_strict_queue_is_told_whom(command: Command) -> None:
    queue = gpu_queue("t", gpus(4), queueingStrategy="StrictFIFO")
    world = [node("n", 8), flavor(), *queue, gpu_workload("t/held", 1, 2, "f")]
    first, second = command.rounds(*world, gpu_job("t/a", 1, 4), gpu_job("t/b", 1, 1, LATE))[-1]["waiting"]
    assert first["reason"]["code"] == "WaitingForQuota"
    assert second["reason"]["code"] == "PendingEvaluation"
    assert "behind t/job-a" in second["reason"]["message"]


def test_a_drained_queue_preempts_for_nobody(command: Command) -> None:
    queue = gpu_queue("t", gpus(8), stopPolicy="HoldAndDrain")
    first, *_ = command.rounds(node("n", 8), flavor(), *queue, gpu_workload("t/w", 1, 8, "f"))
    assert first["preempted"] == [{"workload": "t/w", "for": "", "reason": "ClusterQueueStopped"}]


def test_open_checks_are_named_beside_the_admission(command: Command) -> None:
    status = {"conditions": [condition("Active")]}
    check = {"apiVersion": KUEUE, "kind": "AdmissionCheck", "metadata": {"name": "c"}, "status": status}
    check["spec"] = {"controllerName": "example.com/c"}
    queue = gpu_queue("t", gpus(8), admissionChecksStrategy={"admissionChecks": [{"name": "c"}]})
    world = [node("n", 8), check, flavor(), *queue, gpu_job("t/a", 1, 1)]
    first, *_ = command.rounds(*world)
    assert first["admitted"][0]["checks"] == ["c"]
    assert first["placed"] == []
    assert "waits for c" in command.text(*world)


@pytest.mark.parametrize("nodes", [[], [node("n", 8)]])
def test_a_reason_says_where_placement_is_not_proven(command: Command, nodes: list[Object]) -> None:
    world = [*nodes, flavor(), *gpu_queue("t", gpus(4)), gpu_job("t/a", 1, 5)]
    (waiting,) = command.rounds(*world)[-1]["waiting"]
    assert ("not proven: no nodes are known" in waiting["reason"]["help"]) is (not nodes)


def test_nodes_of_other_flavors_prove_nothing(command: Command) -> None:
    world = [node("n", 8), flavor(nodeLabels={"gpu": "new"}), *gpu_queue("t", gpus(4))]
    first, *_, last = command.rounds(*world, gpu_job("t/a", 1, 4), gpu_job("t/b", 1, 4, LATE))
    assert [each["workload"] for each in first["admitted"]] == ["t/job-a"]
    assert "not proven: no nodes of its flavors are known." in last["waiting"][0]["reason"]["help"]


def test_kept_terminating_nothing_is_free(command: Command) -> None:
    rounds = command.rounds(*reclaimed(), options=("--keep-terminating",))
    assert [each for round_ in rounds for each in round_["admitted"]] == []


def test_a_label_that_names_a_queue_holds_nothing_back_where_there_are_no_queues(command: Command) -> None:
    (first, _) = command.rounds(node("n", 8), job("t/a", 2, 1, labels=IN_Q))
    assert [each["pod"] for each in first["placed"]] == ["t/a-0", "t/a-1"]
    assert (first["admitted"], first["waiting"]) == ([], [])


def test_a_pod_of_no_queue_goes_its_own_way(command: Command) -> None:
    world = [node("n", 8), flavor(), *gpu_queue("t", gpus(0)), pod("u/free", 1), gpu_job("t/a", 1, 1)]
    first, *_, last = command.rounds(*world)
    assert [each["pod"] for each in first["placed"]] == ["u/free"]
    assert [each["workload"] for each in last["waiting"]] == ["t/job-a"]
    assert last["refused"] == []


def test_the_picture_folds_rounds_and_counts_first(command: Command) -> None:
    text = command.text(*reclaimed())
    assert text.startswith("1 admitted, 1 preempted, 1 workload waiting, 1 placed after ")
    assert "a/job-new  by a/q  1 x main on f" in text
    assert "b/old  for a/job-new (InCohortReclamation)" in text
    assert "b/old  WaitingForQuota: " in text


def test_without_nodes_nobody_who_was_admitted_is_told_to_wait(command: Command) -> None:
    text = command.text(flavor(), *gpu_queue("t", gpus(8)), gpu_job("t/a", 2, 2), gpu_workload("t/held", 2, 1, "f"))
    assert text.startswith("1 admitted after ")
    last = "no nodes are known: where the pods of those admitted run is left open; --nodes names machines"
    assert " ".join(text.split()).endswith(last)
    assert "GangDoesNotFit" not in text


def test_pods_that_have_ended_and_given_their_quota_back_are_not_made(command: Command) -> None:
    held = gpu_workload("t/held", 8, 1, "f")
    held["status"]["reclaimablePods"] = [{"name": "main", "count": 3}]
    *_, last = rounds = command.rounds(node("n", 8), flavor(), *gpu_queue("t", gpus(8)), held, gpu_job("t/next", 3, 1))
    assert len([each for round_ in rounds for each in round_["placed"]]) == 8
    assert (last["waiting"], last["refused"]) == ([], [])


def test_pods_that_ran_and_had_to_end_are_not_among_the_placed(command: Command) -> None:
    queue = gpu_queue("t", gpus(8), preemption=BY_PRIORITY)
    low, high = gpu_workload("t/low", 1, 8), gpu_workload("t/high", 1, 8, priority=9, at=LATE)
    low["status"] = gpu_workload("t/low", 1, 8, "f")["status"]
    text = command.text(node("n", 8), flavor(), *queue, low, high)
    placed = text[text.index("\nplaced") :].partition("waiting in queues")[0]
    assert "t/high-main-0" in placed
    assert "t/low-main-0  on n" not in placed


def test_the_same_manifests_give_the_same_answer_in_any_order(command: Command) -> None:
    world = [*reclaimed(), gpu_job("a/other", 1, 2, LATE), gpu_job("b/other", 1, 2)]
    assert command.rounds(*world) == command.rounds(*reversed(world))


def test_what_is_wrong_with_a_queue_is_one_line_with_object_and_field(command: Command) -> None:
    queue, door_ = gpu_queue("t", gpus(-1))
    line = command.complaint(queue, door_)
    assert "(ClusterQueue t): spec.resourceGroups[0].flavors[0].resources[0].nominalQuota" in line


def test_a_workload_of_too_many_pods_is_refused_and_not_made(command: Command) -> None:
    line = command.complaint(flavor(), *gpu_queue("t", gpus(8)), gpu_workload("t/w", 2_000_000, 1))
    assert "(Workload t/w): spec.podSets: 2,000,000 pods of one workload" in line


def test_there_is_help_for_every_reason_to_wait_and_the_page_has_them_all() -> None:
    assert set(HELP) == set(Wait)
    page = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    table = page[page.index("| code of `waiting` |") :].split("\n\n")[0]
    assert sorted(re.findall(r"^\| `(\w+)`", table, re.MULTILINE)) == sorted(Wait)


def test_a_job_of_a_kind_that_only_queues_read_gets_pods_and_is_not_said_to_be_skipped(command: Command) -> None:
    template = {"template": {"spec": {"containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": 2}}}]}}}
    replicas = {"Master": {"replicas": 1, **template}, "Worker": {"replicas": 2, **template}}
    spec = {"pytorchReplicaSpecs": replicas, "runPolicy": {"suspend": True}}
    torch = thing("kubeflow.org/v1", "PyTorchJob", "t/llm", spec=spec)
    torch["metadata"]["labels"] = IN_Q
    first, *_ = command.rounds(node("n", 8), flavor(), *gpu_queue("t", gpus(8)), torch)
    assert [each["count"] for each in first["admitted"][0]["podSets"]] == [1, 2]
    assert len(first["placed"]) == 3
    assert command.err == ""


def test_pods_of_an_admitted_job_that_a_quota_refuses_wait_with_its_message(command: Command) -> None:
    hard = {"spec": {"hard": {"requests.nvidia.com/gpu": 2}}}
    quota = thing("v1", "ResourceQuota", "t/q", **hard)
    rounds = command.rounds(node("n", 8), flavor(), *gpu_queue("t", gpus(8)), gpu_job("t/a", 2, 2), quota)
    codes = {each.get("pod") or each.get("group"): each["reason"]["code"] for each in rounds[-1]["refused"]}
    assert codes["t/a-1"] == "Forbidden"
