"""A spelling that `shoal why` or a status text suggests was tried: it is printed where it removes the obstacle."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from build.gpu_queues import gpu_job, gpu_queue, gpus
from build.manifests import Object, as_file, job, node, pod, thing
from build.queue_manifests import flavor
from shoal.cli.main import main

RACK = "example.com/rack"
LEVEL = "kueue.x-k8s.io/podset-required-topology"
RUNNING = {"phase": "Running"}


class Commands:
    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._folder = folder
        self._capsys = capsys

    def run(self, *command: str, objects: list[Object]) -> str:
        assert main([*command, "-f", as_file(self._folder, *objects)]) == 0
        return self._capsys.readouterr().out

    def told(self, name: str, *objects: Object) -> str:
        return " ".join(self.run("why", name, objects=[*objects]).split())

    def help_of(self, *objects: Object) -> str:
        rounds: Any = json.loads(self.run("decide", "-o", "json", objects=[*objects]))["rounds"]
        return str(rounds[-1]["refused"][0]["reason"]["help"])


@pytest.fixture
def commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Commands:
    return Commands(tmp_path, capsys)


def racked(*racks: str) -> list[Object]:
    made = [node(f"n{at}", 8, labels={RACK: rack, "zone": "north"}) for at, rack in enumerate(racks)]
    for at, each in enumerate(made):
        each["metadata"]["uid"] = f"u{at}"
    return made


def gang(level: str, pods: int = 2) -> Object:
    made = job("t/train", pods, 8, annotations={"shoal.dev/gang": "true"})
    made["spec"]["template"]["metadata"] = {"annotations": {LEVEL: level}}
    return made


def test_a_near_level_with_which_the_gang_runs_is_suggested(commands: Commands) -> None:
    objects = *racked("a", "a"), gang(f"{RACK}k")
    assert f"No node has a label {RACK}k; did you mean {RACK}?" in commands.told("job/train", *objects)
    assert f"did you mean {RACK}?" in commands.help_of(*objects)


def test_a_near_level_that_no_domain_is_large_enough_for_is_not_suggested(commands: Commands) -> None:
    """Each rack has one node, and there are two nodes."""
    objects = *racked("a", "b"), gang(f"{RACK}k", pods=3)
    told = commands.told("job/train", *objects)
    assert f"No node has a label {RACK}k." in told
    assert f"With {RACK} instead of {RACK}k it would wait as well." in told
    assert "did you mean" not in told
    assert "did you mean" not in commands.help_of(*objects)


def test_a_near_level_means_the_domains_of_its_topology(commands: Commands) -> None:
    """Two racks of one name in two zones are two domains, and neither holds two pods."""
    nodes = racked("a", "a")
    nodes[1]["metadata"]["labels"]["zone"] = "south"
    assert "did you mean" in commands.told("job/train", *nodes, gang(f"{RACK}k"))
    levels = [{"nodeLabel": "zone"}, {"nodeLabel": RACK}]
    topology = thing("kueue.x-k8s.io/v1beta2", "Topology", "racks", spec={"levels": levels})
    objects = *nodes, topology, gang(f"{RACK}k", pods=2)
    assert "did you mean" not in commands.help_of(*objects)
    assert "Two changes are needed." in commands.told("job/train", *objects), "the level alone does not help"


def test_a_near_label_whose_nodes_are_full_is_told_to_wait_as_well(commands: Commands) -> None:
    waiting = pod("t/w", 8, nodeSelector={"zonne": "north"}, status={"phase": "Pending"}, priority=10)
    full = pod("t/r", 8, on="n0", status=RUNNING, priority=100)
    told = commands.told("pod/w", *racked("a"), full, waiting)
    assert "did you mean zone?" in told, "it runs once the other pod is deleted"
    queued = {"annotations": {"kueue.x-k8s.io/workload": "w"}}
    kept = pod("t/r", 8, on="n0", status=RUNNING, priority=100, meta=queued)
    told = commands.told("pod/w", *racked("a"), kept, waiting)
    assert "No node has a label zonne. With zone instead of zonne it would wait as well." in told


def test_a_near_value_that_another_condition_excludes_is_not_suggested(commands: Commands) -> None:
    """North is right, and no node there has the other label."""
    south = node("s", 8, labels={"zone": "south", "disk": "fast"})
    selector = {"zone": "nort", "disk": "fast"}
    objects = *racked("a"), south, pod("t/w", 8, nodeSelector=selector)
    assert "did you mean" not in commands.help_of(*objects)
    assert "did you mean" not in commands.told("pod/w", *objects)
    assert "did you mean north?" in commands.help_of(*racked("a"), pod("t/w", 8, nodeSelector={"zone": "nort"}))


def test_a_near_label_of_a_queued_job_is_suggested_only_with_quota_for_it(commands: Commands) -> None:
    selector = {"zonne": "north"}
    waiting = gpu_job("t/j", 1, 8)
    waiting["spec"]["template"]["spec"]["nodeSelector"] = selector
    objects = [*racked("a"), flavor(), *gpu_queue("t", gpus(8)), waiting]
    assert "did you mean zone?" in commands.told("job/j", *objects)
    full = pod("t/r", 8, on="n0", status=RUNNING, meta={"annotations": {"kueue.x-k8s.io/workload": "w"}})
    assert "did you mean" not in commands.told("job/j", *objects, full)


def test_a_gang_that_no_domain_can_hold_names_the_largest_and_a_level_that_does(commands: Commands) -> None:
    objects = *racked("a", "a", "b"), gang(RACK, pods=3)
    told = commands.told("job/train", *objects)
    limit = f"Waiting does not help: no {RACK} can hold 3 pods of it, even if everything else were gone."
    assert f"{limit} The largest, a, holds 2." in told
    assert f"rename {LEVEL} to kueue.x-k8s.io/podset-preferred-topology" in told
    assert limit in commands.help_of(*objects)
    assert "rename" not in commands.told("job/train", *racked("a", "b"), gang(RACK, pods=3)), "nowhere are three nodes"


def test_a_gang_whose_slices_no_domain_can_hold_says_so(commands: Commands) -> None:
    sliced = job("t/train", 4, 8, annotations={"shoal.dev/gang": "true"})
    podset = "kueue.x-k8s.io/podset-slice"
    levels = {f"{podset}-required-topology": RACK, f"{podset}-size": "2"}
    sliced["spec"]["template"]["metadata"] = {"annotations": levels}
    limit = f"no {RACK} can hold a slice of 2 pods of it, even if everything else were gone. The largest, a, holds 1."
    assert limit in commands.told("job/train", *racked("a", "b", "c", "d"), sliced)
    assert "a slice of" not in commands.told("job/train", *racked("a", "a", "b", "c"), sliced)
