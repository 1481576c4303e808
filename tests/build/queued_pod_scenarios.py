"""A cluster with queued pods, whose Workloads the test admits and evicts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from build.small_clusters import SmallCluster, small_cluster
from shoal.client.context import Context, Controller
from shoal.client.ecosystem_kinds import LEADER_WORKER_SETS, RESOURCE_FLAVORS, WORKLOADS
from shoal.client.kind import DEFINITIONS, PODS
from shoal.client.port import Deletion, Patch
from shoal.client.served import Served
from shoal.controllers.gatekeeping.held_kinds import QUEUE_LABEL, HoldingRules
from shoal.controllers.gatekeeping.holding import held
from shoal.controllers.queued_pods.controller import queued_pods_controller
from shoal.embedded.apiserver.foreign.definitions import definitions

Obj = dict[str, Any]
TOTAL = "kueue.x-k8s.io/pod-group-total-count"
GROUP = "kueue.x-k8s.io/pod-group-name"


class _Queued:
    def __init__(self, context: Context) -> None:
        self.name = context.name
        self._served = Served(context)
        self._controller = queued_pods_controller(context, self._served)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._served.run())
            group.create_task(self._controller.run())


class QueuedPodScenario:
    """A cluster with the actions of these tests."""

    def __init__(self, cluster: SmallCluster) -> None:
        self.cluster = cluster

    # -- pods -------------------------------------------------------------------------------------------------------

    async def pod(self, name: str, **more: Any) -> Obj:
        """A pod as the admission policies change it; `cpu`, `labels`, `notes`, `owners` and fields of its spec."""
        requests = {"cpu": more.pop("cpu", "1")}
        meta: Obj = {"name": name, "namespace": "default", "labels": {QUEUE_LABEL: "team", **more.pop("labels", {})}}
        meta["annotations"] = more.pop("notes", {})
        meta["ownerReferences"] = more.pop("owners", [])
        containers = [{"name": "main", "image": "busybox", "resources": {"requests": requests}}]
        obj = {"metadata": meta, "spec": {"restartPolicy": "Never", "containers": containers, **more}}
        return await self.cluster.create(PODS, held(obj, ("", "Pod"), HoldingRules(), lambda: False))

    async def member(self, name: str, group: str, total: int, **more: Any) -> Obj:
        notes = {TOTAL: str(total), **more.pop("notes", {})}
        return await self.pod(name, labels={GROUP: group}, notes=notes, **more)

    async def bind(self, *names: str) -> None:
        for name in names:
            target = {"target": {"kind": "Node", "name": "node"}}
            await self.cluster.api.post(PODS, "default", name, "binding", {"metadata": {"name": name}, **target})
            await self.phase("Running", name)

    async def phase(self, phase: str, *names: str, ready: bool = True) -> None:
        for name in names:
            is_ready = "True" if ready and phase == "Running" else "False"
            status = {"phase": phase, "conditions": [{"type": "Ready", "status": is_ready}]}
            await self.cluster.api.patch(PODS, "default", name, Patch("strategic", {"status": status}), "status")

    async def vanish(self, *names: str) -> None:
        """As a kubelet ends a pod that is being deleted."""
        for name in names:
            await self.phase("Failed", name)
            await self.cluster.delete(PODS, name, Deletion(grace_s=0))

    async def names(self) -> set[str]:
        return {pod["metadata"]["name"] for pod in await self.cluster.pods()}

    async def held(self) -> set[str]:
        """Pods whose gate is closed."""
        return {pod["metadata"]["name"] for pod in await self.cluster.pods() if pod["spec"].get("schedulingGates")}

    async def ending(self) -> set[str]:
        pods = await self.cluster.pods()
        return {pod["metadata"]["name"] for pod in pods if pod["metadata"].get("deletionTimestamp")}

    # -- workloads --------------------------------------------------------------------------------------------------

    async def workloads(self) -> list[Obj]:
        return await self.cluster.all(WORKLOADS)

    async def workload(self) -> Obj:
        """The only one."""
        (found,) = await self.workloads()
        return found

    async def admit(self, workload: Obj, flavor: str = "") -> None:
        sets = [
            {"name": one["name"], "count": one["count"], "flavors": {"cpu": flavor} if flavor else {}}
            for one in workload["spec"]["podSets"]
        ]
        await self.say(
            workload,
            {"admission": {"clusterQueue": "shared", "podSetAssignments": sets}},
            ("QuotaReserved", "True", "QuotaReserved", ""),
            ("Admitted", "True", "Admitted", "The workload is admitted"),
            ("Evicted", "False", "QuotaReserved", ""),
        )
        await self.cluster.pass_time(1)

    async def evict(self, workload: Obj, reason: str = "Preempted") -> None:
        await self.say(workload, {}, ("Evicted", "True", reason, "Preempted to make room"))
        await self.cluster.pass_time(1)

    async def say(self, workload: Obj, status: Obj, *conditions: tuple[str, str, str, str]) -> None:
        name = workload["metadata"]["name"]
        present = (await self.cluster.get(WORKLOADS, name)).get("status") or {}
        said = {one[0]: one for one in conditions}
        kept = [one for one in present.get("conditions") or () if one["type"] not in said]
        now = self.cluster.clock.text()
        made = [
            {"type": type_, "status": word, "reason": reason, "message": message, "lastTransitionTime": now}
            for type_, word, reason, message in said.values()
        ]
        await self.cluster.patch(
            WORKLOADS, name, {"status": {**status, "conditions": kept + made}}, subresource="status"
        )

    async def conditions(self) -> dict[str, tuple[str, str]]:
        """Status and reason by type, of the only workload."""
        found = (await self.workload())["status"]["conditions"]
        return {one["type"]: (one["status"], one["reason"]) for one in found}

    async def reasons(self, name: str) -> list[str]:
        """Of the Events about an object."""
        return [event["reason"] for event in await self.cluster.events(name)]


def queued_pods(context: Context) -> Controller:
    return _Queued(context)


@asynccontextmanager
async def bare_scenario(folder: Path) -> AsyncIterator[QueuedPodScenario]:
    """Without the controller of queued pods."""
    async with small_cluster(folder) as cluster:
        for definition in definitions():
            if definition["spec"]["group"] in (WORKLOADS.group, LEADER_WORKER_SETS.group):
                await cluster.create(DEFINITIONS, definition)
        await cluster.pass_time(2)
        spec = {"nodeLabels": {"pool": "spot"}, "tolerations": [{"key": "spot", "operator": "Exists"}]}
        await cluster.create(RESOURCE_FLAVORS, {"metadata": {"name": "spot"}, "spec": spec})
        yield QueuedPodScenario(cluster)


@asynccontextmanager
async def queued_pod_scenario(folder: Path) -> AsyncIterator[QueuedPodScenario]:
    async with bare_scenario(folder) as scenario:
        scenario.cluster.start(queued_pods)
        await scenario.cluster.pass_time(1)
        yield scenario
