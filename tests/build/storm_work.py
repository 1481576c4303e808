"""Work that arrives at Shoal's queues and beside them, changes and leaves again; and what must have become of it.

Everything that arrives could run if it were alone, and ends by itself after a while; some of it only after hours, and
is ended by `settle`. So in the end nothing may be left that waits.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from build.small_clusters import SmallCluster
from shoal.store.live.ecosystem_kinds import (
    CLUSTER_QUEUES,
    LIGHT_POD_GROUPS,
    LOCAL_QUEUES,
    RESOURCE_FLAVORS,
    WORKLOAD_PRIORITY_CLASSES,
    WORKLOADS,
)
from shoal.store.live.item import Obj
from shoal.store.live.kind import JOBS, PODS, PRIORITY_CLASSES
from shoal.store.live.port import Deletion
from shoal.store.live.refusals import BusyError, NotFoundError, RefusedError
from shoal.units.errors import ConflictError

QUEUE, RANK = "kueue.x-k8s.io/queue-name", "kueue.x-k8s.io/priority-class"
GROUP, TOTAL = "kueue.x-k8s.io/pod-group-name", "kueue.x-k8s.io/pod-group-total-count"
LIGHT_GROUP = "scheduling.x-k8s.io/pod-group"
GPU, MIG = "nvidia.com/gpu", "nvidia.com/mig-1g.10gb"
NOMINAL = {"cpu": 12, GPU: 4, MIG: 4}
QUEUES = ("one", "two")
_LONG = "9h"
_RUNS = ("5s", "20s", "60s", "3m", _LONG)


async def furnish(cluster: SmallCluster) -> None:
    await cluster.create(RESOURCE_FLAVORS, {"metadata": {"name": "default"}, "spec": {}})
    for name in QUEUES:
        preemption = {"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority"}
        spec = {"cohortName": "all", "namespaceSelector": {}, "preemption": preemption, **_groups(NOMINAL)}
        await cluster.create(CLUSTER_QUEUES, {"metadata": {"name": name}, "spec": spec})
        await cluster.create(LOCAL_QUEUES, {"metadata": {"name": name}, "spec": {"clusterQueue": name}})
    for name, value in (("low", 1), ("high", 1000)):
        await cluster.create(WORKLOAD_PRIORITY_CLASSES, {"metadata": {"name": name}, "value": value})
        await cluster.create(PRIORITY_CLASSES, {"metadata": {"name": name}, "value": value})


def _groups(amounts: dict[str, int]) -> Obj:
    resources = [{"name": name, "nominalQuota": str(amount)} for name, amount in amounts.items()]
    return {
        "resourceGroups": [
            {"coveredResources": list(amounts), "flavors": [{"name": "default", "resources": resources}]}
        ]
    }


class StormWork:
    def __init__(self, cluster: SmallCluster, draw: random.Random) -> None:
        self.jobs: set[str] = set()
        """That nobody has deleted: they must complete."""
        self.sets: dict[str, list[str]] = {}
        """Pods that came without a job, by the name they have in common."""
        self._groups: list[str] = []
        """Of pods whose Workload nobody but a person takes away."""
        self._cluster = cluster
        self._draw = draw
        self._count = 0

    # -- arriving -----------------------------------------------------------------------------------------------------

    async def arrive(self) -> None:
        self._count += 1
        name = f"{self._draw.choice('abcd')}{self._count}"
        makes = [self._queued_job, self._queued_job, self._queued_job, self._queued_pod, self._queued_group]
        makes += [self._gang_job, self._light_gang, self._single, self._plain_job]
        await self._draw.choice(makes)(name)

    def _pod(self, labels: Obj | None = None, notes: Obj | None = None, *, rank: str = "") -> Obj:
        draw = self._draw
        asks: Obj = {"requests": {"cpu": "1"}}
        what, count = draw.choice([(GPU, 1), (GPU, 1), (GPU, 2), (MIG, 1), (MIG, 1), ("", 0)])
        if what:
            asks["limits"] = {what: str(count)}
        container = {"name": "main", "image": "trainer", "resources": asks}
        spec: Obj = {"schedulerName": "shoal", "containers": [container], "restartPolicy": "Never"}
        spec["terminationGracePeriodSeconds"] = draw.choice([0, 3, 30])
        if rank:
            spec["priorityClassName"] = rank
        said = {"shoal.dev/run-for": draw.choice(_RUNS), **(notes or {})}
        return {"metadata": {"labels": labels or {}, "annotations": said}, "spec": spec}

    def _labels(self) -> Obj:
        labels = {QUEUE: self._draw.choice(QUEUES)}
        return labels | {RANK: self._draw.choice(["low", "high"])} if self._draw.random() < 0.5 else labels

    async def _job(self, name: str, pod: Obj, labels: Obj, notes: Obj) -> None:
        count = self._draw.randint(1, 3)
        spec = {"parallelism": count, "completions": count, "backoffLimit": 100_000, "template": pod}
        if self._draw.random() < 0.5:
            spec["completionMode"] = "Indexed"
        await self._cluster.create(
            JOBS, {"metadata": {"name": name, "labels": labels, "annotations": notes}, "spec": spec}
        )
        self.jobs.add(name)

    async def _queued_job(self, name: str) -> None:
        await self._job(name, self._pod(), self._labels(), {})

    async def _gang_job(self, name: str) -> None:
        await self._job(name, self._pod(rank=self._draw.choice(["", "high"])), {}, {"shoal.dev/gang": "true"})

    async def _plain_job(self, name: str) -> None:
        await self._job(name, self._pod(rank=self._draw.choice(["", "low", "high"])), {}, {})

    async def _some(self, name: str, count: int, pod: Obj) -> None:
        self.sets[name] = [f"{name}-{at}" for at in range(count)]
        for each in self.sets[name]:
            meta = {**pod["metadata"], "name": each}
            await self._cluster.create(PODS, {"metadata": meta, "spec": pod["spec"]})

    async def _queued_pod(self, name: str) -> None:
        await self._some(name, 1, self._pod(self._labels()))

    async def _queued_group(self, name: str) -> None:
        count = self._draw.randint(2, 3)
        self._groups.append(name)
        await self._some(name, count, self._pod({**self._labels(), GROUP: name}, {TOTAL: str(count)}))

    async def _light_gang(self, name: str) -> None:
        count = self._draw.randint(2, 3)
        await self._cluster.create(LIGHT_POD_GROUPS, {"metadata": {"name": name}, "spec": {"minMember": count}})
        await self._some(name, count, self._pod({LIGHT_GROUP: name}, rank=self._draw.choice(["", "high"])))

    async def _single(self, name: str) -> None:
        await self._some(name, 1, self._pod(rank=self._draw.choice(["", "low", "high"])))

    # -- changing -----------------------------------------------------------------------------------------------------

    async def change(self) -> None:
        does: list[Callable[[], object]] = [self._quota, self._rerank, self._delete, self._end_a_pod, self._evict]
        does += [self._switch, self._stop_queue, self._drop_workload, self._move]
        try:
            answer = self._draw.choice(does)()
            if hasattr(answer, "__await__"):
                await answer
        except (NotFoundError, BusyError, RefusedError, ConflictError):
            # Gone before it could be changed, or not to be changed any more.
            return

    async def _quota(self) -> None:
        amounts = {name: self._draw.choice([amount // 2, amount, amount * 2]) for name, amount in NOMINAL.items()}
        await self._cluster.patch(CLUSTER_QUEUES, self._draw.choice(QUEUES), {"spec": _groups(amounts)})

    async def _stop_queue(self) -> None:
        policy = self._draw.choice(["None", "None", "Hold", "HoldAndDrain"])
        kind = self._draw.choice([CLUSTER_QUEUES, LOCAL_QUEUES])
        await self._cluster.patch(kind, self._draw.choice(QUEUES), {"spec": {"stopPolicy": policy}})

    async def _rerank(self) -> None:
        if self.jobs:
            labels = {RANK: self._draw.choice(["low", "high"])}
            await self._cluster.patch(JOBS, self._some_job(), {"metadata": {"labels": labels}})

    async def _move(self) -> None:
        """To the other queue: refused while it runs."""
        if self.jobs:
            name = self._some_job()
            if QUEUE in ((await self._cluster.get(JOBS, name))["metadata"].get("labels") or {}):
                labels = {QUEUE: self._draw.choice(QUEUES)}
                await self._cluster.patch(JOBS, name, {"metadata": {"labels": labels}})

    def _some_job(self) -> str:
        return self._draw.choice(sorted(self.jobs))

    async def _delete(self) -> None:
        if self.jobs and self._draw.random() < 0.7:
            name = self._some_job()
            self.jobs.discard(name)
            how = Deletion(policy=self._draw.choice(["Background", "Foreground"]))
            await self._cluster.delete(JOBS, name, how)
        elif self.sets:
            await self._delete_set(self._draw.choice(sorted(self.sets)))

    async def _delete_set(self, name: str) -> None:
        for pod in self.sets.pop(name):
            try:
                await self._cluster.delete(PODS, pod)
            except NotFoundError:
                continue

    async def _delete_workload(self, name: str) -> None:
        try:
            await self._cluster.delete(WORKLOADS, name)
        except NotFoundError:
            return

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

    # -- the end ------------------------------------------------------------------------------------------------------

    async def restore(self) -> None:
        """Queues are as they were, and nobody keeps a workload from running."""
        for name in QUEUES:
            await self._cluster.patch(CLUSTER_QUEUES, name, {"spec": {"stopPolicy": "None", **_groups(NOMINAL)}})
            await self._cluster.patch(LOCAL_QUEUES, name, {"spec": {"stopPolicy": "None"}})
        for one in await self._cluster.all(WORKLOADS):
            if one["spec"].get("active") is False:
                await self._cluster.patch(WORKLOADS, one["metadata"]["name"], {"spec": {"active": True}})

    async def settle(self) -> None:
        """What would run for hours is ended, and groups that have lost pods which nobody replaces."""
        for obj in await self._cluster.all(JOBS):
            name = obj["metadata"]["name"]
            if obj["spec"]["template"]["metadata"]["annotations"]["shoal.dev/run-for"] == _LONG and name in self.jobs:
                self.jobs.discard(name)
                await self._cluster.delete(JOBS, name, Deletion(policy="Background"))
        pods = {one["metadata"]["name"]: one for one in await self._cluster.pods()}
        for name, members in list(self.sets.items()):
            there = [pods[each] for each in members if each in pods]
            is_long = any(one["metadata"]["annotations"]["shoal.dev/run-for"] == _LONG for one in there)
            has_failed = any(one["status"].get("phase") == "Failed" for one in there)
            if is_long or has_failed or len(there) < len(members):
                await self._delete_set(name)
        for name in self._groups:
            if name not in self.sets:
                await self._delete_workload(name)
