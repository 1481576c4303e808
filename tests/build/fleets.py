"""Simulated machines and fleets for tests: a fleet beside a small cluster, and pods bound to its nodes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from build.small_clusters import SmallCluster, small_cluster
from shoal.client.item import Item, Obj
from shoal.client.kind import PODS
from shoal.client.kubelet.pod_facts import PartialPod, summary_of
from shoal.client.port import Api
from shoal.devices.gpu_slot import GpuSlot
from shoal.embedded.kubelets.fleet import Fleet
from shoal.embedded.kubelets.settings import FleetSettings
from shoal.embedded.machines.machine import Machine

_HAS = {"cpu": "96", "memory": "1Ti", "ephemeral-storage": "1Ti", "pods": "110"}


def machine(name: str = "node-0", *, gpus: int = 0, **more: Any) -> Machine:
    seats = tuple(
        GpuSlot(
            index,
            f"GPU-{name}-{index}",
            "H100-SXM5-80GB",
            "NVIDIA-H100-80GB-HBM3",
            81559,
            index // 4,
            0,
            f"00000000:{0x53 + index:02X}:00.0",
            compute_capability="9.0",
            is_mig_capable=True,
        )
        for index in range(gpus)
    )
    has = _HAS | more.pop("has", {})
    return Machine(name, "test", more.pop("labels", {}), has, has, seats, **more)


def pod(name: str = "pod", node: str = "node-0", *, gpus: int = 0, **more: Any) -> Obj:
    """Bound to the node; keywords are annotations (`run_for="5s"`), `owner` a kind, or fields of the spec."""
    annotations = {f"shoal.dev/{key.replace('_', '-')}": str(more.pop(key)) for key in tuple(more) if key in _SAID}
    owner = more.pop("owner", "")
    container: Obj = {"name": "main", "image": "nginx"}
    if gpus:
        container["resources"] = {"limits": {"nvidia.com/gpu": str(gpus)}}
    meta: Obj = {"name": name, "namespace": "default", "annotations": annotations}
    if owner:
        reference = {"apiVersion": "batch/v1", "kind": owner, "name": "owner", "uid": "u-1", "controller": True}
        meta["ownerReferences"] = [reference]
    return {"metadata": meta, "spec": {"nodeName": node, "containers": [container], **more}}


_SAID = (
    "run_for",
    "exit_code",
    "start_delay",
    "stop_after",
    "ready_after",
    "unready_after",
    "unhealthy_after",
    "log",
    "gpu_memory",
)


class FleetRun:
    """A fleet that can be killed and started again."""

    def __init__(
        self,
        cluster: SmallCluster,
        machines: tuple[Machine, ...],
        settings: FleetSettings,
        api: Api | None = None,
        summary_of: Callable[[Item], PartialPod] = summary_of,
    ) -> None:
        self.cluster = cluster
        self._api = api
        self._machines = machines
        self._settings = settings
        self._summary_of = summary_of
        self.start()

    def start(self) -> None:
        context = self.cluster.context("kubelets", self._api)
        self.fleet = Fleet(context, self._machines, self._settings, self._summary_of)
        self._tasks = [asyncio.ensure_future(self.fleet.run()), asyncio.ensure_future(context.events.run())]

    async def kill(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def until_phase(self, name: str, phase: str, within_s: float = 60.0) -> Obj:
        found: Obj = {}

        async def is_so() -> bool:
            nonlocal found
            found = await self.cluster.get(PODS, name)
            return bool(found["status"]["phase"] == phase)

        await self.cluster.until(is_so, within_s)
        return found

    async def until_gone(self, name: str, within_s: float = 60.0) -> None:
        async def is_so() -> bool:
            return all(one["metadata"]["name"] != name for one in await self.cluster.pods())

        await self.cluster.until(is_so, within_s)


@asynccontextmanager
async def fleet_cluster(
    folder: Path,
    *machines: Machine,
    seed: int = 1,
    settings: FleetSettings | None = None,
    through: Callable[[SmallCluster], Api] | None = None,
    summary_of: Callable[[Item], PartialPod] = summary_of,
) -> AsyncIterator[FleetRun]:
    """`through` makes the port by which the fleet reaches the cluster."""
    async with small_cluster(folder, seed=seed) as cluster:
        api = through and through(cluster)
        run = FleetRun(cluster, machines or (machine(),), settings or FleetSettings(), api, summary_of)
        try:
            yield run
            broken = [task.exception() for task in run._tasks if task.done() and not task.cancelled()]
            assert not broken, broken
        finally:
            await run.kill()


def statuses(pod_: Mapping[str, Any]) -> dict[str, Obj]:
    """The pod's container statuses by name."""
    said = (*pod_["status"].get("initContainerStatuses", ()), *pod_["status"].get("containerStatuses", ()))
    return {one["name"]: one for one in said}
