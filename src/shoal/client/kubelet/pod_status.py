"""Computes the whole status of a pod from its progress, so that the kubelet need not remember what it wrote.

Ids of simulated containers and images are derived from names, so that a restarted kubelet writes the same ids.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

import msgspec

from shoal.client.kubelet.back_off import back_off_s
from shoal.client.kubelet.pod_conditions import conditions
from shoal.client.kubelet.pod_facts import Container, PodFacts
from shoal.client.kubelet.pod_run import ContainerRun, Ended, PodRun
from shoal.client.kubelet.times import spelled, written

Obj = dict[str, Any]
_INSTEAD = {"$patch": "replace"}
"""Lists of addresses are merged otherwise, and a pod has one address."""


class ContainerResource(msgspec.Struct, frozen=True):
    """The devices of one resource in one container, with their health."""

    resource: str
    devices: tuple[tuple[str, bool], ...]


def status_of(
    run: PodRun,
    facts: PodFacts,
    host_ip: str,
    now_s: float,
    held: Mapping[str, Sequence[ContainerResource]] | None = None,
) -> Obj:
    """The status as a strategic merge patch. `held`: devices by container."""
    status: Obj = {"phase": phase_of(run)}
    if facts.metadata.generation:
        status["observedGeneration"] = facts.metadata.generation
    if run.reason:
        status["reason"] = run.reason
    if run.message:
        status["message"] = run.message
    if run.admitted_s:
        status["startTime"] = written(run.admitted_s)
    if run.step == "bound" or (run.is_over and not run.sandboxes and not run.ip):
        return status
    status["hostIP"], status["hostIPs"] = host_ip, [{"ip": host_ip}, _INSTEAD]
    if run.ip:
        status["podIP"] = run.ip
        status["podIPs"] = [{"ip": run.ip}, _INSTEAD]
    status["conditions"] = conditions(run, facts, now_s)
    specs = facts.all_containers()
    said = [
        _container(run, one, spec, (held or {}).get(one.name, ()))
        for one, spec in zip(run.containers, specs, strict=False)
    ]
    first = len(facts.spec.init_containers)
    if first:
        status["initContainerStatuses"] = said[:first]
    status["containerStatuses"] = said[first:]
    return status


def phase_of(run: PodRun) -> str:
    """The phase; final only when all containers have stopped."""
    if run.is_over:
        return run.phase
    if any(one.role == "main" and (one.is_alive or one.ended is not None) for one in run.containers):
        return "Running"
    return "Pending"


def container_id(run: PodRun, one: ContainerRun, restarts: int, known: str = "") -> str:
    """`known`: the id at the runtime."""
    return (
        f"{run.runtime}://{known}"
        if known
        else f"{run.runtime}://{sha256(f'{run.uid}/{one.name}/{restarts}'.encode()).hexdigest()}"
    )


def _container(run: PodRun, one: ContainerRun, spec: Container, held: Sequence[ContainerResource]) -> Obj:
    image = full_image(one.image or spec.image)
    status: Obj = {"name": one.name, "restartCount": one.restarts, "image": image, "imageID": ""}
    status["ready"] = one.is_ready if one.role != "init" else one.step == "ended" and not _code(one.ended)
    status["started"] = one.is_started and one.is_alive
    status["state"], status["lastState"] = _states(run, one)
    if one.is_alive or one.ended is not None:
        derived = f"{image.rpartition(':')[0] or image}@sha256:{sha256(image.encode()).hexdigest()}"
        status["imageID"] = one.image_id or derived
        status["containerID"] = container_id(run, one, one.restarts, one.id)
    if held:
        status["allocatedResourcesStatus"] = [
            {
                "name": each.resource,
                "resources": [
                    {"resourceID": device, "health": "Healthy" if healthy else "Unhealthy"}
                    for device, healthy in each.devices
                ],
            }
            for each in held
        ]
    return status


def _states(run: PodRun, one: ContainerRun) -> tuple[Obj, Obj]:
    last = _terminated(run, one, one.ended, max(one.restarts - 1, 0)) if one.ended is not None else {}
    if one.is_alive:
        return {"running": {"startedAt": written(one.started_s)}}, last
    if one.ended is not None and (one.step == "ended" or not back_off_s(one.crashes)):
        return _terminated(run, one, one.ended, one.restarts), {}
    if one.waiting_reason and one.step != "ended":
        said: Obj = {"reason": one.waiting_reason, "message": one.waiting_message}
        return {"waiting": said}, last
    if one.step == "crashed":
        wait = spelled(back_off_s(one.crashes))
        words = f"back-off {wait} restarting failed container={one.name} pod={run.name}_{run.namespace}({run.uid})"
        last = _terminated(run, one, one.ended, one.restarts) if one.ended is not None else {}
        return {"waiting": {"reason": "CrashLoopBackOff", "message": words}}, last
    has_init = any(other.role != "main" for other in run.containers)
    return {"waiting": {"reason": "PodInitializing" if has_init else "ContainerCreating"}}, last


def _terminated(run: PodRun, one: ContainerRun, ended: Ended, restarts: int) -> Obj:
    said: Obj = {"exitCode": ended.code, "reason": ended.reason}
    if ended.message:
        said["message"] = ended.message
    said["startedAt"] = written(ended.started_s) if ended.started_s else None
    said["finishedAt"] = written(ended.finished_s) if ended.finished_s else None
    if ended.started_s:
        said["containerID"] = container_id(run, one, restarts, ended.id)
    return {"terminated": said}


def _code(ended: Ended | None) -> int:
    return 1 if ended is None else ended.code


def full_image(image: str) -> str:
    """The full name as in container runtimes: `nginx` is `docker.io/library/nginx:latest`."""
    if not image:
        return image
    head, slash, rest = image.partition("/")
    if not slash:
        image = f"docker.io/library/{image}"
    elif "." not in head and ":" not in head and head != "localhost":
        image = f"docker.io/{head}/{rest}"
    return image if ":" in image.rpartition("/")[2] or "@" in image else f"{image}:latest"
