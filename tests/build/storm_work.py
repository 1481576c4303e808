"""Work that arrives at Shoal's queues and beside them, and what must have become of it.

Everything that arrives could run if it were alone, and ends by itself after a while; some of it only after hours, and
is ended by `settle`. So in the end nothing may be left that waits.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Sequence

from build.small_clusters import SmallCluster
from build.storm_ground import CARD, GPU, GROUP, LIGHT_GROUP, MIG, QUEUE, QUEUES, RANK, TOTAL
from shoal.client.ecosystem_kinds import LIGHT_POD_GROUPS, WORKLOADS
from shoal.client.item import Obj
from shoal.client.kind import JOBS, PODS
from shoal.client.port import Deletion
from shoal.client.refusals import NotFoundError

_LONG = "9h"
RUNS = ("5s", "20s", "60s", "3m", _LONG)


class StormWork:
    def __init__(
        self, cluster: SmallCluster, draw: random.Random, runs: Sequence[str] = RUNS, *, is_wide: bool = False
    ) -> None:
        """`is_wide`: also what most storms go without."""
        self._is_wide = is_wide
        self.jobs: set[str] = set()
        """That nobody has deleted: they must complete."""
        self.sets: dict[str, list[str]] = {}
        """Pods that came without a job, by the name they have in common."""
        self._groups: list[str] = []
        """Of pods whose Workload nobody but a person takes away."""
        self._cluster = cluster
        self._draw = draw
        self._runs = runs
        self._count = 0

    # -- arriving -----------------------------------------------------------------------------------------------------

    async def arrive(self) -> None:
        makes = [self._queued_job, self._queued_job, self._queued_job, self._queued_pod, self._queued_group]
        if self._is_wide:
            makes += [self._claiming, self._claiming]
        await self.arrive_as([*makes, self._gang_job, self._light_gang, self._single, self._plain_job])

    async def arrive_as(self, makes: Sequence[Callable[[str], Awaitable[None]]]) -> None:
        self._count += 1
        await self._draw.choice(makes)(f"{self._draw.choice('abcd')}{self._count}")

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
        said = {"shoal.dev/run-for": draw.choice(self._runs), **(notes or {})}
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

    async def _claiming(self, name: str) -> None:
        """One or two pods, a gang if it is two, each with a card of its own that is made out to it by a claim."""
        count, draw = self._draw.randint(1, 2), self._draw
        one = self._pod({LIGHT_GROUP: name} if count > 1 else {}, rank=draw.choice(["", "high"]))
        one["spec"]["resourceClaims"] = [{"name": "mine", "resourceClaimTemplateName": CARD}]
        one["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1"}, "claims": [{"name": "mine"}]}
        if count > 1:
            await self._cluster.create(LIGHT_POD_GROUPS, {"metadata": {"name": name}, "spec": {"minMember": count}})
        await self._some(name, count, one)

    # -- the end ------------------------------------------------------------------------------------------------------

    async def tend(self) -> None:
        """What somebody has to do who is not there."""

    def forget(self) -> None:
        """Nothing of it is there any more."""
        self.jobs.clear()
        self.sets.clear()
        self._groups.clear()

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
                await self.delete_set(name)
        for name in self._groups:
            if name not in self.sets:
                await self._delete_workload(name)

    async def delete_set(self, name: str) -> None:
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
