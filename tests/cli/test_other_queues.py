"""Queues of Volcano and KAI in manifests: who is kept back by one is not placed, and is told so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from build.gpu_queues import gpu_queue, gpus
from build.manifests import Object, as_file, kai_group, node, pod, thing
from build.other_queues import KAI_QUEUE, kai_queue, vgroup, volcano_queue
from build.queue_manifests import flavor
from shoal.cli.main import main

GROUP = "scheduling.k8s.io/group-name"


class Doors:
    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._folder = folder
        self._capsys = capsys
        self.err = ""

    def text(self, *arguments: str, objects: list[Object]) -> str:
        assert main([arguments[0], "-f", as_file(self._folder, *objects), *arguments[1:]]) == 0
        said = self._capsys.readouterr()
        self.err = said.err
        return said.out

    def decided(self, *objects: Object) -> Any:
        return json.loads(self.text("decide", "--json", objects=list(objects)))["rounds"][0]

    def why(self, name: str, *objects: Object) -> str:
        return " ".join(self.text("why", name, objects=list(objects)).split())


@pytest.fixture
def doors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Doors:
    return Doors(tmp_path, capsys)


FULL = [
    node("n", 8),
    node("m", 8),
    volcano_queue("small", 8),
    vgroup("t/a", 1, "small", "Running", minResources={"nvidia.com/gpu": 8}),
    vgroup("t/b", 1, "small"),
    pod("t/a-0", 8, on="n", annotations={GROUP: "a"}),
    pod("t/b-0", 1, annotations={GROUP: "b"}),
]


def test_a_running_pod_without_a_group_counts_in_its_queue(doors: Doors) -> None:
    notes = {"scheduling.volcano.sh/queue-name": "small"}
    runs = pod("t/a-0", 8, on="n", annotations=notes, schedulerName="volcano")
    waits = [vgroup("t/b", 1, "small", "Inqueue"), FULL[-1]]
    assert doors.decided(*FULL[:3], runs, *waits)["placed"] == []
    assert [each["pod"] for each in doors.decided(*FULL[:3], *waits)["placed"]] == ["t/b-0"]


def test_a_pod_beyond_a_volcano_queues_capability_is_not_placed(doors: Doors) -> None:
    decided = doors.decided(*FULL)
    assert decided["placed"] == []
    assert decided["refused"][0]["pod"] == "t/b-0"
    reason = decided["refused"][0]["reason"]
    assert reason["code"] == "NotEnoughResources"
    words = "queue resource quota insufficient: insufficient nvidia.com/gpu"
    amounts = "requested 1 nvidia.com/gpu, used 8, capability 8 of queue small"
    assert reason["message"] == f"Kept by Volcano queue small: {words}: {amounts}."
    assert "Queue" not in doors.err


def test_why_tells_of_the_volcano_queue(doors: Doors) -> None:
    told = doors.why("pod/b-0", *FULL)
    assert told.startswith("t/b-0 waits: NotEnoughResources queue Kept by Volcano queue small: queue resource quota")
    assert "by now it fits" not in told
    assert "gang t/b waits: NotEnoughResources" in doors.why("gang/b", *FULL)


def test_a_group_goes_as_far_as_its_queue_has_room(doors: Doors) -> None:
    pods = [pod(f"t/b-{n}", 2, annotations={GROUP: "b"}) for n in range(3)]
    world = [node("n", 8), volcano_queue("small", 4), vgroup("t/b", 2, "small"), *pods]
    decided = doors.decided(*world)
    assert [each["pod"] for each in decided["placed"]] == ["t/b-0", "t/b-1"]
    assert [each["pod"] for each in decided["refused"]] == ["t/b-2"]


def _deserve(**gpus: int) -> list[Object]:
    return [volcano_queue(name, deserved={"nvidia.com/gpu": count}) for name, count in gpus.items()]


def _singles(queue: str, count: int, on: str = "") -> list[Object]:
    found: list[Object] = []
    for at in range(count):
        found += [vgroup(f"t/{queue}{on}{at}", 1, queue)]
        found += [pod(f"t/{queue}{on}{at}-0", 1, on=on, annotations={GROUP: f"{queue}{on}{at}"})]
    return found


def test_what_volcano_queues_deserve_says_who_is_placed(doors: Doors) -> None:
    gang = [vgroup("t/z", 6, "b"), *(pod(f"t/z-{at}", 1, annotations={GROUP: "z"}) for at in range(6))]
    decided = doors.decided(node("n", 8), *_deserve(a=2, b=6), *_singles("a", 6), *gang)
    assert sorted(each["pod"] for each in decided["placed"]) == ["t/a0-0", "t/a1-0", *(f"t/z-{at}" for at in range(6))]
    assert {each["group"] for each in decided["refused"]} == {f"t/a{at}" for at in range(2, 6)}


def test_what_others_have_of_what_a_volcano_queue_deserves_is_reclaimed(doors: Doors) -> None:
    world = [node("n", 8), *_deserve(a=2, b=6), *_singles("a", 7, on="n"), *_singles("b", 2)]
    decided = doors.decided(*world)
    assert [each["pod"] for each in decided["placed"]] == ["t/b0-0"]
    assert [each["pod"] for each in decided["nominated"]] == ["t/b1-0"]
    assert [each["pod"] for each in decided["evicted"]] == ["t/an6-0"]
    assert decided["refused"] == []


def test_a_group_that_was_not_let_in_keeps_its_pods(doors: Doors) -> None:
    asks = {"minResources": {"nvidia.com/gpu": 4}}
    closed = volcano_queue("shut") | {"status": {"state": "Closed"}}
    first = [pod("t/b-0", 4, annotations={GROUP: "b"}), vgroup("t/b", 1, "shut", "Pending", **asks)]
    decided = doors.decided(node("n", 8), closed, *first)
    assert decided["placed"] == []
    assert decided["refused"][0]["reason"]["code"] == "QueueClosed"
    assert [each["pod"] for each in doors.decided(node("n", 8), volcano_queue("shut"), *first)["placed"]] == ["t/b-0"]


def test_a_volcano_job_without_pods_tells_of_its_group(doors: Doors) -> None:
    owner = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "j", "uid": "1", "controller": True}
    group = vgroup("t/j-1", 1, "small", "Pending", minResources={"nvidia.com/gpu": 4})
    group["metadata"]["ownerReferences"] = [owner]
    made = thing("batch.volcano.sh/v1alpha1", "Job", "t/j", spec={"queue": "small", "tasks": []})
    told = doors.why("vcjob/j", *FULL, group, made)
    assert "job t/j" in told
    assert "waits" in told
    assert "Volcano queue small: queue resource quota insufficient" in told
    doors.decided(*FULL, group, made)
    assert "is not read" not in doors.err


OVER = [
    node("n", 8),
    node("m", 8),
    kai_queue("all"),
    kai_queue("team", "all", quota=4, limit=4),
    pod("t/a", 4, on="n", labels={KAI_QUEUE: "team"}),
    pod("t/b", 1, labels={KAI_QUEUE: "team"}),
]


def test_a_pod_beyond_a_kai_queues_limit_is_not_placed(doors: Doors) -> None:
    decided = doors.decided(*OVER)
    assert decided["placed"] == []
    reason = decided["refused"][0]["reason"]
    assert reason["code"] == "OverLimit"
    assert reason["message"].startswith("Kept by KAI queue team: team quota has reached the allowable limit of GPUs")
    assert "Queue" not in doors.err


def test_a_pod_within_a_kai_queues_limit_is_placed(doors: Doors) -> None:
    wide = [kai_queue("team", "all", quota=4, limit=8) if each["metadata"]["name"] == "team" else each for each in OVER]
    assert [each["pod"] for each in doors.decided(*wide)["placed"]] == ["t/b"]


def test_why_tells_of_the_kai_queue(doors: Doors) -> None:
    assert "waits: OverLimit queue Kept by KAI queue team" in doors.why("pod/b", *OVER)
    lost = pod("t/c", 1, labels={KAI_QUEUE: "nosuch"})
    assert "waits: QueueDoesNotExist" in doors.why("pod/c", *OVER, lost)


def test_a_gang_of_a_kai_queue_is_kept_whole(doors: Doors) -> None:
    pods = [pod(f"t/g-{n}", 1, annotations={"pod-group-name": "g"}) for n in range(2)]
    world = [*OVER, kai_group("t/g", 2, queue="team"), *pods]
    refused = {each["pod"] for each in doors.decided(*world)["refused"]}
    assert refused == {"t/b", "t/g-0", "t/g-1"}
    assert "waits: OverLimit" in doors.why("gang/g", *world)


def gated(name: str, group: str, total: int | None) -> Object:
    count = {} if total is None else {"kueue.x-k8s.io/pod-group-total-count": str(total)}
    labels = {"kueue.x-k8s.io/queue-name": "q", "kueue.x-k8s.io/pod-group-name": group}
    gates = [{"name": "kueue.x-k8s.io/admission"}]
    return pod(name, 1, labels=labels, annotations=count, schedulingGates=gates)


@pytest.mark.parametrize(
    ("total", "words"),
    [
        (2, "'g' group has fewer runnable pods than expected: 1 of 2. Create 1 pod more."),
        (None, "kueue.x-k8s.io/pod-group-total-count is missing"),
    ],
)
def test_nobody_is_told_to_take_off_the_gate_of_a_queue(doors: Doors, total: int | None, words: str) -> None:
    told = doors.why("pod/g-0", node("n", 8), gated("t/g-0", "g", total))
    assert "Remove" not in told
    assert words in told
    assert "Its queue opens kueue.x-k8s.io/admission when it is admitted." in told


def test_gates_of_others_may_be_taken_off(doors: Doors) -> None:
    two = pod("t/x", 1, schedulingGates=[{"name": "kueue.x-k8s.io/admission"}, {"name": "example.com/hold"}])
    told = doors.why("pod/x", node("n", 8), two)
    assert "Remove example.com/hold." in told
    assert "Remove kueue" not in told


def test_shoal_queue_lists_queues_of_volcano_and_kai(doors: Doors) -> None:
    said = json.loads(
        doors.text(
            "queue",
            "-o",
            "json",
            objects=[
                *FULL,
                *OVER[2:4],
                pod("u/a", 4, on="m", labels={KAI_QUEUE: "team"}),
                OVER[5] | {"metadata": {"name": "late", "namespace": "u", "labels": {KAI_QUEUE: "team"}}},
            ],
        )
    )["others"]
    small = next(each for each in said if each["queue"] == "small")
    assert small["project"] == "Volcano"
    assert (small["limit"], small["used"]["nvidia.com/gpu"], small["waiting"]) == ({"nvidia.com/gpu": 8}, 8, 1)
    team = next(each for each in said if each["queue"] == "team")
    assert (team["project"], team["parent"]) == ("KAI", "all")
    assert (team["limit"], team["used"], team["waiting"]) == ({"nvidia.com/gpu": 4}, {"nvidia.com/gpu": 4}, 1)
    text = doors.text(
        "queue",
        "team",
        objects=[
            *FULL,
            *OVER[2:4],
            pod("u/a", 4, on="m", labels={KAI_QUEUE: "team"}),
            OVER[5] | {"metadata": {"name": "late", "namespace": "u", "labels": {KAI_QUEUE: "team"}}},
        ],
    )
    assert "queues of KAI" in text
    assert "4 GPUs" in text
    assert "small" not in text


def test_a_decision_may_be_written_as_yaml(doors: Doors) -> None:
    import yaml

    said = yaml.safe_load(doors.text("decide", "-o", "yaml", objects=FULL))
    assert said == json.loads(doors.text("decide", "-o", "json", objects=FULL))
    assert said == json.loads(doors.text("decide", "--json", objects=FULL))


def test_queues_of_other_projects_alone_begin_on_the_first_line(doors: Doors) -> None:
    text = doors.text("queue", objects=[node("n", 8), volcano_queue("v"), kai_queue("k")])
    first, *rest = text.splitlines()
    assert first == "queues of Volcano"
    # A blank line separates the projects.
    assert rest[rest.index("queues of KAI") - 1] == ""


def shares(doors: Doors, *objects: Object) -> dict[str, Any]:
    document = json.loads(doors.text("queue", "-o", "json", objects=list(objects)))
    return {each["queue"]: each for each in document["others"]}


GPUS = "nvidia.com/gpu"
SHARED = [
    node("n", 8),
    vgroup("t/runs", 1, "busy", "Running", minResources={GPUS: 2}),
    pod("t/runs-0", 2, on="n", annotations={GROUP: "runs"}),
    pod("t/runs-1", 3, on="n", annotations={GROUP: "runs"}),
    vgroup("t/admitted", 1, "calm", "Inqueue", minResources={GPUS: 2}),
    pod("t/admitted-0", 2, annotations={GROUP: "admitted"}),
    vgroup("t/next", 1, "calm", "Pending", minResources={GPUS: 8}),
    pod("t/next-0", 8, annotations={GROUP: "next"}),
]


def test_a_queue_of_volcano_shows_its_weighted_share_and_what_is_admitted_or_elastic(doors: Doors) -> None:
    """By weight each queue has half of eight GPUs; the busy one is not cut below that, and uses one more."""
    found = shares(doors, *SHARED, volcano_queue("busy"), volcano_queue("calm"))
    busy, calm = found["busy"], found["calm"]
    assert (busy["used"][GPUS], busy["share"][GPUS], busy["elastic"][GPUS]) == (5, 4, 3)
    assert (calm["share"][GPUS], calm["inqueue"][GPUS]) == (4, 2)
    assert calm["used"].get(GPUS, 0) == busy["inqueue"].get(GPUS, 0) == 0


def test_a_queue_of_volcano_that_declares_what_it_deserves_shows_that_and_its_guarantee(doors: Doors) -> None:
    guarantee = {"resource": {GPUS: 2}}
    found = shares(
        doors,
        *SHARED,
        volcano_queue("busy", deserved={GPUS: 3}, capability={GPUS: 6}),
        volcano_queue("calm", deserved={GPUS: 5}, guarantee=guarantee),
    )
    assert (found["busy"]["quota"][GPUS], found["busy"]["share"][GPUS], found["busy"]["limit"][GPUS]) == (3, 3, 6)
    assert (found["calm"]["guarantee"][GPUS], found["calm"]["share"][GPUS]) == (2, 5)


def test_what_a_queue_deserves_by_weight_may_be_a_part_of_a_gpu(doors: Doors) -> None:
    found = shares(doors, *SHARED, volcano_queue("busy", weight=2), volcano_queue("calm"))
    assert (found["busy"]["share"][GPUS], found["calm"]["share"][GPUS]) == (5, 3)
    found = shares(doors, *SHARED[1:], node("n", 4), volcano_queue("busy", weight=2), volcano_queue("calm"))
    assert round(found["busy"]["share"][GPUS], 2) == 2.67


def test_each_project_has_its_own_headings(doors: Doors) -> None:
    text = doors.text("queue", objects=[*SHARED, volcano_queue("busy"), volcano_queue("calm"), kai_queue("k")])
    volcano, kai = text.split("queues of KAI")
    assert volcano.splitlines()[1].split() == ["queue", "allocated", "deserved", "elastic", "inqueue", "wait"]
    assert kai.splitlines()[1].split("  ")[0] == "queue"
    assert {"allocated", "limit", "quota", "fair share", "wait"} <= {
        each.strip() for each in kai.splitlines()[1].split("  ")
    }


BOTH = [
    node("n", 4),
    kai_queue("team", quota=1, limit=1),
    volcano_queue("small", 2),
    pod("t/kai", 2, labels={KAI_QUEUE: "team"}),
    vgroup("t/g", 1, "small"),
    pod("t/g-0", 3, annotations={GROUP: "g"}),
]


@pytest.mark.parametrize(("name", "held"), [("", {"t/kai", "t/g-0"}), ("fairshare", {"t/kai"}), ("volcano", {"t/g-0"})])
def test_a_discipline_decides_about_its_own_queues_only(name: str, held: set[str], doors: Doors) -> None:
    option = ["--discipline", name] if name else []
    rounds = json.loads(doors.text("decide", "--json", *option, objects=BOTH))["rounds"]
    refused = {each["pod"] for each in rounds[0]["refused"] if "Kept by" in each["reason"]["message"]}
    assert refused == held


def test_kueues_queues_have_no_effect_under_another_discipline(doors: Doors) -> None:
    objects = [*BOTH[:2], flavor(), *gpu_queue("full", gpus(0)), kai_queue("other")]
    objects.append(pod("full/p", 1, labels={"kueue.x-k8s.io/queue-name": "full", KAI_QUEUE: "other"}))
    assert doors.decided(*objects)["placed"] == []
    found = json.loads(doors.text("decide", "--json", "--discipline", "fairshare", objects=objects))
    assert [each["pod"] for each in found["rounds"][0]["placed"]] == ["full/p"]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("kai", 'discipline "kai" not found; choose among kueue, fairshare, volcano'),
        ("fairshar", "did you mean fairshare?"),
        ("kueue", "the manifests have no queue of Kueue"),
    ],
)
def test_a_discipline_that_is_unknown_or_has_no_queues_is_an_error(
    name: str, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["decide", "-f", as_file(tmp_path, *BOTH), "--discipline", name]) == 2
    assert says in " ".join(capsys.readouterr().err.split())
