"""Whoever follows a remedy of `shoal why` to the letter gets the pod to run: on random clusters, read anew afterwards.

The commands are carried out on the objects by the simplest reading of what kubectl does; then everything is decided
again from the objects alone.
"""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from functools import cache

import pytest

from build.depth import seeds
from build.followed_commands import followed
from build.manifests import Object, node, pod, replicas, thing, volcano_group
from shoal.api.decode import Document, read
from shoal.cli.explainer import Explainer
from shoal.cli.manifests import loaded_of, rounds_of
from shoal.views.explanation import Explanation

GROUP = "scheduling.k8s.io/group-name"
TAINTS = [{"key": "team", "value": value, "effect": "NoSchedule"} for value in ("a", "b")]
ZONES = ("north", "south")
ZONE, RACK = "zone", "example.com/rack"
NEVER = ("aiting does not help", "waiting alone does not", "even empty", "however empty")
"""How an answer says that the end of other pods does not help."""


def world(chance: random.Random) -> list[Object]:
    """A few nodes with taints, cordons, unhealthy GPUs and pods; some pods and a gang wait."""
    objects = []
    for at in range(chance.randint(1, 4)):
        spec: Object = {}
        if chance.random() < 0.3:
            spec["taints"] = [chance.choice(TAINTS)]
        if chance.random() < 0.3:
            spec["unschedulable"] = True
        labels = {"zone": chance.choice(ZONES)} if chance.random() < 0.7 else {}
        healthy = chance.choice((8, 8, 8, 6))
        made = node(f"n{at}", healthy, labels=labels, spec=spec)
        made["status"]["capacity"] = {**made["status"]["allocatable"], "nvidia.com/gpu": 8}
        if healthy < 8:
            made["metadata"]["annotations"] = {"shoal.dev/gpu-faults": '{"1": 79, "2": 48}'}
        objects.append(made)
        left = healthy
        while left > 0 and chance.random() < 0.6:
            gpus = chance.randint(1, min(left, 4))
            left -= gpus
            objects.append(pod(f"t/r{at}-{left}", gpus, on=f"n{at}", status={"phase": "Running"}))
            if chance.random() < 0.3:
                reference = {
                    "apiVersion": "apps/v1",
                    "kind": "ReplicaSet",
                    "name": "web",
                    "uid": "1",
                    "controller": True,
                }
                objects[-1]["metadata"]["ownerReferences"] = [reference]
    for at in range(chance.randint(1, 4)):
        key = chance.choice(("zone", "zone", "zonne", "", "", "", "", ""))
        selector = {key: chance.choice(ZONES)} if key else {}
        gpus = chance.choice((1, 2, 4, 8))
        waiting = pod(f"t/w{at}", gpus, status={"phase": "Pending"}, nodeSelector=selector)
        kind = chance.choice(("ReplicaSet", "StatefulSet", "", "", ""))
        objects += [waiting, *([controller_of(waiting, kind)] if kind else [])]
    if chance.random() < 0.5:
        count = chance.randint(2, 3)
        objects.append(volcano_group("t/g", count))
        members = (pod(f"t/g{at}", 4, annotations={GROUP: "g"}, status={"phase": "Pending"}) for at in range(count))
        objects += members
    for at, each in enumerate(objects):
        each["metadata"]["uid"] = f"u{at}"
    return settled(objects)


def world_of_levels(chance: random.Random) -> list[Object]:
    """GPUs divided by MIG, unhealthy GPUs and nodes, affinity, and a gang that requires a topology domain."""
    objects: list[Object] = [*nodes_of_levels(chance)]
    topology = {"levels": [{"nodeLabel": level} for level in (ZONE, RACK)]}
    if chance.random() < 0.5:
        objects.append(thing("kueue.x-k8s.io/v1beta2", "Topology", "racks", spec=topology))
    for at in range(chance.randint(1, 3)):
        kind = chance.choice(("gpu", "gpu", "mig", "affinity", "value"))
        profile = chance.choice(("1g.10gb", "3g.40gb", "3g.30gb", "7g.80gb"))
        limits = {f"nvidia.com/mig-{profile}": 1} if kind == "mig" else {}
        more: Object = {}
        if kind == "affinity":
            more["affinity"] = affinity(chance.choice((ZONE, f"{ZONE}x")), chance.choice(("north", "nort", "south")))
        if kind == "value":
            more["nodeSelector"] = {ZONE: chance.choice(("nort", "mars")), **chance.choice(({}, {"disk": "fast"}))}
        gpus = 0 if kind == "mig" else chance.choice((1, 4, 8, 16))
        objects.append(pod(f"t/w{at}", gpus, status={"phase": "Pending"}, limits=limits, **more))
    level = chance.choice((ZONE, RACK, RACK, f"{RACK}k"))
    annotations = {GROUP: "g", "kueue.x-k8s.io/podset-required-topology": level}
    count = chance.randint(1, 3)
    objects.append(volcano_group("t/g", count))
    gpus = chance.choice((4, 8))
    objects += [
        pod(f"t/g{at}", gpus, annotations=dict(annotations), status={"phase": "Pending"}) for at in range(count)
    ]
    for at, each in enumerate(objects):
        each["metadata"]["uid"] = f"u{at}"
    return settled(objects)


def nodes_of_levels(chance: random.Random) -> Iterator[Object]:
    for at in range(chance.randint(1, 4)):
        labels = {ZONE: chance.choice(ZONES), RACK: f"r{chance.randint(0, 2)}", "disk": chance.choice(("fast", "slow"))}
        labels |= {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB", "nvidia.com/gpu.count": "8"}
        divided = chance.random() < 0.3
        healthy = chance.choice((8, 8, 7))
        made = node(f"n{at}", 0 if divided else healthy, labels=labels, spec={})
        amounts = made["status"]["allocatable"]
        if divided:
            labels |= {"nvidia.com/mig.capable": "true", "nvidia.com/mig.config": "all-1g.10gb"}
            made["metadata"]["labels"] = labels
            amounts["nvidia.com/mig-1g.10gb"] = 56
            made["status"]["capacity"] = dict(amounts)
        else:
            made["metadata"]["labels"] = labels | {"nvidia.com/mig.capable": "true"}
            made["status"]["capacity"] = {**amounts, "nvidia.com/gpu": 8}
            if healthy < 8:
                made["metadata"]["annotations"] = {"shoal.dev/gpu-faults": '{"1": 79}'}
        if chance.random() < 0.15:
            made["status"]["conditions"] = [{"type": "Ready", "status": "False"}]
            made["spec"]["taints"] = [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]
            made["metadata"].setdefault("annotations", {})["shoal.dev/fault"] = '{"kind":"fail"}'
        yield made
        if chance.random() < 0.5 and not divided:
            yield pod(f"t/r{at}", chance.randint(1, healthy), on=f"n{at}", status={"phase": "Running"})


def affinity(key: str, value: str) -> Object:
    term = {"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}


def controller_of(waiting: Object, kind: str) -> Object:
    """That has made the pod from its template."""
    name = f"of-{waiting['metadata']['name']}"
    controller = replicas(kind, f"t/{name}", 1, 0)
    controller["spec"]["template"]["spec"] = copy.deepcopy(waiting["spec"])
    reference = {"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": "2", "controller": True}
    waiting["metadata"]["ownerReferences"] = [reference]
    return controller


def settled(objects: list[Object]) -> list[Object]:
    """Pods that fit run, as where a scheduler is at work."""
    documents = documents_of(objects)
    nodes = {each.pod: each.node for record in rounds_of(loaded_of(documents), 1).run() for each in record.placed}
    for each in objects:
        node = nodes.get(f"t/{each['metadata']['name']}")
        if node is not None:
            each["spec"]["nodeName"] = node
            each["status"] = {"phase": "Running"}
    return objects


def documents_of(objects: list[Object]) -> list[Document]:
    return list(read(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}).encode()))


def explained(objects: list[Object], name: str) -> Explanation:
    documents = documents_of(objects)
    return Explainer(documents, loaded_of(documents), 1, lambda: True).about(name, "t")


def waiting(objects: list[Object]) -> list[str]:
    names = [each["metadata"]["name"] for each in objects if each["metadata"]["name"].startswith("w")]
    return names + [f"gang/{each['metadata']['name']}" for each in objects if each["kind"] == "PodGroup"]


WORLDS = {"taints and cordons": world, "levels and instances": world_of_levels}


@cache
def told_of(kind: str, seed: int) -> tuple[str, dict[str, Explanation]]:
    """A cluster as JSON, and what is said of each pod and gang that waits in it: every test here asks the same."""
    objects = WORLDS[kind](random.Random(seed))
    documents = documents_of(objects)
    names = waiting(objects)
    return json.dumps(objects), {
        name: Explainer(documents, loaded_of(documents), 1, lambda: True).about(name, "t") for name in names
    }


@pytest.mark.parametrize("kind", WORLDS)
@pytest.mark.parametrize("seed", seeds(60))
def test_a_remedy_that_is_followed_lets_the_pod_run(seed: int, kind: str) -> None:
    objects, told = told_of(kind, seed)
    for name, explanation in told.items():
        for remedy in explanation.remedies:
            changed = json.loads(objects)
            assert remedy.commands, remedy
            for command in dict.fromkeys(remedy.commands):
                changed = followed(changed, command)
            is_new = any(each["metadata"]["name"] == f"{name}-new" for each in changed)
            outcome = explained(changed, f"{name}-new" if is_new else name).outcome
            assert "by now it" in outcome, (name, remedy, outcome)


@pytest.mark.parametrize("kind", WORLDS)
@pytest.mark.parametrize("seed", seeds(60))
def test_a_subject_that_waiting_does_not_help_finds_no_place_when_all_others_are_gone(seed: int, kind: str) -> None:
    objects, told = told_of(kind, seed)
    for name, explanation in told.items():
        lines = " ".join(line for _, lines in explanation.chapters for line in lines)
        if any(words in lines for words in NEVER):
            own = name.removeprefix("gang/")
            alone = [
                each
                for each in json.loads(objects)
                if each["kind"] != "Pod" or each["metadata"]["name"].startswith(own)
            ]
            assert "by now" not in explained(alone, name).outcome, (name, lines)


def test_the_random_clusters_have_remedies_of_every_kind() -> None:
    kinds = set()
    for seed in seeds(60):
        _, told = told_of("taints and cordons", seed)
        kinds |= {
            " ".join(command.split()[:3])
            for name, explanation in told.items()
            if name.startswith("w")
            for remedy in explanation.remedies
            for command in remedy.commands
        }
    assert {kind.split()[1] for kind in kinds} >= {"uncordon", "delete", "patch", "cluster", "get"}
    assert kinds >= {"kubectl patch replicaset", "kubectl patch statefulset"}
