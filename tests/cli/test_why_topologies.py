"""What `shoal why` says of queued jobs whose topology request no domain meets: whether waiting helps, and what does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from build.gpu_queues import documents_of, gpu_job, gpu_queue, gpu_workload, gpus
from build.manifests import Object, as_file, node, pod, thing
from build.queue_manifests import KUEUE, flavor
from shoal.cli.main import main
from shoal.cli.manifests import loaded_of, rounds_of
from shoal.sim.explanation import explain
from shoal.sim.queue_rounds import QueueRounds
from shoal.sim.remedies import Objects

PODSET = "kueue.x-k8s.io/podset"
REQUIRED = f"{PODSET}-required-topology"
BLOCK, RACK, HOST = "example.com/block", "example.com/rack", "kubernetes.io/hostname"
CaptureFixture = pytest.CaptureFixture[str]


class Why:
    def __init__(self, folder: Path, capsys: CaptureFixture) -> None:
        self._folder = folder
        self._capsys = capsys

    def run(self, *command: str, objects: list[Object]) -> str:
        assert main([*command, "-f", as_file(self._folder, *objects)]) == 0
        return self._capsys.readouterr().out

    def told(self, objects: list[Object]) -> str:
        return " ".join(self.run("why", "job/j", objects=objects).split())

    def document(self, objects: list[Object]) -> Any:
        return json.loads(self.run("why", "job/j", "-o", "json", objects=objects))


@pytest.fixture
def why(tmp_path: Path, capsys: CaptureFixture) -> Why:
    return Why(tmp_path, capsys)


def nodes(count: int = 4, gpus: int = 8) -> list[Object]:
    """Two hosts to a rack, and all in one block."""
    made = [node(f"n{at}", gpus, labels={BLOCK: "b", RACK: f"r{at // 2}", HOST: f"n{at}"}) for at in range(count)]
    for at, each in enumerate(made):
        each["metadata"]["uid"] = f"u{at}"
        each["status"]["capacity"] = {**each["status"]["allocatable"]}
    return made


def queue(*levels: str, has_topology: bool = True) -> list[Object]:
    topology = thing(KUEUE, "Topology", "racks", spec={"levels": [{"nodeLabel": level} for level in levels]})
    more: Object = {"topologyName": "racks"} if has_topology else {}
    return [*([topology] if levels else []), flavor(nodeLabels={BLOCK: "b"}, **more), *gpu_queue("t", gpus(64))]


def job(pods: int, gpus_each: int, **annotations: str) -> Object:
    made = gpu_job("t/j", pods, gpus_each)
    made["metadata"]["uid"] = "j"
    made["spec"]["template"]["metadata"] = {"annotations": annotations}
    return made


def requiring(level: str, pods: int, gpus_each: int = 8) -> Object:
    return job(pods, gpus_each, **{REQUIRED: level})


ALL = (BLOCK, RACK, HOST)
LIMITS = {
    "a host": (requiring(HOST, 3), "no kubernetes.io/hostname can hold the 3 pods", "the largest, n0, holds 1."),
    "a rack": (requiring(RACK, 3), "no example.com/rack can hold the 3 pods", "the largest, b/r0, holds 2."),
    "a block": (requiring(BLOCK, 5), "no example.com/block can hold the 5 pods", "the largest, b, holds 4."),
    "a slice": (
        job(4, 8, **{f"{PODSET}-slice-required-topology": HOST, f"{PODSET}-slice-size": "2"}),
        "no kubernetes.io/hostname can hold a slice of 2 pods",
        "the largest, n0, holds 1.",
    ),
    "anywhere": (
        job(5, 8, **{f"{PODSET}-preferred-topology": HOST}),
        "all nodes of Topology racks together hold 4 of the 5 pods",
        "Add nodes, or ask for fewer or smaller pods.",
    ),
}


@pytest.mark.parametrize("case", LIMITS)
def test_a_request_that_no_domain_can_ever_hold_names_the_largest(case: str, why: Why) -> None:
    made, limit, largest = LIMITS[case]
    objects = [*nodes(), *queue(*ALL), made]
    told = why.told(objects)
    assert "Waiting for pods to end does not help: " in told
    assert limit in told
    assert largest in told
    assert "tried again when pods end" not in told
    waiting = json.loads(why.run("decide", "-o", "json", objects=objects))["rounds"][-1]["waiting"]
    assert limit in waiting[0]["reason"]["help"]


@pytest.mark.parametrize("quota", [8, 16])
def test_a_job_without_quota_that_no_domain_can_hold_is_told_so_as_well(quota: int, why: Why) -> None:
    """Its queue has too little for it, or another job holds what it needs."""
    *objects, cluster_queue, local_queue = queue(*ALL)
    cluster_queue["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0]["nominalQuota"] = quota
    held = gpu_workload("t/held", 1, 8, on="f")
    told = why.told([*nodes(), *objects, cluster_queue, local_queue, held, requiring(HOST, 2)])
    assert "Waiting for pods to end does not help: no kubernetes.io/hostname can hold the 2 pods" in told
    assert "It starts when others of its queue" not in told


def test_a_request_that_fits_once_pods_end_is_not_called_hopeless(why: Why) -> None:
    running = [pod(f"t/p{at}", 1, on=f"n{at}", status={"phase": "Running"}) for at in range(4)]
    told = why.told([*nodes(), *queue(*ALL), requiring(RACK, 2), *running])
    assert "outlook It is tried again when pods end or nodes come." in told
    assert "does not help" not in told
    assert told.count("doesn't allow to fit any of 2 pod(s)") == 1


def test_a_cordoned_node_or_a_failed_gpu_does_not_make_a_request_hopeless(why: Why) -> None:
    cordoned = nodes()
    for each in cordoned[:3]:
        each["spec"] = {"unschedulable": True}
    cordoned[3]["status"]["allocatable"]["nvidia.com/gpu"] = 7
    assert "does not help" not in why.told([*cordoned, *queue(*ALL), requiring(RACK, 2)])


REMEDIES = {
    "a wider level": (
        [*queue(*ALL), requiring(RACK, 3)],
        "example.com/block instead of example.com/rack",
        [{"op": "replace", "value": BLOCK}],
    ),
    "a preferred level": (
        [*queue(RACK, HOST), requiring(RACK, 3)],
        f"rename {REQUIRED} to {PODSET}-preferred-topology",
        [{"op": "remove"}, {"op": "add", "value": RACK}],
    ),
    "a level that the topology has": (
        [*queue(BLOCK, HOST), requiring(RACK, 3)],
        "example.com/block instead of example.com/rack",
        [{"op": "replace", "value": BLOCK}],
    ),
    "no level where no flavor has a topology": (
        [*queue(has_topology=False), requiring(RACK, 3)],
        f'remove spec.template.metadata.annotations["{REQUIRED}"]',
        [{"op": "remove"}],
    ),
}


@pytest.mark.parametrize("case", REMEDIES)
def test_a_changed_topology_request_is_proposed_if_the_job_is_then_admitted(case: str, why: Why) -> None:
    objects, words, steps = REMEDIES[case]
    document = why.document([*nodes(), *objects])
    remedy = document["remedies"][0]
    assert words in remedy["words"]
    (command,) = remedy["commands"]
    body = json.loads(command.partition(" -p='")[2].removesuffix("'"))
    assert [{key: step[key] for key in ("op", "value") if key in step} for step in body] == steps


def test_a_flavor_gets_the_topology_that_has_the_requested_level(why: Why) -> None:
    objects = [*nodes(), *queue(*ALL, has_topology=False), requiring(RACK, 2)]
    document = why.document(objects)
    assert document["remedies"][0] == {
        "words": "In ResourceFlavor f, set spec.topologyName to racks.",
        "commands": ["""kubectl patch resourceflavor f --type=merge -p='{"spec":{"topologyName":"racks"}}'"""],
    }
    unlabelled = [each for each in objects if each["kind"] != "ResourceFlavor"]
    told = why.told([*unlabelled, flavor()])
    assert "spec.topologyName to racks" not in told, "a flavor with a topology needs a label"


def test_no_topology_change_is_proposed_that_does_not_help(why: Why) -> None:
    """No level holds five pods with 8 GPUs."""
    document = why.document([*nodes(), *queue(*ALL), requiring(BLOCK, 5)])
    assert not [each for each in document["remedies"] if "topology" in each["words"]]


def test_a_level_that_no_topology_of_the_queue_has_is_the_cause(why: Why) -> None:
    told = why.told([*nodes(), *queue(HOST), requiring(RACK, 5)])
    assert "Request a level that the Topology has" in told
    assert "node selector, affinity and tolerations" not in told


def commands(document: Any) -> list[str]:
    return [command for remedy in document["remedies"] for command in remedy["commands"]]


def cordoned(*names: int) -> list[Object]:
    made = nodes()
    for at in names:
        made[at]["spec"] = {"unschedulable": True}
    return made


def tainted(effect: str = "NoSchedule") -> list[Object]:
    made = nodes()
    for each in made:
        each["spec"] = {"taints": [{"key": "team", "value": "a", "effect": effect}]}
    return made


def running(*places: int, gpus_each: int = 1) -> list[Object]:
    made = [pod(f"t/p{at}", gpus_each, on=f"n{at}", status={"phase": "Running"}) for at in places]
    for each in made:
        each["metadata"]["uid"] = each["metadata"]["name"]
    return made


def test_pods_that_hold_the_gpus_of_a_rack_are_named(why: Why) -> None:
    document = why.document([*nodes(), *queue(*ALL), requiring(RACK, 2), *running(0, 2, 3)])
    freed = {"words": "Free 1 GPU on n0 (t/p0).", "commands": ["kubectl delete pod p0 -n t"]}
    assert freed in document["remedies"]


def test_nodes_are_uncordoned_until_one_rack_is_large_enough(why: Why) -> None:
    document = why.document([*cordoned(0, 1, 2), *queue(*ALL), requiring(RACK, 2)])
    assert "kubectl uncordon n2" in commands(document)
    document = why.document([*cordoned(0, 2), *queue(*ALL), requiring(BLOCK, 3)])
    assert "kubectl uncordon n0" in commands(document)


def test_an_unhealthy_gpu_of_a_rack_is_named(why: Why) -> None:
    made = nodes()
    for each in made:
        each["status"]["capacity"] = {**each["status"]["allocatable"]}
    for at in (0, 2):
        made[at]["status"]["allocatable"] = {**made[at]["status"]["allocatable"], "nvidia.com/gpu": 7}
    told = why.told([*made, *queue(*ALL), requiring(RACK, 2)])
    assert "Repair" in told
    assert "n0" in told


def test_a_taint_of_all_nodes_is_tolerated_in_the_template(why: Why) -> None:
    objects = [*tainted(), *queue(*ALL), requiring(RACK, 2)]
    (command,) = commands(why.document(objects))
    assert command.startswith("kubectl patch job j -n t --type=json ")
    assert '"key":"team","operator":"Equal","value":"a","effect":"NoSchedule"' in command
    told = why.told(objects)
    assert "since they do not tolerate the taints of its nodes." in told
    assert "fewer or smaller pods" not in told


@pytest.mark.parametrize(
    "annotations",
    [
        {},
        {f"{PODSET}-unconstrained-topology": "true"},
        {f"{PODSET}-preferred-topology": RACK},
        {f"{PODSET}-slice-required-topology": RACK, f"{PODSET}-slice-size": "2"},
    ],
    ids=["implied", "unconstrained", "preferred", "slices"],
)
def test_pods_are_named_for_requests_of_every_kind(annotations: dict[str, str], why: Why) -> None:
    document = why.document([*nodes(), *queue(*ALL), job(2, 8, **annotations), *running(0, 1, 2, 3)])
    assert [command for command in commands(document) if command.startswith("kubectl delete pod")]


def test_no_pods_are_named_where_the_queue_finds_no_domain_without_them(why: Why) -> None:
    """Four pods with 8 GPUs each are too many for a rack."""
    document = why.document([*nodes(), *queue(*ALL), requiring(RACK, 4), *running(0, 2, 3)])
    assert not [each for each in document["remedies"] if "Free" in each["words"]]


def test_quota_that_is_lacking_as_well_is_raised_with_the_change_of_nodes(why: Why) -> None:
    *objects, cluster_queue, local_queue = queue(*ALL)
    cluster_queue["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0]["nominalQuota"] = 8
    document = why.document([*cordoned(0, 1, 2), *objects, cluster_queue, local_queue, requiring(RACK, 2)])
    found = [each["commands"] for each in document["remedies"] if "kubectl uncordon n2" in each["commands"]]
    assert len(found) == 1
    assert any("nominalQuota" in command for command in found[0])


def test_nothing_of_the_trials_is_left_in_the_facts() -> None:
    documents = documents_of(*cordoned(0, 1, 2), *queue(*ALL), requiring(RACK, 2), *running(3))
    loaded = loaded_of(documents)
    rounds = rounds_of(loaded, 42)
    assert isinstance(rounds, QueueRounds)
    objects = Objects(documents, loaded.manifests.events)
    before = dict(rounds.kueue.queues.nodes)
    explanation = explain(rounds, {}, "t/job-j", objects=objects)
    assert any("kubectl uncordon" in command for each in explanation.remedies for command in each.commands)
    assert rounds.kueue.queues.nodes == before
    assert rounds.cluster.pending.in_order() == []
