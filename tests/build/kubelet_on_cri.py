"""The kubelet of this machine with a small cluster in memory, and containers by a fake runtime."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from build.fake_cri import FakeCri
from build.small_clusters import SmallCluster, small_cluster
from shoal.agent.kubelet.cri.calls import Deadlines, RuntimeCalls
from shoal.agent.kubelet.cri.gpu_access import CdiFolder, GpuAccess
from shoal.agent.kubelet.cri.images import Images
from shoal.agent.kubelet.cri.launcher import ContainerLauncher
from shoal.agent.kubelet.cri.pod_cgroups import PodCgroups
from shoal.agent.kubelet.cri.runtime import CriRuntime, Owner
from shoal.agent.kubelet.gpus import NodeGpus
from shoal.agent.kubelet.kubelet import Kubelet
from shoal.agent.kubelet.machine import ThisMachine
from shoal.agent.kubelet.mounts import unmount_below
from shoal.agent.kubelet.node import NodeDescription, NodeOfThisMachine
from shoal.agent.kubelet.pod_on_node import NodeParts
from shoal.agent.kubelet.pod_store import PodStore
from shoal.client.kind import PODS

Obj = dict[str, Any]
NODE, ADDRESS = "machine", "10.0.0.7"
_SPEED = 50.0
"""The kubelet's delays pass so much faster."""
_QUICK = Deadlines(0.2, 0.2, 0.2)
WITH_LONG_COMMANDS = Deadlines(0.2, 0.2, 60.0)


class KubeletOnCri:
    def __init__(self, cluster: SmallCluster, cri: FakeCri, folder: Path, deadlines: Deadlines = _QUICK) -> None:
        self.cluster, self.cri, self.folder = cluster, cri, folder
        context = cluster.context("kubelet")
        pods = folder / "pods"
        self.calls = RuntimeCalls(cri.socket, deadlines)
        (folder / "cgroup").mkdir(exist_ok=True)
        (folder / "cgroup" / "cgroup.controllers").touch()
        groups = PodCgroups(100, folder / "cgroup")
        self.runtime = CriRuntime(self.calls, Owner("o", pods), context.clock, "fake", groups)
        gpus = NodeGpus(None)
        launcher = ContainerLauncher(
            self.runtime, Images(self.calls, context.clock), GpuAccess(lambda: None, gpus, CdiFolder())
        )
        described = NodeDescription(ThisMachine(NODE, 4, 8 << 30, 100 << 30, ADDRESS), "process", "fake://1.0")

        def describe() -> NodeDescription:
            return msgspec.structs.replace(described, containers_problem=self.runtime.ends.problem)

        self.node = NodeOfThisMachine(context.api, context.clock, describe)
        self.runtime.ends.on_change = self.node.wake
        parts = NodeParts(
            context.api,
            context.clock,
            lambda _: launcher,
            gpus,
            PodStore(pods),
            context.events,
            NODE,
            ADDRESS,
            described.allocatable,
            lambda uid: self.kubelet.report(uid),
        )
        self.kubelet = Kubelet(context, parts, self.node, lambda _: None)
        self._tasks = [asyncio.ensure_future(self.kubelet.run()), asyncio.ensure_future(context.events.run())]

    async def kill(self) -> None:
        """As the death of the process: what runs goes on."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.runtime.close()

    async def create(self, name: str, *command: str, container: Obj | None = None, **spec: Any) -> str:
        """The uid of a pod on this node."""
        main = {"name": "main", "image": "app:1", "command": [*command], **(container or {})}
        return await self.create_all(name, [main], **spec)

    async def create_all(self, name: str, containers: list[Obj], **spec: Any) -> str:
        pod = {"metadata": {"name": name}, "spec": {"nodeName": NODE, "containers": containers, **spec}}
        return str((await self.cluster.create(PODS, pod))["metadata"]["uid"])

    async def state(self, name: str) -> Obj:
        """Of the first container: `{"running": {...}}`."""
        pod = await self.cluster.get(PODS, name)
        statuses = pod.get("status", {}).get("containerStatuses") or [{}]
        return dict(statuses[0].get("state") or {})

    async def until(self, look: Any) -> None:
        await self.cluster.until(look, within_s=60 * _SPEED)

    async def until_ready(self, name: str) -> None:
        async def is_ready() -> bool:
            pod = await self.cluster.get(PODS, name)
            return any(one.get("ready") for one in pod.get("status", {}).get("containerStatuses") or ())

        await self.until(is_ready)

    async def until_waiting(self, name: str, reason: str, words: str) -> None:
        """`words`: a part of the message."""

        async def is_waiting() -> bool:
            waiting = (await self.state(name)).get("waiting") or {}
            return bool(waiting.get("reason") == reason and words in waiting.get("message", ""))

        await self.until(is_waiting)

    async def until_gone(self, name: str) -> None:
        async def is_gone() -> bool:
            return all(pod["metadata"]["name"] != name for pod in await self.cluster.pods())

        await self.until(is_gone)


@asynccontextmanager
async def kubelet_on_cri(folder: Path, deadlines: Deadlines = _QUICK) -> AsyncIterator[KubeletOnCri]:
    cri = FakeCri(folder / "cri.sock")
    try:
        async with small_cluster(folder, speed=_SPEED) as cluster:
            made = KubeletOnCri(cluster, cri, folder, deadlines)
            try:
                yield made
            finally:
                await made.kill()
    finally:
        cri.stop()
        unmount_below(folder)
