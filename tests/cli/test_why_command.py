"""`shoal why`: the story of one pod or gang, on one screen."""

from __future__ import annotations

from pathlib import Path

import pytest

from build.manifests import Object, as_file, kai_group, node, pod, priority_class, volcano_group
from shoal.cli.main import main

GROUP = "scheduling.k8s.io/group-name"


class Explanation:
    """What the command says about a name."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._folder = folder
        self._capsys = capsys

    def of(self, name: str, *objects: Object) -> str:
        assert main(["why", "-f", as_file(self._folder, *objects), name]) == 0
        text = self._capsys.readouterr().out
        assert len(text.splitlines()) <= 40
        # Cells wrap at the width of the terminal; what is said does not depend on it.
        return " ".join(text.split())

    def complaint(self, name: str, *objects: Object) -> str:
        assert main(["why", "-f", as_file(self._folder, *objects), name]) == 2
        return self._capsys.readouterr().err


@pytest.fixture
def explanation(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Explanation:
    return Explanation(tmp_path, capsys)


def test_of_a_pod_that_waits(explanation: Explanation) -> None:
    nodes = [node("n", 4), node("m", 2)]
    world = [
        *nodes,
        pod("t/small", 1, on="n"),
        pod("t/new", 4, limits={"cpu": 8}, nodeSelector={"kubernetes.io/os": "linux"}),
    ]
    assert "No node has a label kubernetes.io/os" in explanation.of("t/new", *world)
    world[-1] = pod("t/new", 4, limits={"cpu": 8})
    told = explanation.of("t/new", *world)
    assert told.startswith("t/new waits: NoDeviceFits asks 4 GPUs, 8 cores turn priority 0; 1 of 1 in line")
    assert "nodes 0 of 2 would take it 2 node(s) didn't have 4 empty GPUs" in told
    assert "nearest The nearest node is n: it has 3 of 4 empty GPUs." in told
    assert "would help Free 1 GPU on n (t/small)." in told


def test_of_a_pod_that_runs(explanation: Explanation) -> None:
    assert explanation.of("t/a", node("n", 4), pod("t/a", 2)).startswith("t/a runs on n, GPU 0, 1 asks 2 GPUs")
    assert "since before" in explanation.of("t/a", node("n", 4), pod("t/a", 2, on="n"))


def test_of_a_pod_behind_gates(explanation: Explanation) -> None:
    assert "SchedulingGated" in explanation.of("t/a", node("n", 4), pod("t/a", 1, schedulingGates=[{"name": "quota"}]))


def test_of_a_pod_that_never_preempts(explanation: Explanation) -> None:
    world = [node("n", 1), priority_class("high", 9), pod("t/old", 1, on="n")]
    waiting = pod("t/new", 1, priorityClassName="high", preemptionPolicy="Never")
    assert "preemption its preemption policy is Never" in explanation.of("t/new", *world, waiting)


def test_of_a_gang_that_waits(explanation: Explanation) -> None:
    world = [node("n", 4), volcano_group("t/g", 3), *(pod(f"t/g-{n}", 2, annotations={GROUP: "g"}) for n in range(3))]
    told = explanation.of("t/g", *world)
    assert told.startswith("gang t/g waits: GangDoesNotFit needs 3 pods; 3 wait, 0 run asks 2 GPUs")
    assert "2 of 3" in told
    assert explanation.of("t/g-0", *world).startswith("t/g-0 waits with its gang: GangDoesNotFit")


def test_of_a_gang_with_a_part_that_is_short(explanation: Explanation) -> None:
    parts = kai_group("t/g", subGroups=[{"name": "lead", "minMember": 1}, {"name": "work", "minMember": 2}])
    pods = [
        pod(f"t/{name}", gpus, annotations={"pod-group-name": "g"}, labels={"kai.scheduler/subgroup-name": part})
        for name, part, gpus in (("l", "lead", 1), ("w0", "work", 4), ("w1", "work", 4))
    ]
    told = explanation.of("t/g", node("n", 4), node("m", 2), parts, *pods)
    assert "part work needs 2 pods" in told
    assert "1 of 2" in told


def test_of_a_gang_that_runs(explanation: Explanation) -> None:
    world = [node("n", 4), volcano_group("t/g", 2), *(pod(f"t/g-{n}", 2, annotations={GROUP: "g"}) for n in range(2))]
    assert explanation.of("g", *world).startswith(
        "gang t/g runs with 2 pods turn priority 0; 1 of 2 in line pods n: t/g-0, t/g-1"
    )


def test_a_bare_name_will_do_where_one_namespace_has_it(explanation: Explanation) -> None:
    assert explanation.of("a", node("n", 4), pod("t/a", 2)).startswith("t/a runs")
    complaint = explanation.complaint("a", pod("t/a", 2), pod("u/a", 2))
    assert complaint == 'shoal: "a" is in several namespaces; name one of t/a, u/a\n'


def test_a_name_that_nobody_has_offers_what_comes_near(explanation: Explanation) -> None:
    world = [pod("team-a/train-0"), pod("team-b/serve-0")]
    assert explanation.complaint("team-a/trian-0", *world) == (
        'shoal: pod or gang "team-a/trian-0" not found; did you mean team-a/train-0?\n'
    )
    assert explanation.complaint("xyz", *world) == 'shoal: pod or gang "xyz" not found; 2 pods and gangs exist\n'


def test_of_a_gang_that_lost_pods_which_nobody_has_made_again(explanation: Explanation) -> None:
    member = {GROUP: "g"}
    told = explanation.of("g", node("n", 4), volcano_group("g", 3), pod("a", 1, on="n", annotations=member))
    assert told.startswith("gang default/g runs with 1 of 3 pods: GangTooSmall")
    assert "lost 2 pods ended or were lost and have not been replaced yet" in told
    assert "pods n: default/a" in told


def test_of_a_pod_whose_volume_claim_is_missing(explanation: Explanation) -> None:
    waits = pod("new", 1, volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}])
    waits["metadata"]["uid"] = "1"
    of_the_cluster = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "fast"}}
    told = explanation.of("new", node("n", 4), of_the_cluster, waits)
    assert told.startswith("default/new waits: VolumesNotReady")
    assert 'volumes persistentvolumeclaim "data" not found. Create the claim, or correct its name' in told
