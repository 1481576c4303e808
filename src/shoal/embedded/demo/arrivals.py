"""Generates the manifests of three teams over a minute, each with a time, from a seed.

`pretrain` submits a few gangs of whole nodes, `vision` many small jobs, `serving` keeps replicas running and scales
them by the time of day. Together they request more than their quota, so that jobs wait in their queues. Three jobs wait
all the time, each for another reason: a misspelled label, a MIG profile that no node offers, more GPUs than the cohort
has. One GPU falls off the bus and recovers.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any, Literal

import msgspec

from shoal.embedded.demo.quotas import QUEUE_LABEL

GANG_LABEL = "pod-group.scheduling.sigs.k8s.io/name"
GANG_MINIMUM_LABEL = "pod-group.scheduling.sigs.k8s.io/min-available"
Obj = dict[str, Any]
TEAMS = ("pretrain", "vision", "serving")
NODES = "8xp5.48xlarge,7xp4d.24xlarge,1xp4d.24xlarge[mig=all-1g.5gb,strategy=mixed]"
LENGTH_S = 60.0
_SLICE = "nvidia.com/mig-1g.5gb"
_GPU = "nvidia.com/gpu"
_PRODUCT = "nvidia.com/gpu.product"


class Arrival(msgspec.Struct, frozen=True):
    """An action of a user at a time."""

    at_s: float
    what: Literal["job", "deployment", "scale", "gpu-fail", "gpu-heal"]
    team: str
    name: str
    obj: Obj = {}
    replicas: int = 0


def arrivals(seed: int, turn: int = 0) -> list[Arrival]:
    """The arrivals in order of time, over `LENGTH_S`. Later turns use the objects of the first."""
    draw = random.Random(seed + turn)
    everything = [*_pretrain(draw, turn), *_vision(draw, turn), *_serving(draw, turn), *_mishap(draw)]
    if not turn:
        everything += _stuck()
    return sorted(everything, key=lambda one: (one.at_s, one.name))


def _pretrain(draw: random.Random, turn: int) -> Iterator[Arrival]:
    at_s = 0.5
    for number in range(10):
        pods = draw.choice((2, 2, 4, 4, 6))
        yield _job("pretrain", f"pretrain-{100 * turn + number}", at_s, (pods, 8, draw.randint(14, 26)))
        at_s += draw.uniform(3.0, 5.5)


def _vision(draw: random.Random, turn: int) -> Iterator[Arrival]:
    at_s = 1.0
    for number in range(26):
        pods = draw.choice((2, 4, 4, 6, 8))
        yield _job(
            "vision", f"train-{100 * turn + number}", at_s, (pods, draw.choice((1, 1, 2, 4)), draw.randint(4, 12))
        )
        at_s += draw.uniform(1.0, 3.0)


def _serving(draw: random.Random, turn: int) -> Iterator[Arrival]:
    for number, (name, resource, replicas) in enumerate(
        (("chat", _GPU, 4), ("embed", _SLICE, 12), ("rerank", _SLICE, 8), ("vision-api", _GPU, 3))
    ):
        if not turn:
            yield Arrival(0.2 + 0.4 * number, "deployment", "serving", name, _deployment(name, resource, replicas))
        at_s = 8.0 + number
        while at_s < LENGTH_S - 5:
            yield Arrival(at_s, "scale", "serving", name, replicas=max(1, replicas + draw.randint(-3, 8)))
            at_s += draw.uniform(9.0, 14.0)


def _mishap(draw: random.Random) -> Iterator[Arrival]:
    at_s = draw.uniform(28.0, 33.0)
    yield Arrival(at_s, "gpu-fail", "", "p5-48xlarge-3", replicas=draw.randrange(8))
    yield Arrival(at_s + 14.0, "gpu-heal", "", "p5-48xlarge-3")


def _stuck() -> Iterator[Arrival]:
    """Jobs that cannot start, for causes that `shoal why` names. The first two have no queue."""
    label = _job("vision", "misspelled-label", 2.0, (1, 1, 60), is_queued=False)
    label.obj["spec"]["template"]["spec"]["nodeSelector"] = {_PRODUCT: "A100-SXM4-40GB"}
    yield label
    profile = _job("serving", "missing-mig-profile", 3.0, (1, 1, 60), is_queued=False)
    (container,) = profile.obj["spec"]["template"]["spec"]["containers"]
    container["resources"]["limits"] = {"nvidia.com/mig-3g.20gb": "1", "cpu": "4", "memory": "16Gi"}
    yield profile
    yield _job("pretrain", "more-than-all-quota", 4.0, (16, 8, 60))


def _job(team: str, name: str, at_s: float, size: tuple[int, int, int], *, is_queued: bool = True) -> Arrival:
    """`size`: pods, GPUs of each, seconds of work."""
    pods, gpus, run_s = size
    template = _template(team, name, _GPU, gpus)
    template["metadata"]["annotations"] = {"shoal.dev/run-for": f"{run_s}s", "shoal.dev/gpu-util": "92"}
    template["spec"]["restartPolicy"] = "Never"
    if team == "pretrain":
        # The pods of one job start together or not at all.
        template["metadata"]["labels"] |= {GANG_LABEL: name, GANG_MINIMUM_LABEL: str(pods)}
    obj = {
        "metadata": {"name": name, "namespace": team, "labels": {QUEUE_LABEL: team} if is_queued else {}},
        "spec": {
            "completions": pods,
            "parallelism": pods,
            "completionMode": "Indexed",
            "backoffLimit": 8,
            "ttlSecondsAfterFinished": 20,
            "template": template,
        },
    }
    return Arrival(at_s, "job", team, name, obj)


def _deployment(name: str, resource: str, replicas: int) -> Obj:
    template = _template("serving", name, resource, 1)
    template["metadata"]["annotations"] = {"shoal.dev/gpu-util": "55"}
    return {
        "metadata": {"name": name, "namespace": "serving"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template},
    }


def _template(team: str, name: str, resource: str, count: int) -> Obj:
    cpu = "4" if resource == _GPU else "1"
    limits = {resource: str(count), "cpu": cpu, "memory": f"{4 * int(cpu)}Gi"}
    container = {"name": "main", "image": f"registry.example/{team}/{name}", "resources": {"limits": limits}}
    return {"metadata": {"labels": {"app": name, "team": team}}, "spec": {"containers": [container]}}
