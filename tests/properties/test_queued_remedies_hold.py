"""A user who follows a remedy of `shoal why` for a queued job gets the job admitted, and where the answer says that
waiting does not help, the job finds no places however many pods end: on random clusters, read anew afterwards.

The commands are followed on the objects; then everything is decided again from the objects alone.
"""

from __future__ import annotations

import copy
import json
import random
import re
from functools import cache

import pytest

from build.depth import seeds
from build.followed_commands import followed
from build.gpu_queues import gpu_job, gpu_queue, gpus
from build.manifests import Object, node, pod, thing
from build.queue_manifests import KUEUE, flavor
from shoal.api.decode import Document, read
from shoal.cli.explainer import Explainer
from shoal.cli.manifests import loaded_of
from shoal.views.explanation import Explanation

BLOCK, RACK, HOST = "example.com/block", "example.com/rack", "kubernetes.io/hostname"
PODSET = "kueue.x-k8s.io/podset"
FEWER = re.compile(r"Let pod set main start with (?P<least>\d+) pods? \(minCount\) instead of \d+\.")
MIN_PARALLELISM = "kueue.x-k8s.io/job-min-parallelism"
TAINT = {"key": "team", "value": "a", "effect": "NoSchedule"}


def world(chance: random.Random) -> list[Object]:
    """Racks of nodes with taints, cordons, failed GPUs and pods, a queue that may have a topology, and its jobs."""
    objects = list(nodes(chance))
    has_topology = chance.random() < 0.6
    if chance.random() < 0.8:
        levels = chance.choice(((BLOCK, RACK, HOST), (RACK, HOST), (BLOCK, HOST)))
        objects.append(thing(KUEUE, "Topology", "racks", spec={"levels": [{"nodeLabel": each} for each in levels]}))
    else:
        has_topology = False
    more = {"topologyName": "racks"} if has_topology else {}
    objects += [flavor(nodeLabels={"pool": "gpu"}, **more), *gpu_queue("t", gpus(chance.choice((4, 16, 64))))]
    for at in range(chance.randint(1, 3)):
        waiting = gpu_job(f"t/w{at}", chance.randint(1, 4), chance.choice((1, 2, 4, 8, 8, 16)))
        template = waiting["spec"]["template"]
        template["metadata"] = {"annotations": topology(chance, has_topology=has_topology)}
        selector = chance.choice(({}, {}, {}, {"zone": "north"}, {"zonne": "north"}, {"zone": "nort"}, {"pool": "gpu"}))
        if selector:
            template["spec"]["nodeSelector"] = dict(selector)
        objects.append(waiting)
    for at, each in enumerate(objects):
        each["metadata"]["uid"] = f"u{at}"
    return objects


def nodes(chance: random.Random) -> list[Object]:
    made = []
    for at in range(chance.randint(1, 5)):
        spec: Object = {"unschedulable": True} if chance.random() < 0.2 else {}
        if chance.random() < 0.2:
            spec["taints"] = [TAINT]
        zone = chance.choice(("north", "north", "south"))
        labels = {BLOCK: "b", RACK: f"r{chance.randint(0, 1)}", HOST: f"n{at}", "pool": "gpu", "zone": zone}
        healthy = chance.choice((8, 8, 8, 7))
        each = node(f"n{at}", healthy, labels=labels, spec=spec)
        each["status"]["capacity"] = {**each["status"]["allocatable"], "nvidia.com/gpu": 8}
        if healthy < 8:
            each["metadata"]["annotations"] = {"shoal.dev/gpu-faults": '{"1": 79}'}
        made.append(each)
        if chance.random() < 0.5:
            made.append(pod(f"t/r{at}", chance.randint(1, healthy), on=f"n{at}", status={"phase": "Running"}))
    return made


def topology(chance: random.Random, *, has_topology: bool) -> dict[str, str]:
    level = chance.choice((BLOCK, RACK, HOST, HOST, f"{RACK}k"))
    kinds = ["", "required", "required", "preferred", "slice"] if has_topology else ["", "", "", "required"]
    match chance.choice(kinds):
        case "":
            return {}
        case "slice":
            return {f"{PODSET}-slice-required-topology": level, f"{PODSET}-slice-size": "2"}
        case kind:
            return {f"{PODSET}-{kind}-topology": level}


def explained(objects: list[Object], name: str) -> Explanation:
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}).encode()
    documents: list[Document] = list(read(text))
    return Explainer(documents, loaded_of(documents), 1, lambda: True).about(f"job/{name}", "t")


def annotations_of(objects: list[Object], name: str) -> Object:
    """The annotations of a job's pods."""
    (found,) = [each for each in objects if each["kind"] == "Job" and each["metadata"]["name"] == name]
    annotations: Object = found["spec"]["template"]["metadata"]["annotations"]
    return annotations


def jobs(objects: list[Object]) -> list[str]:
    return [each["metadata"]["name"] for each in objects if each["kind"] == "Job"]


def first_in_line(objects: list[Object], name: str) -> list[Object]:
    """Others in the queue do not get what a remedy frees."""
    return [each for each in objects if each["kind"] != "Job" or each["metadata"]["name"] == name]


@cache
def told_of(seed: int, name: str) -> Explanation:
    """What is said of a job of a cluster that is alone in its queue: two tests here ask the same."""
    return explained(first_in_line(world(random.Random(seed)), name), name)


def after(objects: list[Object], words: str, commands: tuple[str, ...], name: str) -> list[Object] | None:
    """None for a change that is not written as a command and that this test does not know."""
    changed = copy.deepcopy(objects)
    for command in dict.fromkeys(commands):
        changed = followed(changed, command)
    if commands:
        return changed
    fewer = FEWER.fullmatch(words)
    if fewer is None:
        return None
    mine = next(each for each in changed if each["kind"] == "Job" and each["metadata"]["name"] == name)
    mine["metadata"].setdefault("annotations", {})[MIN_PARALLELISM] = fewer["least"]
    return changed


@pytest.mark.parametrize("seed", seeds(60))
def test_a_remedy_that_is_followed_lets_the_job_be_admitted(seed: int) -> None:
    everything = world(random.Random(seed))
    for name in jobs(everything):
        objects = first_in_line(everything, name)
        for remedy in told_of(seed, name).remedies:
            changed = after(objects, remedy.words, remedy.commands, name)
            assert changed is not None, remedy
            outcome = explained(changed, name).outcome
            assert outcome == "waits: by now it would be admitted", (name, remedy, outcome)


@pytest.mark.parametrize("seed", seeds(60))
def test_a_job_that_waiting_does_not_help_finds_no_places_when_all_pods_have_ended(seed: int) -> None:
    everything = world(random.Random(seed))
    for name in jobs(everything):
        told = explained(copy.deepcopy(everything), name)
        lines = " ".join(line for _, lines in told.chapters for line in lines)
        if "does not help" in lines.replace("More quota alone does not help", "") or "even empty" in lines:
            alone = [each for each in first_in_line(everything, name) if each["kind"] != "Pod"]
            assert explained(alone, name).outcome == "waits", (name, lines)


def test_the_random_clusters_have_remedies_and_limits_of_every_kind() -> None:
    kinds, limits, in_domains = set(), set(), set()
    for seed in seeds(60):
        everything = world(random.Random(seed))
        for name in jobs(everything):
            told = told_of(seed, name)
            kinds |= {" ".join(command.split()[:3]) for remedy in told.remedies for command in remedy.commands}
            if told.code == "TopologyPlacementFailed" and any(
                PODSET in key for key in annotations_of(everything, name)
            ):
                in_domains |= {command.split()[1] for remedy in told.remedies for command in remedy.commands}
            kinds |= {"fewer pods" for remedy in told.remedies if FEWER.fullmatch(remedy.words)}
            lines = [line for heading, lines in told.chapters for line in lines if heading == "outlook"]
            limits |= {line.partition(":")[0] for line in lines}
    assert kinds >= {"kubectl patch job", "kubectl patch clusterqueue", "kubectl patch resourceflavor", "fewer pods"}
    assert kinds >= {"kubectl delete pod"}
    assert in_domains >= {"delete", "uncordon", "patch", "cluster"}
    assert limits >= {"Waiting for pods to end does not help", "Waiting does not help"}
