"""What would help is told of what people can do: give back a cordoned node, free one that lower pods hold."""

from __future__ import annotations

from pathlib import Path

import pytest

from build.manifests import Object, as_file, job, node, pod, priority_class, thing, volcano_group
from shoal.cli.main import main

GROUP = "scheduling.k8s.io/group-name"


def told(folder: Path, capsys: pytest.CaptureFixture[str], *nodes: Object) -> str:
    pods = [pod(f"t/g-{n}", 8, annotations={GROUP: "g"}) for n in range(3)]
    assert main(["why", "-f", as_file(folder, *nodes, volcano_group("t/g", 3), *pods), "gang/g"]) == 0
    return " ".join(capsys.readouterr().out.split())


def test_of_a_cordoned_node_it_is_said_that_it_may_be_given_back(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = told(tmp_path, capsys, node("a", 8), node("b", 8), node("c", 8, spec={"unschedulable": True}))
    assert "1 node is cordoned: kubectl uncordon may help, waiting alone does not." in said
    assert ": waiting does not help." in told(tmp_path, capsys, node("a", 8), node("b", 8))


def test_room_is_looked_for_with_those_of_lower_priority_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    objects = [node("a", 8), node("b", 8), priority_class("high", 1000)]
    objects += [
        pod("t/hi", 4, on="a", priorityClassName="high"),
        pod("t/low", 8, on="b"),
        pod("t/nev", 8, priorityClassName="high", preemptionPolicy="Never"),
    ]
    assert main(["why", "-f", as_file(tmp_path, *objects), "pod/nev"]) == 0
    assert "Free 8 GPUs on b (t/low)." in " ".join(capsys.readouterr().out.split())


def test_taints_that_keep_a_pod_or_a_gang_off_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    taint = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
    objects = [node(name, 8, spec={"taints": [taint]}) for name in "abc"]
    words = "Tolerate nvidia.com/gpu=present:NoSchedule (3 nodes)."
    assert words in told(tmp_path, capsys, *objects)
    # With two nodes the third pod of the gang would still wait.
    assert "Tolerate" not in told(tmp_path, capsys, *objects[:2])
    file = as_file(tmp_path, *objects, pod("t/one", 8))
    assert main(["why", "-f", file, "pod/one"]) == 0
    assert words in " ".join(capsys.readouterr().out.split())
    assert main(["decide", "-f", file]) in (0, 1)
    assert words in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(("pods", "room", "helps"), [(900, 1_000, True), (900, 800, False), (1_200, 1_100, False)])
def test_more_quota_helps_only_if_all_refused_pods_would_run(
    pods: int, room: int, helps: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    large = node("n")
    large["status"]["allocatable"]["pods"] = room
    quota = thing("v1", "ResourceQuota", "t/q", spec={"hard": {"pods": 0}})
    file = as_file(tmp_path, large, quota, job("t/j", pods, completions=pods))
    assert main(["why", "-f", file, "job/j", "-n", "t"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "its pods are not created" in said
    assert (f"Raise pods from 0 to {pods}" in said) is helps
