"""Configures pods for the plugins pytorch, tensorflow and mpi: the addresses of the other pods of the job."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from shoal.client.item import Obj
from shoal.controllers.volcano.plugins.pod_edits import (
    PluginTarget,
    argument,
    containers,
    host,
    hosts,
    open_port,
    set_env,
    task_named,
)
from shoal.units.numbers import whole_of

_TENSORFLOW_ROLES = ("ps", "worker", "chief", "evaluator")


def configure_pytorch(target: PluginTarget, pod: Obj, arguments: Sequence[str]) -> None:
    job, task = target.job, target.task
    master = task_named(job, argument(arguments, "master", "master"))
    worker = task_named(job, argument(arguments, "worker", "worker"))
    port = _port(arguments, 23456)
    if master is None or task not in (master, worker):
        return
    before = master.replicas if task is worker else 0
    size = master.replicas + (worker.replicas if worker is not None else 0)
    values = {"MASTER_ADDR": host(job, master, 0), "MASTER_PORT": str(port), "WORLD_SIZE": str(size)}
    for container in containers(pod):
        for name, value in {**values, "RANK": str(before + target.index)}.items():
            set_env(container, name, value)
    open_port(pod, "pytorchjob-port", port)


def configure_tensorflow(target: PluginTarget, pod: Obj, arguments: Sequence[str]) -> None:
    port = _port(arguments, 2222)
    cluster: dict[str, list[str]] = {}
    own_role = ""
    for role in _TENSORFLOW_ROLES:
        task = task_named(target.job, argument(arguments, role, role))
        if task is None:
            continue
        cluster[role] = [f"{name}:{port}" for name in hosts(target.job, task)]
        own_role = role if task.name == target.task.name else own_role
    if not own_role:
        return
    values = {"cluster": cluster, "task": {"type": own_role, "index": target.index}}
    for container in containers(pod):
        set_env(container, "TF_CONFIG", msgspec.json.encode(values).decode())
    open_port(pod, "tfjob-port", port)


def configure_mpi(target: PluginTarget, pod: Obj, arguments: Sequence[str]) -> None:
    master = argument(arguments, "master", "master")
    worker = task_named(target.job, argument(arguments, "worker", "worker"))
    if target.task.name == master and worker is not None:
        for container in containers(pod):
            set_env(container, "MPI_HOST", ",".join(hosts(target.job, worker)))
    open_port(pod, "mpijob-port", _port(arguments, 22))


def _port(arguments: Sequence[str], default: int) -> int:
    port = whole_of(argument(arguments, "port", str(default))) or 0
    return port if 0 < port < 65536 else default
