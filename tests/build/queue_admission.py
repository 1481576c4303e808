"""Runs queue admission beside a small cluster that serves Kueue's kinds, and builds objects of these kinds.

The test plays the jobs: `stop` after an eviction, `start_pods` after an admission.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from build.live_schedulers import LiveScheduler
from build.small_clusters import SmallCluster, small_cluster
from shoal.api.kueue import Configuration
from shoal.client.ecosystem_kinds import CLUSTER_QUEUES, LOCAL_QUEUES, RESOURCE_FLAVORS, WORKLOADS
from shoal.client.item import Obj
from shoal.client.kind import CONFIG_MAPS, DEFINITIONS, NAMESPACES, PODS
from shoal.client.port import Api
from shoal.controllers.queues.admission_loop import QueueAdmission
from shoal.controllers.scheduling_loop.scheduling_loop import SchedulingLoopSettings
from shoal.embedded.apiserver.foreign.definitions import definitions_of, tables
from shoal.store.watched.cluster import WatchSettings
from shoal.store.watched.queues import WatchedQueues

POD_SET_LABEL = "kueue.x-k8s.io/podset"
WORKLOAD_ANNOTATION = "kueue.x-k8s.io/workload"


@asynccontextmanager
async def queued_cluster(folder: Path) -> AsyncIterator[SmallCluster]:
    async with small_cluster(folder) as cluster:
        for file, table in tables():
            if file == "kueue.yaml":
                for definition in definitions_of(file, table):
                    await cluster.create(DEFINITIONS, definition)

        async def are_served() -> bool:
            groups = {one.kind.group for one in await cluster.api.served()}
            return "kueue.x-k8s.io" in groups

        await cluster.until(are_served)
        yield cluster


class RunningAdmission:
    """A scheduling loop with the admission of queues."""

    def __init__(self, live: LiveScheduler, admission: QueueAdmission) -> None:
        self.loop = live
        self.admission = admission

    async def kill(self) -> None:
        await self.loop.kill()


def start_admission(
    cluster: SmallCluster,
    configuration: Configuration | None = None,
    settings: SchedulingLoopSettings | None = None,
    api: Api | None = None,
) -> RunningAdmission:
    live = LiveScheduler(cluster, api, WatchSettings(), settings)
    watched = WatchedQueues(live.context, live.served, live.loop.wake, configuration)
    admission = QueueAdmission(live.context, watched, live.loop)
    live.loop.discipline = admission
    live.start()
    return RunningAdmission(live, admission)


async def add_flavor(cluster: SmallCluster, name: str = "default", **spec: Any) -> None:
    await cluster.create(RESOURCE_FLAVORS, {"metadata": {"name": name}, "spec": spec})


async def add_queue(
    cluster: SmallCluster, name: str = "cq", cpu: str = "4", flavors: tuple[str, ...] = ("default",), **spec: Any
) -> None:
    """A cluster queue over cpu, and a local queue of its name in `default`."""
    limits = {key: spec.pop(key) for key in ("borrowingLimit", "lendingLimit") if key in spec}
    groups = [
        {
            "coveredResources": ["cpu"],
            "flavors": [
                {"name": flavor, "resources": [{"name": "cpu", "nominalQuota": cpu, **limits}]} for flavor in flavors
            ],
        }
    ]
    body = {"namespaceSelector": {}, "resourceGroups": groups, **spec}
    await cluster.create(CLUSTER_QUEUES, {"metadata": {"name": name}, "spec": body})
    await cluster.create(LOCAL_QUEUES, {"metadata": {"name": name}, "spec": {"clusterQueue": name}})


def workload(name: str, queue: str = "cq", cpu: str = "1", count: int = 1, **spec: Any) -> Obj:
    containers = [{"name": "main", "image": "pause", "resources": {"requests": {"cpu": cpu}}}]
    template = {"spec": {"schedulerName": "shoal", "containers": containers, "restartPolicy": "Never"}}
    sets = [{"name": "main", "count": count, "template": template}]
    return {"metadata": {"name": name}, "spec": {"queueName": queue, "podSets": sets, **spec}}


async def submit(cluster: SmallCluster, name: str, **more: Any) -> Obj:
    return await cluster.create(WORKLOADS, workload(name, **more))


async def configure(cluster: SmallCluster, namespace: str, fields: str) -> None:
    """A map of that name says how queues are decided; it counts in Kueue's own namespace."""
    text = f"apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\n{fields}\n"
    meta: Obj = {"name": "kueue-manager-config", "namespace": namespace}
    await cluster.create(NAMESPACES, {"metadata": {"name": namespace}})
    await cluster.create(CONFIG_MAPS, {"metadata": meta, "data": {"controller_manager_config.yaml": text}})


async def said(cluster: SmallCluster, name: str, type_: str) -> tuple[str, str, str]:
    """Status, reason and message of a condition."""
    status = (await cluster.get(WORKLOADS, name)).get("status", {})
    found: Obj = next((one for one in status.get("conditions", ()) if one["type"] == type_), {})
    return found.get("status", ""), found.get("reason", ""), found.get("message", "")


async def is_so(cluster: SmallCluster, name: str, type_: str = "Admitted", status: str = "True") -> bool:
    return (await said(cluster, name, type_))[0] == status


async def until_so(cluster: SmallCluster, name: str, type_: str = "Admitted", status: str = "True") -> None:
    await cluster.until(lambda: is_so(cluster, name, type_, status))


async def start_pods(cluster: SmallCluster, name: str, count: int = 1, *, first: int = 0, cpu: str = "1") -> None:
    """The pods that the workload's job creates once it is admitted."""
    spec = workload(name, cpu=cpu)["spec"]["podSets"][0]["template"]["spec"]
    for index in range(first, first + count):
        meta = {
            "name": f"{name}-{index}",
            "labels": {POD_SET_LABEL: "main"},
            "annotations": {WORKLOAD_ANNOTATION: name},
        }
        await cluster.create(PODS, {"metadata": meta, "spec": spec})


async def stop(cluster: SmallCluster, name: str, reason: str = "Preempted", *, requeued: bool = True) -> None:
    """No pod of it runs any more: what its job's controller writes then."""
    obj = await cluster.get(WORKLOADS, name)
    status = obj["status"]
    changed = {
        "QuotaReserved": ("False", "PendingEvaluation", "m"),
        "Admitted": ("False", "NoReservation", "The workload has no reservation"),
        "Requeued": ("True" if requeued else "False", reason, "m"),
    }
    left = [one for one in status["conditions"] if one["type"] not in changed]
    now = cluster.clock.text()
    for type_, (word, why, message) in changed.items():
        left.append({"type": type_, "status": word, "reason": why, "message": message, "lastTransitionTime": now})
    await cluster.patch(WORKLOADS, name, {"status": {"conditions": left, "admission": None}}, "status")


async def finish(cluster: SmallCluster, name: str) -> None:
    status = (await cluster.get(WORKLOADS, name)).get("status", {})
    done = {"type": "Finished", "status": "True", "reason": "Succeeded", "message": "m"}
    conditions = [*status.get("conditions", ()), {**done, "lastTransitionTime": cluster.clock.text()}]
    await cluster.patch(WORKLOADS, name, {"status": {"conditions": conditions}}, "status")


__all__ = [
    "RunningAdmission",
    "add_flavor",
    "add_queue",
    "configure",
    "finish",
    "is_so",
    "queued_cluster",
    "said",
    "start_admission",
    "start_pods",
    "stop",
    "submit",
    "until_so",
    "workload",
]
