"""What people do to work, queues and GPUs while a storm goes on, and how they leave them in the end."""

from __future__ import annotations

import random
from collections.abc import Callable

from build.small_clusters import SmallCluster
from build.storm_ground import GPU_FAULTS, NOMINAL, QUEUE, QUEUES, RANK, groups
from build.storm_work import StormWork
from shoal.client.ecosystem_kinds import CLUSTER_QUEUES, LOCAL_QUEUES, WORKLOADS
from shoal.client.kind import JOBS, NODES, PODS
from shoal.client.port import Deletion
from shoal.client.refusals import BusyError, NotFoundError, RefusedError
from shoal.units.errors import ConflictError


class StormChanges:
    def __init__(self, cluster: SmallCluster, draw: random.Random, work: StormWork, *, is_wide: bool = False) -> None:
        """`is_wide`: also what most storms go without."""
        self._cluster = cluster
        self._draw = draw
        self._work = work
        self._is_wide = is_wide

    async def change(self) -> None:
        does: list[Callable[[], object]] = [self._quota, self._rerank, self._delete, self._end_a_pod, self._evict]
        does += [self._switch, self._stop_queue, self._drop_workload, self._move]
        if self._is_wide:
            does += [self._limit, self._hurt_a_gpu, self._drain]
        try:
            answer = self._draw.choice(does)()
            if hasattr(answer, "__await__"):
                await answer
        except (NotFoundError, BusyError, RefusedError, ConflictError):
            # Gone before it could be changed, or not to be changed any more.
            return

    async def _quota(self) -> None:
        amounts = {name: self._draw.choice([amount // 2, amount, amount * 2]) for name, amount in NOMINAL.items()}
        await self._cluster.patch(CLUSTER_QUEUES, self._draw.choice(QUEUES), {"spec": groups(amounts)})

    async def _limit(self) -> None:
        limits = {self._draw.choice(["borrowingLimit", "lendingLimit"]): self._draw.choice(["0", "1", "2"])}
        spec = {"spec": groups(NOMINAL, **limits)}
        await self._cluster.patch(CLUSTER_QUEUES, self._draw.choice(QUEUES), spec)

    async def _hurt_a_gpu(self) -> None:
        notes = {GPU_FAULTS: self._draw.choice(['{"0": 79}', '{"0": 79, "1": 48}', None])}
        await self._cluster.patch(NODES, await self._some_node(), {"metadata": {"annotations": notes}})

    async def _drain(self) -> None:
        """As kubectl does it, once: budgets may refuse."""
        node = await self._some_node()
        await self._cluster.patch(NODES, node, {"spec": {"unschedulable": True}})
        for pod in await self._cluster.pods():
            if pod["spec"].get("nodeName") == node:
                name = pod["metadata"]["name"]
                await self._cluster.api.post(PODS, "default", name, "eviction", {"metadata": {}})

    async def _some_node(self) -> str:
        names: list[str] = sorted(one["metadata"]["name"] for one in await self._cluster.all(NODES))
        return self._draw.choice(names)

    async def _stop_queue(self) -> None:
        policy = self._draw.choice(["None", "None", "Hold", "HoldAndDrain"])
        kind = self._draw.choice([CLUSTER_QUEUES, LOCAL_QUEUES])
        await self._cluster.patch(kind, self._draw.choice(QUEUES), {"spec": {"stopPolicy": policy}})

    async def _rerank(self) -> None:
        if self._work.jobs:
            labels = {RANK: self._draw.choice(["low", "high"])}
            await self._cluster.patch(JOBS, self._some_job(), {"metadata": {"labels": labels}})

    async def _move(self) -> None:
        """To the other queue: refused while it runs."""
        if self._work.jobs:
            name = self._some_job()
            if QUEUE in ((await self._cluster.get(JOBS, name))["metadata"].get("labels") or {}):
                labels = {QUEUE: self._draw.choice(QUEUES)}
                await self._cluster.patch(JOBS, name, {"metadata": {"labels": labels}})

    def _some_job(self) -> str:
        return self._draw.choice(sorted(self._work.jobs))

    async def _delete(self) -> None:
        if self._work.jobs and self._draw.random() < 0.7:
            name = self._some_job()
            self._work.jobs.discard(name)
            how = Deletion(policy=self._draw.choice(["Background", "Foreground"]))
            await self._cluster.delete(JOBS, name, how)
        elif self._work.sets:
            await self._work.delete_set(self._draw.choice(sorted(self._work.sets)))

    async def _end_a_pod(self) -> None:
        if pods := await self._cluster.pods():
            name = self._draw.choice(pods)["metadata"]["name"]
            await self._cluster.delete(PODS, name, Deletion(grace_s=0) if self._draw.random() < 0.2 else Deletion())

    async def _evict(self) -> None:
        if pods := await self._cluster.pods():
            name = self._draw.choice(pods)["metadata"]["name"]
            await self._cluster.api.post(PODS, "default", name, "eviction", {"metadata": {}})

    async def _switch(self) -> None:
        if found := await self._cluster.all(WORKLOADS):
            name = self._draw.choice(found)["metadata"]["name"]
            is_active = self._draw.random() < 0.5
            await self._cluster.patch(WORKLOADS, name, {"spec": {"active": is_active}})

    async def _drop_workload(self) -> None:
        """Somebody deletes what stands for a job: it has to be made anew."""
        if found := await self._cluster.all(WORKLOADS):
            await self._cluster.delete(WORKLOADS, self._draw.choice(found)["metadata"]["name"])

    async def restore(self) -> None:
        """Queues and GPUs are as they were, and nobody keeps a workload from running."""
        for one in await self._cluster.all(NODES) if self._is_wide else ():
            whole = {"metadata": {"annotations": {GPU_FAULTS: None}}}
            await self._cluster.patch(NODES, one["metadata"]["name"], whole)
        for name in QUEUES:
            await self._cluster.patch(CLUSTER_QUEUES, name, {"spec": {"stopPolicy": "None", **groups(NOMINAL)}})
            await self._cluster.patch(LOCAL_QUEUES, name, {"spec": {"stopPolicy": "None"}})
        for one in await self._cluster.all(WORKLOADS):
            if one["spec"].get("active") is False:
                await self._cluster.patch(WORKLOADS, one["metadata"]["name"], {"spec": {"active": True}})
