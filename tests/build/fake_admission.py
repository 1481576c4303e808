"""A fake admission loop: writes admissions and evictions to Workloads when a test says so."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from build.foreign_kinds import established
from build.small_clusters import Make, SmallCluster, small_cluster
from shoal.client.context import Context, Controller
from shoal.client.ecosystem_kinds import KUEUE, RESOURCE_FLAVORS, WORKLOADS
from shoal.client.item import Obj
from shoal.client.kind import DEFINITIONS, Kind
from shoal.client.refusals import NotFoundError
from shoal.client.served import Served
from shoal.controllers.queued_jobs.controller import queued_jobs_controller
from shoal.controllers.queued_work.rules import JobRules
from shoal.embedded.apiserver.foreign.definitions import definitions
from shoal.embedded.controllers.jobs.controller import job_controller
from shoal.units.errors import ConflictError

QUEUE = {"kueue.x-k8s.io/queue-name": "team"}
FLAVOR = {"pool": "gold"}
TOLERATION = {"key": "gold", "operator": "Exists", "effect": "NoSchedule"}


def queued_jobs(rules: JobRules | None = None) -> Make:
    """The controller, with kinds looked up by itself."""

    def make(context: Context) -> Controller:
        served = Served(context, every_s=5.0)
        return _WithServed(queued_jobs_controller(context, served, lambda: rules or JobRules()), served)

    return make


class _WithServed:
    def __init__(self, controller: Controller, served: Served) -> None:
        self.name = controller.name
        self._controller = controller
        self._served = served

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._served.run())
            group.create_task(self._controller.run())


@asynccontextmanager
async def queue_cluster(
    folder: Path, rules: JobRules | None = None, makes: Iterable[Make] = (job_controller,), groups: Collection[str] = ()
) -> AsyncIterator[SmallCluster]:
    """`groups`: API groups of other projects beside Kueue's."""
    async with small_cluster(folder) as cluster:
        await furnish(cluster, {KUEUE, *groups})
        cluster.start(*makes, queued_jobs(rules))
        yield cluster


async def furnish(cluster: SmallCluster, groups: Collection[str] = (KUEUE,)) -> None:
    """Kinds of other projects, and one flavor."""
    await install(cluster, groups)
    spec = {"nodeLabels": FLAVOR, "tolerations": [TOLERATION]}
    await cluster.create(RESOURCE_FLAVORS, {"metadata": {"name": "gold"}, "spec": spec})


async def install(cluster: SmallCluster, groups: Collection[str]) -> None:
    for one in definitions():
        if one["spec"]["group"] in groups:
            await cluster.create(DEFINITIONS, one)
    await established(cluster)


class FakeAdmission:
    def __init__(self, cluster: SmallCluster) -> None:
        self.cluster = cluster

    async def only(self, within_s: float = 30.0) -> Obj:
        found: list[Obj] = []

        async def is_there() -> bool:
            found[:] = [one for one in await self.cluster.all(WORKLOADS) if "deletionTimestamp" not in one["metadata"]]
            return len(found) == 1

        await self.cluster.until(is_there, within_s)
        return found[0]

    async def admit(self, name: str, *, cluster_queue: str = "cq", counts: dict[str, int] | None = None) -> None:
        await self._grant(name, cluster_queue, counts or {}, admitted=True)

    async def _grant(self, name: str, cluster_queue: str, counts: dict[str, int], *, admitted: bool) -> None:
        def change(workload: Obj) -> Obj:
            sets = workload["spec"]["podSets"]
            counted = {one["name"]: counts.get(one["name"], one["count"]) for one in sets}
            assigned = [
                {"name": name, "flavors": {"cpu": "gold"}, "resourceUsage": {"cpu": str(count)}, "count": count}
                for name, count in counted.items()
            ]
            return self._said(
                workload,
                {"admission": {"clusterQueue": cluster_queue, "podSetAssignments": assigned}},
                ("QuotaReserved", "True", "QuotaReserved", f"Quota reserved in ClusterQueue {cluster_queue}"),
                *((("Admitted", "True", "Admitted", "The workload is admitted"),) if admitted else ()),
                ("Evicted", "False", "QuotaReserved", "Previously evicted"),
            )

        await self._write(name, change)

    async def reserve(self, name: str, *, cluster_queue: str = "cq") -> None:
        """Quota alone: a check is open."""
        await self._grant(name, cluster_queue, {}, admitted=False)

    async def evict(self, name: str, reason: str = "Preempted", message: str = "Preempted to accommodate x") -> None:
        await self._write(name, lambda one: self._said(one, {}, ("Evicted", "True", reason, message)))

    async def refuse(self, name: str, reason: str, message: str) -> None:
        await self._write(name, lambda one: self._said(one, {}, ("QuotaReserved", "False", reason, message)))

    async def withdraw(self, name: str) -> None:
        """Takes the admission away as if there had been none: nobody asks the job to stop first."""
        none = (("QuotaReserved", "False", "PendingEvaluation", "gone"), ("Admitted", "False", "NoReservation", "gone"))
        await self._write(name, lambda one: self._said(one, {"admission": None}, *none))

    async def _write(self, name: str, change: Any) -> None:
        while True:
            workload = await self.cluster.get(WORKLOADS, name)
            body = change(workload)
            body["metadata"] = {"resourceVersion": workload["metadata"]["resourceVersion"]}
            try:
                await self.cluster.patch(WORKLOADS, name, body, "status")
            except ConflictError:
                continue
            return

    def _said(self, workload: Obj, status: Obj, *said: tuple[str, str, str, str]) -> Obj:
        each = {one["type"]: one for one in (workload.get("status") or {}).get("conditions") or ()}
        for kind, state, reason, message in said:
            if kind == "Evicted" and state == "False" and kind not in each:
                continue
            each[kind] = {
                "type": kind,
                "status": state,
                "reason": reason,
                "message": message,
                "lastTransitionTime": self.cluster.clock.text(),
            }
        return {"status": {**status, "conditions": list(each.values())}}

    async def until(self, name: str, kind: str, status: str, within_s: float = 30.0) -> Obj:
        """Its condition of that type, once it is so."""
        found: Obj = {}

        async def is_so() -> bool:
            try:
                found.update(condition(await self.cluster.get(WORKLOADS, name), kind))
            except NotFoundError:
                return False
            return bool(found.get("status") == status)

        await self.cluster.until(is_so, within_s)
        return found


def condition(workload: Obj, kind: str) -> Obj:
    each = (workload.get("status") or {}).get("conditions") or ()
    return next((one for one in each if one["type"] == kind), {})


async def reasons(cluster: SmallCluster, name: str) -> list[str]:
    """Of the events about objects of that name, in order."""
    return [one["reason"] for one in await cluster.events(name)]


async def said(cluster: SmallCluster, name: str, reason: str) -> str:
    """The message of the one event of that reason about it."""
    (event,) = [one for one in await cluster.events(name) if one["reason"] == reason]
    assert event.get("count", 1) == 1, event
    return str(event["message"])


async def until_field(cluster: SmallCluster, kind: Kind, name: str, way: tuple[str, ...], wanted: Any) -> Obj:
    found: Obj = {}

    async def is_so() -> bool:
        found.clear()
        found.update(await cluster.get(kind, name))
        here: Any = found
        for step in way:
            here = (here or {}).get(step)
        return bool(here == wanted)

    await cluster.until(is_so)
    return found
