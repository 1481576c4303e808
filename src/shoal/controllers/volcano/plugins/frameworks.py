"""The plugins pytorch, tensorflow and mpi: what the frameworks want to be told of who else is there."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from shoal.controllers.volcano.plugins.dressing import (
    Place,
    argument,
    containers,
    host,
    hosts,
    open_port,
    say,
    task_named,
)
from shoal.store.live.item import Obj
from shoal.units.numbers import whole_of

_TENSORFLOW_ROLES = ("ps", "worker", "chief", "evaluator")


def dress_pytorch(place: Place, pod: Obj, given: Sequence[str]) -> None:
    job, task = place.job, place.task
    master = task_named(job, argument(given, "master", "master"))
    worker = task_named(job, argument(given, "worker", "worker"))
    port = _port(given, 23456)
    if master is None or task not in (master, worker):
        return
    before = master.replicas if task is worker else 0
    size = master.replicas + (worker.replicas if worker is not None else 0)
    told = {"MASTER_ADDR": host(job, master, 0), "MASTER_PORT": str(port), "WORLD_SIZE": str(size)}
    for container in containers(pod):
        for name, value in {**told, "RANK": str(before + place.index)}.items():
            say(container, name, value)
    open_port(pod, "pytorchjob-port", port)


def dress_tensorflow(place: Place, pod: Obj, given: Sequence[str]) -> None:
    port = _port(given, 2222)
    cluster: dict[str, list[str]] = {}
    mine = ""
    for role in _TENSORFLOW_ROLES:
        task = task_named(place.job, argument(given, role, role))
        if task is None:
            continue
        cluster[role] = [f"{name}:{port}" for name in hosts(place.job, task)]
        mine = role if task.name == place.task.name else mine
    if not mine:
        return
    told = {"cluster": cluster, "task": {"type": mine, "index": place.index}}
    for container in containers(pod):
        say(container, "TF_CONFIG", msgspec.json.encode(told).decode())
    open_port(pod, "tfjob-port", port)


def dress_mpi(place: Place, pod: Obj, given: Sequence[str]) -> None:
    master = argument(given, "master", "master")
    worker = task_named(place.job, argument(given, "worker", "worker"))
    if place.task.name == master and worker is not None:
        for container in containers(pod):
            say(container, "MPI_HOST", ",".join(hosts(place.job, worker)))
    open_port(pod, "mpijob-port", _port(given, 22))


def _port(given: Sequence[str], default: int) -> int:
    port = whole_of(argument(given, "port", str(default))) or 0
    return port if 0 < port < 65536 else default
