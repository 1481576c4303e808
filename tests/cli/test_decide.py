"""`shoal decide`: manifests in, one decision out, as text for people or one JSON document for programs."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from build.manifests import (
    Object,
    as_file,
    job,
    kai_group,
    node,
    pod,
    priority_class,
    replicas,
    thing,
    volcano_group,
)
from shoal.cli.main import main
from shoal.engine.reasons import Code

LISTS = ["placed", "nominated", "moved", "evicted", "admitted", "preempted", "waiting", "refused"]
GROUP = "scheduling.k8s.io/group-name"


class Command:
    """The command on objects, in this process."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._folder = folder
        self._capsys = capsys
        self.err = ""

    def run(self, *objects: Object, options: tuple[str, ...] = ()) -> tuple[int, str]:
        code = main(["decide", "-f", as_file(self._folder, *objects), *options])
        out, self.err = self._capsys.readouterr()
        return code, out

    def json(self, *objects: Object, options: tuple[str, ...] = ()) -> Any:
        code, out = self.run(*objects, options=("--json", *options))
        assert code == 0, self.err
        return json.loads(out)

    def refused(self, *objects: Object, options: tuple[str, ...] = ()) -> dict[str, Any]:
        """Reason by name, after the last round."""
        last = self.json(*objects, options=options)["rounds"][-1]
        return {each.get("pod") or each["group"]: each["reason"] for each in last["refused"]}

    def placed(self, *objects: Object, options: tuple[str, ...] = ()) -> dict[str, str]:
        rounds = self.json(*objects, options=options)["rounds"]
        return {each["pod"]: each["node"] for round_ in rounds for each in round_["placed"]}

    def complaint(self, *objects: Object) -> str:
        code, _ = self.run(*objects)
        lines = [line for line in self.err.splitlines() if not line.startswith("shoal: warning: ")]
        assert (code, len(lines)) == (2, 1)
        return lines[0]


@pytest.fixture
def command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(tmp_path, capsys)


# -- the document --------------------------------------------------------------------------------------------


def test_the_document_has_every_list_in_every_round(command: Command) -> None:
    document = command.json(node("n", 2), pod("t/a", 1), pod("t/b", 8))
    assert list(document) == ["rounds", "quiet", "errors"]
    assert document["errors"] == []
    assert document["quiet"] is True
    for round_ in document["rounds"]:
        assert list(round_) == LISTS
    first = document["rounds"][0]
    assert first["placed"] == [{"pod": "t/a", "node": "n", "devices": [0]}]
    (refused,) = first["refused"]
    assert list(refused) == ["pod", "reason"]
    assert list(refused["reason"]) == ["code", "message", "help"]


def test_rounds_go_on_until_one_changes_nothing(command: Command) -> None:
    rounds = command.json(node("n", 2), pod("t/a", 1))["rounds"]
    assert [len(round_["placed"]) for round_ in rounds] == [1, 0]


def test_a_number_of_rounds_may_end_before_things_are_settled(command: Command) -> None:
    document = command.json(node("n", 2), pod("t/a", 1), options=("--cycles", "1"))
    assert len(document["rounds"]) == 1
    assert document["quiet"] is False


def test_a_refusal_is_an_answer(command: Command) -> None:
    code, out = command.run(pod("t/a", 1))
    assert code == 0
    assert "NoNodes" in out


def test_every_code_is_of_the_closed_list(command: Command) -> None:
    refused = command.refused(
        node("n", 2), pod("t/a", 9), pod("t/b", nodeSelector={"x": "y"}), pod("t/c", limits={"cpu": 99})
    )
    assert {name: reason["code"] for name, reason in refused.items()} == {
        "t/a": "NoDeviceFits",
        "t/b": "NodeAffinityMismatch",
        "t/c": "Insufficient",
    }
    assert {reason["code"] for reason in refused.values()} <= set(Code)


def test_the_code_is_the_commonest_cause(command: Command) -> None:
    tainted: dict[str, Any] = {"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}}
    nodes = [node("a", 8, **tainted), node("b", 8, **tainted), node("c")]
    reason = command.refused(*nodes, pod("t/a", 1))["t/a"]
    assert reason["code"] == "UntoleratedTaint"
    assert reason["message"].startswith("0/3 nodes are available: 2 node(s) had untolerated taint {k")


def test_the_same_manifests_give_the_same_answer_byte_for_byte(command: Command) -> None:
    world = [node(f"n{n}", 4) for n in range(3)] + [pod(f"t/p{n}", n % 5) for n in range(12)]
    assert command.run(*world, options=("--json",)) == command.run(*world, options=("--json",))


# -- what a world has ----------------------------------------------------------------------------------------


def test_pods_on_nodes_hold_their_devices_and_finished_ones_do_not(command: Command) -> None:
    ended = {"phase": "Succeeded"}
    world = [node("n", 2), pod("t/runs", 1, on="n"), pod("t/ended", 1, on="n", status=ended), pod("t/new", 1)]
    assert command.json(*world)["rounds"][0]["placed"] == [{"pod": "t/new", "node": "n", "devices": [1]}]


def test_the_oldest_pod_is_first_in_line(command: Command) -> None:
    young, old = (
        pod(f"t/{name}", 2, meta={"creationTimestamp": f"{year}-01-01T00:00:00Z"})
        for name, year in (("y", 2026), ("o", 2020))
    )
    assert command.placed(node("n", 2), young, old) == {"t/o": "n"}


def test_higher_priority_goes_first(command: Command) -> None:
    world = [node("n", 2), priority_class("high", 100), pod("t/low", 2), pod("t/high", 2, priorityClassName="high")]
    assert command.placed(*world) == {"t/high": "n"}


def test_the_default_class_is_everybodys(command: Command) -> None:
    world = [priority_class("usual", 50, globalDefault=True), pod("t/a", 2, priority=10), pod("t/b", 2)]
    assert command.placed(node("n", 2), *world) == {"t/b": "n"}


def test_a_gated_pod_waits_for_its_gates(command: Command) -> None:
    gated = pod("t/a", 1, schedulingGates=[{"name": "quota"}])
    assert command.refused(node("n", 2), gated)["t/a"] == {
        "code": "SchedulingGated",
        "message": "Scheduling is blocked due to non-empty scheduling gates: quota.",
        "help": "Remove quota, as the controller that set it normally does.",
    }


def test_room_that_a_terminating_pod_leaves_is_promised_and_then_given(command: Command) -> None:
    terminating = pod("t/old", 2, on="n", meta={"deletionTimestamp": "2026-01-01T00:00:00Z"})
    first, second, *_ = command.json(node("n", 2), terminating, pod("t/new", 2))["rounds"]
    assert first["nominated"] == [{"pod": "t/new", "node": "n", "devices": [0, 1]}]
    assert first["refused"] == []
    assert second["placed"] == [{"pod": "t/new", "node": "n", "devices": [0, 1]}]


def test_a_terminating_pod_that_is_kept_is_never_replaced(command: Command) -> None:
    terminating = pod("t/old", 2, on="n", meta={"deletionTimestamp": "2026-01-01T00:00:00Z"})
    document = command.json(node("n", 2), terminating, pod("t/new", 2), options=("--keep-terminating",))
    assert document["quiet"] is True
    assert [round_["placed"] for round_ in document["rounds"]] == [[]] * len(document["rounds"])
    assert document["rounds"][-1]["nominated"] == [{"pod": "t/new", "node": "n", "devices": [0, 1]}]


def test_room_is_kept_for_daemon_sets(command: Command) -> None:
    exporter = thing(
        "apps/v1",
        "DaemonSet",
        "gpu/exporter",
        spec={
            "selector": {"matchLabels": {"app": "x"}},
            "template": {"metadata": {"labels": {"app": "x"}}, "spec": pod("x", limits={"cpu": 2})["spec"]},
        },
    )
    assert command.placed(node("n", cpu=4), exporter, pod("t/a", limits={"cpu": 3})) == {}


# -- makers of pods ------------------------------------------------------------------------------------------

MAKERS: dict[str, Object] = {
    "a job": job("t/x", 2, 1),
    "a deployment": replicas("Deployment", "t/x", 2, 1),
    "a replica set": replicas("ReplicaSet", "t/x", 2, 1),
    "a stateful set": replicas("StatefulSet", "t/x", 2, 1),
}


@pytest.mark.parametrize("maker", MAKERS.values(), ids=MAKERS)
def test_without_its_pods_it_makes_them(command: Command, maker: Object) -> None:
    assert command.placed(node("n", 8), maker) == {"t/x-0": "n", "t/x-1": "n"}


@pytest.mark.parametrize("maker", MAKERS.values(), ids=MAKERS)
def test_with_pods_of_its_own_it_makes_none(command: Command, maker: Object) -> None:
    owner = {"apiVersion": "x", "kind": maker["kind"], "name": "x", "uid": "1", "controller": True}
    assert command.placed(node("n", 8), maker, pod("t/x-abc", 1, meta={"ownerReferences": [owner]})) == {"t/x-abc": "n"}


def test_a_deployment_leaves_the_pods_to_its_replica_set(command: Command) -> None:
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "x", "uid": "1", "controller": True}
    inner = replicas("ReplicaSet", "t/x-5d", 1, 1, ownerReferences=[owner])
    assert command.placed(node("n", 8), replicas("Deployment", "t/x", 1, 1), inner) == {"t/x-5d-0": "n"}


def test_a_suspended_job_makes_no_pods_and_says_so(command: Command) -> None:
    assert command.placed(node("n", 8), job("t/x", 2, 1, suspend=True)) == {}
    assert "Job t/x): is suspended and makes no pods" in command.err


def test_a_job_that_a_queue_holds_back_is_decided_as_one_gang(command: Command) -> None:
    queued = job("t/x", 4, 1, labels={"kueue.x-k8s.io/queue-name": "q"}, suspend=True)
    assert command.placed(node("n", 3), queued) == {}
    assert command.refused(node("n", 3), queued)["t/x"]["code"] == "GangDoesNotFit"
    assert len(command.placed(node("n", 4), queued)) == 4


# -- gangs ---------------------------------------------------------------------------------------------------


def members(count: int, gpus: int, **more: Any) -> list[Object]:
    return [pod(f"t/g-{n}", gpus, annotations={GROUP: "g"}, **more) for n in range(count)]


def test_a_gang_is_placed_whole_or_not_at_all(command: Command) -> None:
    world = [volcano_group("t/g", 3), *members(3, 2)]
    assert command.placed(node("n", 4), *world) == {}
    assert set(command.refused(node("n", 4), *world)) == {"t/g"}
    assert len(command.placed(node("n", 6), *world)) == 3


def test_a_gang_says_how_many_of_it_could_run(command: Command) -> None:
    reason = command.refused(node("n", 4), volcano_group("t/g", 3), *members(3, 2))["t/g"]
    assert reason["code"] == "GangDoesNotFit"
    assert "2 of 3" in reason["help"]


def test_pods_beyond_the_minimum_are_told_about_one_by_one(command: Command) -> None:
    refused = command.refused(node("n", 4), volcano_group("t/g", 2), *members(3, 2))
    assert {name: reason["code"] for name, reason in refused.items()} == {"t/g-2": "NoDeviceFits"}


def test_a_warning_is_one_line_whatever_the_input_held(command: Command) -> None:
    code, _ = command.run(thing("v1", "Od\nd", "t/a"))
    assert code == 0
    assert command.err.count("\n") == 1
    assert "Od d (v1) is not read and was skipped" in command.err


def test_a_selector_that_no_node_meets_is_told_with_its_field_and_what_may_have_been_meant(command: Command) -> None:
    here = node("n", 8, labels={"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"})
    key = "nvidia.com/gpu.product"
    required = {"key": key, "operator": "In", "values": ["A100-SXM4-80GB"]}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [required]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    code, _ = command.run(
        here,
        pod("t/a", 1, nodeSelector={key: "A100-SXM4-80GB"}),
        pod("t/b", 1, nodeSelector={key: "A100-SXM4-80GB"}),
        pod("t/c", 1, affinity=affinity),
        pod("t/d", 1, nodeSelector={key: "NVIDIA-A100-SXM4-80GB"}),
    )
    assert code == 0
    first, second = command.err.splitlines()
    said = "no node has nvidia.com/gpu.product=A100-SXM4-80GB; did you mean NVIDIA-A100-SXM4-80GB?"
    assert first.startswith("shoal: warning: ")
    assert first.endswith(
        f"document 1 (Pod t/a): spec.nodeSelector[nvidia.com/gpu.product]: {said} The same in 1 more pod."
    )
    assert second.endswith(
        "document 1 (Pod t/c): spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution."
        f"nodeSelectorTerms[0].matchExpressions[0]: {said}"
    )


def test_a_minimum_above_the_pods_there_are_is_an_answer_and_a_warning(command: Command) -> None:
    refused = command.refused(node("n", 8), volcano_group("t/g", 5), *members(2, 1))
    assert refused["t/g"]["code"] == "GangTooSmall"
    assert (
        "world.json: document 1 (PodGroup t/g): spec.minMember: needs 5 pods, and only 2 of its pods exist"
        in command.err
    )


def test_pods_of_a_group_that_nobody_declared_wait_for_it(command: Command) -> None:
    assert command.refused(node("n", 8), *members(2, 1))["t/g"]["code"] == "GangUnknown"


# -- bad input -----------------------------------------------------------------------------------------------


def test_kinds_that_are_not_read_are_named_once_with_their_number(command: Command) -> None:
    services = [thing("v1", "Servcie", f"t/s{n}") for n in range(3)]
    assert command.placed(node("n", 1), pod("t/a", 1), *services) == {"t/a": "n"}
    assert command.err.splitlines() == [
        line for line in command.err.splitlines() if "Servcie (v1) is not read and was skipped, 3 of them" in line
    ]


def test_kinds_that_no_decision_depends_on_make_one_line(command: Command) -> None:
    idle = [thing("v1", "Service", "t/a"), thing("v1", "Service", "t/b"), thing("karpenter.sh/v1", "NodePool", "p")]
    assert command.placed(node("n", 1), pod("t/a", 1), *idle) == {"t/a": "n"}
    assert command.err == ("shoal: warning: not read, because no decision depends on them: NodePool (1), Service (2)\n")


def test_the_configurations_of_volcano_and_kai_are_not_named_among_what_is_not_read(command: Command) -> None:
    settings = {
        **thing("v1", "ConfigMap", "volcano-system/volcano-scheduler-configmap"),
        "data": {"volcano-scheduler.conf": "actions: allocate\n"},
    }
    of_kai = thing("kai.scheduler/v1", "Config", "kai-config")
    others = [settings, of_kai, thing("v1", "ConfigMap", "t/b")]
    assert command.placed(node("n", 1), pod("t/a", 1), *others) == {"t/a": "n"}
    assert command.err == "shoal: warning: not read, because no decision depends on them: ConfigMap (1)\n"


COMPLAINTS: dict[str, tuple[list[Object], str]] = {
    "two groups on one pod": (
        [pod("t/a", annotations={GROUP: "g"}, labels={"scheduling.x-k8s.io/pod-group": "h"})],
        (
            'document 1 (Pod t/a): metadata.labels[scheduling.x-k8s.io/pod-group]: names the group "h", and '
            f'metadata.annotations[{GROUP}] names "g"; a pod belongs to one group'
        ),
    ),
    "contradictory words on yielding": (
        [
            pod(
                "t/a",
                annotations={"volcano.sh/preemptable": "true"},
                labels={"kai.scheduler/preemptibility": "non-preemptible"},
            )
        ],
        "volcano.sh/preemptable and kai.scheduler/preemptibility contradict each other",
    ),
    "a checkpoint that is no time": (
        [pod("t/a", annotations={"shoal.dev/last-checkpoint": "yesterday"})],
        'metadata.annotations[shoal.dev/last-checkpoint]: "yesterday" is not a time; write e.g. 2026-01-31T12:00:00Z',
    ),
    "subgroups in a circle": (
        [kai_group("t/g", subGroups=[{"name": "a", "parent": "b"}, {"name": "b", "parent": "a"}])],
        'document 1 (PodGroup t/g): spec.subGroups[0].parent: "a" would be its own ancestor',
    ),
    "a parent that is not there": (
        [kai_group("t/g", subGroups=[{"name": "a", "parent": "b", "minMember": 1}])],
        'document 1 (PodGroup t/g): spec.subGroups[0].parent: "b" is not one of the subGroups',
    ),
    "a subgroup that the group does not have": (
        [
            kai_group("t/g", subGroups=[{"name": "a", "minMember": 1}]),
            pod("t/p", annotations={"pod-group-name": "g"}, labels={"kai.scheduler/subgroup-name": "b"}),
        ],
        'metadata.labels[kai.scheduler/subgroup-name]: "b" is not a subgroup of PodGroup t/g; its subgroups: a',
    ),
    "two pods of one name": (
        [replicas("StatefulSet", "t/x", 1), pod("t/x-0")],
        "(StatefulSet t/x): metadata.name: makes a pod t/x-0, which already exists",
    ),
}


@pytest.mark.parametrize(("objects", "words"), COMPLAINTS.values(), ids=COMPLAINTS)
def test_one_clear_line_about(command: Command, objects: list[Object], words: str) -> None:
    complaint = command.complaint(*objects)
    assert complaint.startswith("shoal: ")
    assert words in complaint
    assert "world.json: document 1 (" in complaint


def test_an_unknown_priority_class_is_refused_with_the_nearest(command: Command) -> None:
    objects = (node("n", 1), priority_class("gpu-high", 10), pod("t/a", priorityClassName="gpu-hihg"))
    assert command.refused(*objects)["t/a"] == {
        "code": "Forbidden",
        "message": 'pods "a" is forbidden: no PriorityClass with name gpu-hihg was found.',
        "help": "Did you mean gpu-high?",
    }


def test_a_selector_that_can_match_nothing_offers_what_was_meant(command: Command) -> None:
    labels = {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"}
    wanted = pod("t/a", 1, nodeSelector={"nvidia.com/gpu.product": "A100-SXM4-80GB"})
    reason = command.refused(node("n", 1, labels=labels), wanted)["t/a"]
    assert reason["code"] == "NodeAffinityMismatch"
    assert reason["help"] == ("No node has nvidia.com/gpu.product=A100-SXM4-80GB; did you mean NVIDIA-A100-SXM4-80GB?")


def test_what_is_in_the_way_is_named(command: Command) -> None:
    world = [node("n", 2), pod("t/small", 1, on="n", priority=5), pod("t/new", 2, preemptionPolicy="Never")]
    assert command.refused(*world)["t/new"]["help"] == (
        "The nearest node is n: it has 1 of 2 empty GPUs. Free 1 GPU on n (t/small)."
    )


# -- options -------------------------------------------------------------------------------------------------


def test_manifests_come_from_standard_input_too(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": [node("n", 1), pod("t/a", 1)]})
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert main(["decide", "-f", "-", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rounds"][0]["placed"][0]["pod"] == "t/a"


def test_a_policy_decides_between_nodes_that_fit(command: Command) -> None:
    world = [node("n", 8), node("m", 8), pod("t/a", 4, on="m"), pod("t/b", 4)]
    assert command.placed(*world, options=("--policy", "bestfit")) == {"t/b": "m"}
    assert main(["decide", "-f", "x", "--policy", "all"]) == 2


def test_a_scheduler_configuration_decides_instead_of_a_policy(command: Command, tmp_path: Path) -> None:
    config = tmp_path / "scheduler.yaml"
    config.write_text(
        """
        apiVersion: kubescheduler.config.k8s.io/v1
        kind: KubeSchedulerConfiguration
        profiles:
        - schedulerName: default-scheduler
          pluginConfig:
          - name: NodeAffinity
            args:
              addedAffinity:
                requiredDuringSchedulingIgnoredDuringExecution:
                  nodeSelectorTerms: [{matchExpressions: [{key: zone, operator: In, values: [b]}]}]
        """
    )
    world = [node("n", 8, labels={"zone": "a"}), node("m", 8, labels={"zone": "b"}), pod("t/a", 1)]
    assert command.placed(*world, options=("--scheduler-config", str(config))) == {"t/a": "m"}


def test_the_text_says_who_went_where_and_who_waits(command: Command) -> None:
    code, out = command.run(node("n", 2), pod("t/a", 1), pod("t/b", 8))
    assert code == 0
    lines = [line.rstrip() for line in out.splitlines()]
    assert lines[0] == "1 placed, 1 waiting after 2 rounds"
    assert "  t/a  on n  GPU 0" in lines
    assert any(line.startswith("  t/b  NoDeviceFits: 0/1 nodes are available") for line in lines)


def test_a_large_answer_stays_on_a_screen(command: Command) -> None:
    world = [node(f"n{n}", 1) for n in range(60)] + [pod(f"t/p{n}", 1) for n in range(90)]
    _, out = command.run(*world)
    assert len(out.splitlines()) < 50
    assert "and 40 more; --json has them all" in out
    assert "and 27 more" in " ".join(out.split())


# -- invalid objects ------------------------------------------------------------------------------------------


def test_all_errors_are_reported_and_the_other_objects_are_decided(command: Command, tmp_path: Path) -> None:
    broken = pod("t/broken", 1) | {"spec": {"containers": 7}}
    early = pod("t/early", annotations={"shoal.dev/last-checkpoint": "yesterday"})
    code, out = command.run(node("n", 2), broken, early, pod("t/good", 1), options=("--json",))
    document = json.loads(out)
    assert code == 2
    assert [each["pod"] for each in document["rounds"][0]["placed"]] == ["t/good"]
    assert [each["object"] for each in document["errors"]] == ["Pod t/broken", "Pod t/early"]
    assert document["errors"][1] == {
        "file": str(tmp_path / "world.json"),
        "document": 1,
        "object": "Pod t/early",
        "field": "metadata.annotations[shoal.dev/last-checkpoint]",
        "message": '"yesterday" is not a time',
        "fix": "write e.g. 2026-01-31T12:00:00Z",
    }
    lines = command.err.splitlines()
    assert len(lines) == 2
    assert all(line.startswith(f"shoal: {tmp_path}/world.json: document 1 (Pod t/") for line in lines)


def test_many_errors_end_in_a_count(command: Command) -> None:
    broken = [pod(f"t/p{index}") | {"spec": {"containers": 7}} for index in range(25)]
    code, out = command.run(node("n", 2), pod("t/good", 1), *broken)
    assert (code, out.splitlines()[0]) == (2, "1 placed after 2 rounds")
    lines = command.err.splitlines()
    assert (len(lines), lines[-1]) == (21, "shoal: and 5 more errors; shoal decide -o json lists all of them")


def test_objects_that_only_the_reader_of_pods_finds_wrong_are_bounded(command: Command) -> None:
    def early(number: int) -> Object:
        return pod(f"t/p{number}", annotations={"shoal.dev/last-checkpoint": "yesterday"})

    broken = [pod(f"t/b{number}") | {"spec": {"containers": 7}} for number in range(60)]
    code, out = command.run(node("n", 2), pod("t/good", 1), *broken, *map(early, range(3)))
    assert (code, out.splitlines()[0]) == (2, "1 placed after 2 rounds")
    assert command.run(node("n", 2), *map(early, range(60)))[0] == 2
    assert command.err.splitlines()[-1] == (
        "shoal: more than 50 objects contradict others or themselves; correct those that are named"
    )


def test_strict_decides_nothing_when_an_object_is_invalid(command: Command) -> None:
    objects = (node("n", 2), pod("t/good", 1), pod("t/bad") | {"spec": {"containers": 7}})
    assert command.run(*objects, options=("--strict",)) == (2, "")
    assert command.err.count("\n") == 1
    assert command.run(*objects[:2], options=("--strict",))[0] == 0


@pytest.mark.parametrize("line", [["why", "t/good"], ["get", "nodes"], ["get", "pods"], ["top"]])
def test_other_commands_answer_for_the_valid_objects_too(
    line: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = as_file(tmp_path, node("n", 2), pod("t/good", 1), pod("t/bad") | {"spec": {"containers": 7}})
    assert main([*line, "-f", path]) == 2
    out, err = capsys.readouterr()
    assert out
    assert "(Pod t/bad): spec.containers: " in err


# -- machines instead of nodes --------------------------------------------------------------------------------


def test_machines_of_the_command_line_are_the_nodes(command: Command) -> None:
    wanted = job("t/train", 4, 8)
    placed = command.placed(wanted, options=("--nodes", "2xp5.48xlarge", "--nodes", "1xg5.12xlarge,2xdgx-h100"))
    assert sorted(placed.values()) == ["dgx-h100-0", "dgx-h100-1", "p5-48xlarge-0", "p5-48xlarge-1"]
    assert command.err == ""


def test_machines_replace_the_nodes_of_the_manifests(command: Command) -> None:
    assert set(command.placed(node("n", 8), pod("t/a", 1), options=("--nodes", "p5.48xlarge")).values()) == {
        "p5-48xlarge-0"
    }


def test_a_mig_layout_of_machines_is_seen(command: Command) -> None:
    options = ("--nodes", "1xdgx-a100-80[mig=all-1g.10gb]")
    assert "t/a" in command.refused(pod("t/a", 1), options=options)
    wanted = pod("t/b", limits={"nvidia.com/mig-1g.10gb": 1})
    assert command.placed(wanted, options=options) == {"t/b": "dgx-a100-80-0"}


def test_machines_are_read_from_a_file(command: Command, tmp_path: Path) -> None:
    lab = tmp_path / "lab.yaml"
    lab.write_text("machines:\n- {like: p5.48xlarge, count: 2, name: lab}\n")
    placed = command.placed(job("t/train", 2, 8), options=("--nodes", str(lab)))
    assert sorted(placed.values()) == ["lab-0", "lab-1"]


def test_without_nodes_a_warning_names_the_option(command: Command) -> None:
    assert "t/a" in command.refused(pod("t/a", 1))
    assert command.err == (
        "shoal: warning: the manifests hold no Node: add the nodes of a cluster, or name machines, for example "
        "--nodes 8xp5.48xlarge\n"
    )


def test_an_unknown_machine_is_one_line(command: Command) -> None:
    code, out = command.run(pod("t/a", 1), options=("--nodes", "8xp5.48xlagre"))
    assert (code, out) == (2, "")
    assert '"p5.48xlagre" is not a machine of the catalogue; did you mean p5.48xlarge' in command.err


def test_other_commands_take_machines_with_files_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = as_file(tmp_path, pod("t/good", 1))
    for line in (["why", "t/good"], ["get", "nodes"], ["top"]):
        assert main([*line, "-f", path, "--nodes", "p5.48xlarge"]) == 0
        assert "p5-48xlarge-0" in capsys.readouterr().out
        assert main([*line, "--nodes", "p5.48xlarge"]) == 2
        assert capsys.readouterr().err == "shoal: --nodes: is used with manifests only; add -f PATH\n"
