"""`shoal what-if`: another quota, more nodes or another policy, and who would fare differently."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import msgspec
import pytest

from build.gpu_queues import gpu_queue, gpu_workload, gpus
from build.manifests import Object, as_file, node, pod
from build.queue_manifests import flavor
from shoal.api.decode import read
from shoal.cli.main import main
from shoal.cli.object_source import Source
from shoal.cli.what_if import what_if
from shoal.views.what_if import QUEUE_POLICIES, Proposal, QueuePolicyChange, proposal_command
from shoal.web.what_if_page import proposal_of, what_if_address

LATE = "2026-01-01T01:00:00Z"


def reclaimable() -> list[Object]:
    """`a` lends its quota to `b` and does not reclaim it."""
    queues = [*gpu_queue("a", gpus(8), cohort="c"), *gpu_queue("b", gpus(0), cohort="c")]
    return [node("n", 8), flavor(), *queues, gpu_workload("b/old", 1, 8, "f"), gpu_workload("a/new", 1, 8, at=LATE)]


def with_a_large_first() -> list[Object]:
    """The first that waits is too large for what is free; a smaller one behind it fits."""
    work = [gpu_workload("t/held", 1, 4, "f"), gpu_workload("t/large", 1, 8), gpu_workload("t/small", 1, 2, at=LATE)]
    return [node("n", 8), flavor(), *gpu_queue("t", gpus(8)), *work]


CHANGES = (
    Proposal("t", "f", "nvidia.com/gpu", "2"),
    Proposal(nodes="2xp5.48xlarge"),
    Proposal(policies=(QueuePolicyChange("t", "queueingStrategy", "StrictFIFO"),)),
    Proposal(
        policies=(
            QueuePolicyChange("t", "preemption.withinClusterQueue", "LowerPriority"),
            QueuePolicyChange("t", "fairSharing.weight", "2"),
        ),
        fair_sharing="on",
        placement="BestFit",
        discipline="kueue",
    ),
)


class Command:
    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._folder, self._capsys = folder, capsys

    def run(self, objects: list[Object], *options: str, code: int = 0) -> str:
        assert main(["what-if", "-f", as_file(self._folder, *objects), *options]) == code
        out, err = self._capsys.readouterr()
        return str(err if code else out)

    def json(self, objects: list[Object], *options: str) -> Any:
        return json.loads(self.run(objects, *options, "-o", "json"))


@pytest.fixture
def command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(tmp_path, capsys)


def test_a_queue_that_would_reclaim_gets_its_quota_back(command: Command) -> None:
    found = command.json(reclaimable(), "--queue-policy", "a:preemption.reclaimWithinCohort=Any")
    changes = {one["workload"]: one["change"] for one in found["queues"]["changes"]}
    assert changes == {"a/new": "starts", "b/old": "stops"}
    (change,) = found["commands"]
    assert shlex.split(change)[:4] == ["kubectl", "patch", "clusterqueue", "a"]
    assert json.loads(shlex.split(change)[-1]) == {"spec": {"preemption": {"reclaimWithinCohort": "Any"}}}


def test_in_strict_order_a_small_workload_waits_behind_a_large_one(command: Command) -> None:
    found = command.json(with_a_large_first(), "--queue-policy", "t:queueingStrategy=StrictFIFO")
    assert [(one["workload"], one["change"]) for one in found["queues"]["changes"]] == [("t/small", "waits on")]


def test_several_policies_of_a_queue_are_one_command(command: Command) -> None:
    options = ["--queue-policy", "a:fairSharing.weight=2", "--queue-policy", "a:queueingStrategy=StrictFIFO"]
    found = command.json(reclaimable(), *options)
    (change,) = found["commands"]
    spec = {"fairSharing": {"weight": "2"}, "queueingStrategy": "StrictFIFO"}
    assert json.loads(shlex.split(change)[-1]) == {"spec": spec}
    assert "Fair sharing is off: a weight has no effect." in found["notes"]
    found = command.json(reclaimable(), *options, "--fair-sharing", "on")
    assert "Fair sharing is off: a weight has no effect." not in found["notes"]
    assert any("fairSharing in its Configuration" in note for note in found["notes"])


def test_fair_sharing_with_a_weight_lets_the_heavier_queue_take_quota_back(command: Command) -> None:
    queues = [object_ for name in ("a", "b") for object_ in gpu_queue(name, gpus(0), cohort="c", preemption=RECLAIM)]
    lender = gpu_queue("lender", gpus(8), cohort="c")
    work = [gpu_workload(f"b/old-{at}", 1, 2, "f") for at in range(4)] + [gpu_workload("a/new", 1, 2, at=LATE)]
    found = command.json([node("n", 8), flavor(), *queues, *lender, *work], "--fair-sharing", "on")
    assert {one["workload"]: one["change"] for one in found["queues"]["changes"]}["a/new"] == "starts"


RECLAIM = {"reclaimWithinCohort": "Any"}


def test_another_placement_may_break_up_the_node_that_a_larger_pod_needs(command: Command) -> None:
    objects = [node("n1", 8), node("n2", 8), pod("t/held", 4, "n2"), pod("t/small", 4), pod("t/wide", 8)]
    found = command.json(objects, "--placement", "Random")
    assert found["queues"] is None
    assert {"name": "t/wide", "now": "runs on n1"}.items() <= found["pods"][0].items()
    assert found["pods"][0]["proposed"].startswith("waits: ")


def test_the_table_tells_queues_pods_and_the_commands(command: Command) -> None:
    found = command.run(reclaimable(), "--queue-policy", "a:preemption.reclaimWithinCohort=Any")
    assert found.splitlines()[0] == "1 would stop, 1 would start, 0 as before"
    assert "waiting pods: " in found
    assert "To change it: kubectl patch clusterqueue a --type=merge" in found


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], "nothing is proposed"),
        (["--quota", "16"], "write QUEUE/FLAVOR/RESOURCE=N"),
        (["--quota", "t/f/=16"], "write QUEUE/FLAVOR/RESOURCE=N"),
        (["--quota", "t/f/nvidia.com/gpu=many"], "many"),
        (["--quota", "none/f/nvidia.com/gpu=1"], "there is no ClusterQueue"),
        (["--queue-policy", "t=StrictFIFO"], "write QUEUE:FIELD=VALUE"),
        (["--queue-policy", "none:queueingStrategy=StrictFIFO"], "there is no ClusterQueue"),
        (["--queue-policy", "t:strategy=StrictFIFO"], "queueingStrategy"),
        (["--queue-policy", "t:queueingStrategy=Strict"], "StrictFIFO"),
        (["--queue-policy", "t:fairSharing.weight=-1"], "must be 0 or more"),
        (["--queue-policy", "t:fairSharing.weight=much"], "write a number"),
        (["--fair-sharing", "maybe"], "maybe"),
        (["--placement", "Tight"], "policy"),
        (["--discipline", "slurm"], "discipline"),
        (["--discipline", "volcano"], "have no queue of Volcano"),
        (["--add-nodes", "2xtoaster"], "toaster"),
    ],
)
def test_a_proposal_that_cannot_be_is_refused_in_a_line(command: Command, options: list[str], words: str) -> None:
    found = command.run(with_a_large_first(), *options, code=2)
    assert words in found
    assert found.count("\n") == 1


@pytest.mark.parametrize("proposal", CHANGES)
def test_the_command_below_an_answer_prints_this_answer(command: Command, proposal: Proposal) -> None:
    words = shlex.split(proposal_command(proposal))
    assert words[:2] == ["shoal", "what-if"]
    objects = with_a_large_first()
    printed = command.json(objects, *words[2:])
    documents = list(read(msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": objects})))
    assert printed == msgspec.to_builtins(what_if(Source(documents), proposal))


@pytest.mark.parametrize("proposal", CHANGES)
def test_the_address_of_a_page_has_the_whole_proposal(proposal: Proposal) -> None:
    assert proposal_of(dict(parse_qsl(urlsplit(what_if_address(proposal)).query))) == proposal


def test_the_values_of_each_field_are_those_of_kueue() -> None:
    assert QUEUE_POLICIES["queueingStrategy"] == ("BestEffortFIFO", "StrictFIFO")
    assert "LowerOrNewerEqualPriority" in QUEUE_POLICIES["preemption.withinClusterQueue"]
    assert QUEUE_POLICIES["fairSharing.weight"] == ()
