"""Parses the arguments of plugins, and edits pods for them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from shoal.client.item import Obj
from shoal.controllers.volcano.job import Task, VolcanoJob


class PluginTarget(msgspec.Struct, frozen=True):
    """The pod that a plugin configures."""

    job: VolcanoJob
    task: Task
    index: int


def argument(arguments: Sequence[str], name: str, default: str) -> str:
    """The value of `--name=value` or `--name value`."""
    words = [word for one in arguments for word in one.replace("=", " ", 1).split()]
    for at, word in enumerate(words):
        if word.lstrip("-") == name:
            return words[at + 1] if at + 1 < len(words) and not words[at + 1].startswith("-") else "true"
    return default


def containers(pod: Obj) -> Iterator[Obj]:
    for key in ("containers", "initContainers"):
        yield from pod["spec"].get(key) or ()


def set_env(container: Obj, name: str, value: str | Obj) -> None:
    """Adds an environment variable; an existing one is kept."""
    variables = container.setdefault("env", [])
    if all(one["name"] != name for one in variables):
        source = {"value": value} if isinstance(value, str) else {"valueFrom": value}
        variables.append({"name": name, **source})


def open_port(pod: Obj, name: str, port: int) -> None:
    for container in pod["spec"].get("containers") or ():
        ports = container.setdefault("ports", [])
        if all(one.get("containerPort") != port for one in ports):
            ports.append({"name": name, "containerPort": port})


def mount(pod: Obj, volume: Obj, path: str) -> None:
    pod["spec"].setdefault("volumes", []).append(volume)
    for container in containers(pod):
        container.setdefault("volumeMounts", []).append({"name": volume["name"], "mountPath": path})


def host(job: VolcanoJob, task: Task, index: int) -> str:
    """The host name of a pod in the headless Service of its job."""
    return f"{job.pod_name(task, index)}.{job.name}"


def hosts(job: VolcanoJob, task: Task) -> list[str]:
    return [host(job, task, index) for index in range(task.replicas)]


def task_named(job: VolcanoJob, name: str) -> Task | None:
    return next((task for task in job.tasks() if task.name == name), None)
