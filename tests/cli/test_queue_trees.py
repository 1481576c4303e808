"""Trees of queues of Volcano and KAI that are wrong: the cycle, the missing parent and the quota are named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from build.manifests import Object, as_file, node, pod
from build.other_queues import kai_queue, vgroup, volcano_queue
from shoal.cli.main import main

_KAI, _GROUP = "kai.scheduler/queue", "scheduling.k8s.io/group-name"


def _of_kai() -> list[Object]:
    return [
        node("n", 8),
        kai_queue("a", "b", 4),
        kai_queue("b", "a", 4),
        kai_queue("p", "", 2),
        kai_queue("c", "p", 6),
        kai_queue("lost", "nope", 1),
        *(pod(f"t/in-{name}", 1, labels={_KAI: name}, schedulerName="kai-scheduler") for name in ("a", "lost")),
    ]


def _of_volcano() -> list[Object]:
    names = ("a", "lost")
    return [
        node("n", 8),
        volcano_queue("a", parent="b"),
        volcano_queue("b", parent="a"),
        volcano_queue("lost", parent="los"),
        volcano_queue("loss"),
        *(vgroup(f"t/g-{name}", 1, name) for name in names),
        *(pod(f"t/in-{name}", 1, annotations={_GROUP: f"g-{name}"}, schedulerName="volcano") for name in names),
    ]


CASES = {
    "KAI": (
        _of_kai(),
        ("QueueCycle", "Queue 'a' has no top queue: the parents form the cycle a -> b -> a", "`spec.parentQueue`"),
        ("QueueDoesNotExist", "Queue 'nope' does not exist"),
    ),
    "Volcano": (
        _of_volcano(),
        ("QueueCycle", "queue `a` has no way to the root: parents form the cycle a -> b -> a", "`spec.parent`"),
        (
            "QueueNotFound",
            'queues.scheduling.volcano.sh "los" not found, the parent of queue `lost`',
            "Queue lost names it as parent",
            "loss",
        ),
    ),
}


@pytest.mark.parametrize(("objects", "cycle", "orphan"), CASES.values(), ids=CASES)
def test_the_cycle_and_the_missing_parent_are_named(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    objects: list[Object],
    cycle: tuple[str, ...],
    orphan: tuple[str, ...],
) -> None:
    path = as_file(tmp_path, *objects)
    assert main(["decide", "-f", path, "--json"]) == 0
    out, err = capsys.readouterr()
    reasons = {
        each["pod"]: " ".join(map(str, each["reason"].values()))
        for round_ in json.loads(out)["rounds"]
        for each in round_["refused"]
    }
    assert [words for words in cycle if words not in reasons["t/in-a"]] == []
    assert [words for words in orphan if words not in reasons["t/in-lost"]] == []
    assert "Its child queues: ." not in str(reasons)
    assert "or with more capability" not in reasons["t/in-lost"]
    assert "(Queue a): spec.parent" in err
    assert "cycle a -> b -> a" in err


def test_a_quota_above_the_parents_is_explained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = as_file(tmp_path, *_of_kai())
    words = "spec.resources.gpu.quota: 6 is above the 2 of its parent 'p'"
    assert main(["queue", "-f", path]) == 0
    assert f"c: {words}" in " ".join(capsys.readouterr().out.split())
    assert main(["decide", "-f", path]) == 0
    assert words in capsys.readouterr().err
    assert main(["queue", "-f", path, "-o", "json"]) == 0
    faults = {each["queue"]: each["fault"] for each in json.loads(capsys.readouterr().out)["others"]}
    assert {name for name, fault in faults.items() if fault} == {"a", "b", "c", "lost"}


@pytest.mark.parametrize("quota", [-1, 0, 1, 2], ids=str)
def test_a_quota_up_to_the_parents_and_an_unlimited_one_are_in_order(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], quota: int
) -> None:
    path = as_file(tmp_path, node("n", 8), kai_queue("p", "", 2), kai_queue("c", "p", quota))
    assert main(["queue", "-f", path]) == 0
    assert "above" not in capsys.readouterr().out


def test_a_preemption_policy_that_does_not_exist_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    queues = [volcano_queue("good", preemptionPolicy="bestFit"), volcano_queue("bad", preemptionPolicy="worstFit")]
    assert main(["queue", "-f", as_file(tmp_path, node("n", 8), *queues)]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "bad: spec.preemptionPolicy: worstFit is none of priority, FIFO, bestFit: priority is used" in text.replace(
        '"', ""
    )
    assert "good:" not in text
