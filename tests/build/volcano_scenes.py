"""A cluster with Volcano's kinds, Shoal's controllers for them, a scheduler, and a stand-in for kubelets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from build.foreign_kinds import established
from build.live_schedulers import LiveScheduler, add_node
from build.small_clusters import SmallCluster, small_cluster
from shoal.client.context import Context, Controller
from shoal.client.ecosystem_kinds import VOLCANO_JOBS, VOLCANO_POD_GROUPS, VOLCANO_QUEUES
from shoal.client.item import Obj
from shoal.client.kind import DEFINITIONS, PODS, Kind
from shoal.client.port import Api, Deletion, Patch
from shoal.client.presence import Presence
from shoal.client.refusals import NotFoundError
from shoal.client.served import Served
from shoal.controllers.volcano.admission import VolcanoAdmission
from shoal.controllers.volcano.controller import VolcanoController
from shoal.controllers.volcano.names import COMMANDS
from shoal.embedded.apiserver.foreign.definitions import definitions
from shoal.engine.queues.disciplines.volcano.objects import GROUP
from shoal.store.watched.cluster import WatchSettings

_GROUPS = {VOLCANO_QUEUES.group, VOLCANO_JOBS.group, COMMANDS.group}


class _Volcano:
    def __init__(self, context: Context, presence: Presence | None) -> None:
        self.name = context.name
        self._served = Served(context)
        self._controller = VolcanoController(context, self._served, presence)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._served.run())
            group.create_task(self._controller.run())


def volcano(context: Context, presence: Presence | None = None) -> Controller:
    return _Volcano(context, presence)


class VolcanoScene:
    def __init__(self, cluster: SmallCluster) -> None:
        self.cluster = cluster
        self.disciplines: list[VolcanoAdmission] = []

    def scheduler(
        self,
        api: Api | None = None,
        presence: Presence | None = None,
        watch: WatchSettings = WatchSettings(schedulers=frozenset({"volcano"})),  # noqa: B008 - a frozen value
    ) -> LiveScheduler:
        """Not started. `presence`: whether Volcano itself runs."""
        live = LiveScheduler(self.cluster, api, watch)
        discipline = VolcanoAdmission(live.context, live.served, live.loop, presence)
        live.loop.discipline = discipline
        live.loop.queue_steps.add(discipline)
        self.disciplines.append(discipline)
        return live

    def start_scheduler(
        self, api: Api | None = None, presence: Presence | None = None, *schedulers: str
    ) -> LiveScheduler:
        live = self.scheduler(api, presence, WatchSettings(schedulers=frozenset({"volcano", *schedulers})))
        live.start()
        return live

    # -- objects ----------------------------------------------------------------------------------------------------

    async def queue(self, name: str, **spec: Any) -> Obj:
        return await self.cluster.create(VOLCANO_QUEUES, {"metadata": {"name": name}, "spec": spec})

    async def group(self, name: str, **spec: Any) -> Obj:
        return await self.cluster.create(VOLCANO_POD_GROUPS, {"metadata": {"name": name}, "spec": spec})

    async def pod(self, name: str, group: str = "", *, gpus: int = 0, role: str = "", **spec: Any) -> Obj:
        limits = {"nvidia.com/gpu": str(gpus)} if gpus else {}
        notes = {GROUP: group} if group else {}
        if role:
            notes["volcano.sh/task-spec"] = role
        container = {"name": "main", "image": "pause", "resources": {"limits": limits}}
        spec = {"schedulerName": "volcano", "containers": [container], "restartPolicy": "Never", **spec}
        return await self.cluster.create(PODS, {"metadata": {"name": name, "annotations": notes}, "spec": spec})

    async def command(self, action: str, kind: Kind, name: str) -> None:
        uid = (await self.cluster.get(kind, name))["metadata"]["uid"]
        target = {"apiVersion": kind.api_version, "kind": kind.name, "name": name, "uid": uid}
        made = {"metadata": {"name": f"{action.lower()}-{name}"}, "action": action, "target": target}
        await self.cluster.create(COMMANDS, made)

    async def status(self, kind: Kind, name: str) -> Obj:
        found: Obj = (await self.cluster.get(kind, name)).get("status") or {}
        return found

    async def phase_is(self, name: str, phase: str) -> bool:
        """Of a group."""
        return (await self.status(VOLCANO_POD_GROUPS, name)).get("phase") == phase

    async def job_is(self, name: str, phase: str) -> bool:
        status = await self.status(VOLCANO_JOBS, name)
        return (status.get("state") or {}).get("phase") == phase

    async def condition(self, name: str, type_: str = "Unschedulable") -> tuple[str, str, str]:
        """Status, reason and message, of a group."""
        found = (await self.status(VOLCANO_POD_GROUPS, name)).get("conditions") or ()
        told = ((one["status"], one.get("reason", ""), one.get("message", "")) for one in found if one["type"] == type_)
        return next(told, ("", "", ""))

    async def said(self, name: str) -> set[tuple[str, str]]:
        """Reasons and messages of the Events about an object."""
        return {(one["reason"], one["message"]) for one in await self.cluster.events(name)}

    # -- pods -------------------------------------------------------------------------------------------------------

    async def pods(self) -> dict[str, Obj]:
        return {one["metadata"]["name"]: one for one in await self.cluster.pods()}

    async def bound(self) -> set[str]:
        return {name for name, one in (await self.pods()).items() if one["spec"].get("nodeName")}

    async def bound_are(self, *names: str) -> bool:
        return await self.bound() == set(names)

    async def end(self, name: str, phase: str = "Succeeded", exit_code: int = 0) -> None:
        ended = {"exitCode": exit_code, "finishedAt": self.cluster.clock.text()}
        await self.phase(name, phase, [{"name": "main", "state": {"terminated": ended}}])

    async def phase(self, name: str, phase: str, containers: list[Obj] | None = None) -> None:
        is_ready = "True" if phase == "Running" else "False"
        status: Obj = {"phase": phase, "conditions": [{"type": "Ready", "status": is_ready}]}
        if containers is not None:
            status["containerStatuses"] = [
                {"image": "pause", "imageID": "", "ready": False, "restartCount": 0, **one} for one in containers
            ]
        await self.cluster.api.patch(PODS, "default", name, Patch("strategic", {"status": status}), "status")

    async def tend(self) -> None:
        """Bound pods run, and those that are being deleted go."""
        for name, pod in (await self.pods()).items():
            try:
                if pod["metadata"].get("deletionTimestamp"):
                    await self.cluster.delete(PODS, name, Deletion(grace_s=0))
                elif pod["spec"].get("nodeName") and pod["status"]["phase"] == "Pending":
                    await self.phase(name, "Running")
            except NotFoundError:
                continue

    async def keep_tending(self) -> None:
        while True:
            await self.tend()
            await self.cluster.pass_time(0.3)


@asynccontextmanager
async def bare_volcano(folder: Path, seed: int = 1) -> AsyncIterator[VolcanoScene]:
    """Without anybody who looks after the objects."""
    async with small_cluster(folder, seed=seed) as cluster:
        for definition in definitions():
            if definition["spec"]["group"] in _GROUPS:
                await cluster.create(DEFINITIONS, definition)
        await established(cluster)
        yield VolcanoScene(cluster)


@asynccontextmanager
async def volcano_scene(
    folder: Path, *, gpus: int = 8, cpu: str = "64", memory: str = "32Gi"
) -> AsyncIterator[VolcanoScene]:
    """One node, everybody at work, pods run as soon as they are bound."""
    async with bare_volcano(folder) as scene:
        scene.cluster.start(volcano)
        await add_node(scene.cluster, "n1", gpus=gpus, cpu=cpu, memory=memory)
        scene.start_scheduler()
        scene.cluster.tasks.append(asyncio.ensure_future(scene.keep_tending()))
        yield scene


# -- jobs ------------------------------------------------------------------------------------------------------------


def task(name: str = "worker", replicas: int = 1, *, gpus: int = 0, **more: Any) -> Obj:
    limits = {"nvidia.com/gpu": str(gpus)} if gpus else {}
    spec = {
        "restartPolicy": "Never",
        "containers": [{"name": "main", "image": "pause", "resources": {"limits": limits}}],
    }
    return {
        "name": name,
        "replicas": replicas,
        "template": {"metadata": {"labels": {"app": "x"}}, "spec": spec},
        **more,
    }


async def submit(scene: VolcanoScene, *tasks: Obj, name: str = "train", **spec: Any) -> Obj:
    return await scene.cluster.create(
        VOLCANO_JOBS, {"metadata": {"name": name}, "spec": {"tasks": list(tasks), **spec}}
    )


async def phases(scene: VolcanoScene, name: str = "train") -> list[str]:
    return [one["status"] for one in (await scene.status(VOLCANO_JOBS, name))["conditions"]]


async def group_of(scene: VolcanoScene, made: Obj) -> Obj:
    return await scene.cluster.get(VOLCANO_POD_GROUPS, f"{made['metadata']['name']}-{made['metadata']['uid']}")


async def running(scene: VolcanoScene, count: int) -> bool:
    found = [one for one in (await scene.pods()).values() if one["status"]["phase"] == "Running"]
    return len(found) == count
