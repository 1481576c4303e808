"""Queued jobs under faults: their controller crashes at every write and at any step, with conflicts and lost answers.

What must hold at any time: a job has one Workload at most, and one that is neither admitted nor was does not run. What
must hold in the end: admitted ones run as their flavor says, all others are suspended and as their owner wrote them.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

import pytest

from build.crashes import crash_often
from build.depth import seeds
from build.fake_admission import FLAVOR, QUEUE, FakeAdmission, condition, furnish, queued_jobs, reasons
from build.job_hands import Hand, job
from build.job_kind_cases import JOB_KIND_CASES, JobKindCase
from build.small_clusters import SmallCluster, small_cluster
from build.stormy_api import StormyApi
from build.virtual_time import virtual
from shoal.client.context import Context
from shoal.client.ecosystem_kinds import JOB_SETS, KUEUE, PYTORCH_JOBS, WORKLOADS
from shoal.client.informers import Informers
from shoal.client.item import Item, Listed, Obj
from shoal.client.kind import JOBS, Kind
from shoal.client.port import EVERYTHING, GENTLY, Api, Batches, Deletion, Patch, Select, ServedKind
from shoal.client.recorder import Recorder
from shoal.client.refusals import NotFoundError
from shoal.client.write_through import WriteThroughApi
from shoal.controllers.queued_jobs.job_kinds import BY_KIND
from shoal.embedded.controllers.jobs.controller import job_controller
from shoal.store.queues.job_parts import dig

T = TypeVar("T")
_MOST_WRITES = 60


# -- death at every write ---------------------------------------------------------------------------------------------


class DeadlyApi:
    """Kills its process at one of its writes: before it is done, or after it is done and before it is answered."""

    def __init__(self, api: Api, at: int, *, is_after: bool) -> None:
        self.writes = 0
        self.tasks: list[asyncio.Task[Any]] = []
        self._api = api
        self._at = at
        self._is_after = is_after

    async def _write(self, call: Awaitable[T]) -> T:
        self.writes += 1
        if self.writes != self._at:
            return await call
        if self._is_after:
            await call
        else:
            getattr(call, "close", int)()
        for task in self.tasks:
            task.cancel()
        await asyncio.Event().wait()
        raise AssertionError("it lives on")

    async def get(self, kind: Kind, namespace: str, name: str) -> Item:
        return await self._api.get(kind, namespace, name)

    async def list(self, kind: Kind, namespace: str = "", select: Select = EVERYTHING) -> Listed:
        return await self._api.list(kind, namespace, select)

    def watch(self, kind: Kind, since: int, namespace: str = "", select: Select = EVERYTHING) -> Batches:
        return self._api.watch(kind, since, namespace, select)

    async def create(self, kind: Kind, obj: Obj) -> Item:
        return await self._write(self._api.create(kind, obj))

    async def update(self, kind: Kind, obj: Obj, subresource: str = "") -> Item:
        return await self._write(self._api.update(kind, obj, subresource))

    async def patch(self, kind: Kind, namespace: str, name: str, patch: Patch, subresource: str = "") -> Item:
        return await self._write(self._api.patch(kind, namespace, name, patch, subresource))

    async def delete(self, kind: Kind, namespace: str, name: str, how: Deletion = GENTLY) -> Item | None:
        return await self._write(self._api.delete(kind, namespace, name, how))

    async def post(self, kind: Kind, namespace: str, name: str, subresource: str, obj: Obj) -> Obj:
        return await self._write(self._api.post(kind, namespace, name, subresource, obj))

    async def served(self) -> tuple[ServedKind, ...]:
        return await self._api.served()

    async def close(self) -> None:
        return


class Process:
    """The controller with caches of its own, which can die."""

    def __init__(self, cluster: SmallCluster, api: Api) -> None:
        informers = Informers(api, cluster.clock, cluster.draw)
        recorder = Recorder(cluster.api, cluster.clock, "test")
        context = Context("test", WriteThroughApi(api, informers), informers, cluster.clock, cluster.draw, recorder)
        self.tasks = [asyncio.ensure_future(informers.run()), asyncio.ensure_future(queued_jobs()(context).run())]

    async def end(self) -> None:
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)


Explanation = Callable[[SmallCluster, FakeAdmission, Obj, Kind, Obj], Coroutine[Any, Any, None]]


async def _story(cluster: SmallCluster, admission: FakeAdmission, made: Obj, kind: Kind, status: Obj) -> None:
    """Waits, is admitted, evicted, admitted again; returns when all of that has come true."""
    name = made["metadata"]["name"]
    before = await cluster.create(kind, made)
    workload = await _workload_of(cluster, before)
    for _ in range(2):
        await admission.admit(workload)
        await _until_suspended(cluster, kind, name, is_so=False)
        if status:
            await cluster.patch(kind, name, {"status": status}, "status")
        await admission.evict(workload)
        await admission.until(workload, "QuotaReserved", "False")
        assert (await cluster.get(kind, name))["spec"] == before["spec"]
    await admission.admit(workload)
    await _until_suspended(cluster, kind, name, is_so=False)
    each = [one for one in await cluster.all(WORKLOADS) if _owner(one) == before["metadata"]["uid"]]
    assert len(each) == 1


async def _elastic_story(cluster: SmallCluster, admission: FakeAdmission, made: Obj, kind: Kind, _status: Obj) -> None:
    """Waits, is admitted, grows, is admitted again, shrinks, and is never stopped."""
    name = made["metadata"]["name"]
    made["spec"]["completions"] = 9
    made["metadata"]["annotations"] = {"kueue.x-k8s.io/elastic-job": "true"}
    before = await cluster.create(kind, made)
    first = await _workload_of(cluster, before)
    await admission.admit(first)
    await _until_suspended(cluster, kind, name, is_so=False)

    async def sizes() -> dict[str, int]:
        return {
            one["metadata"]["name"]: one["spec"]["podSets"][0]["count"]
            for one in await cluster.all(WORKLOADS)
            if _owner(one) == before["metadata"]["uid"] and condition(one, "Finished").get("status") != "True"
        }

    await cluster.patch(kind, name, {"spec": {"parallelism": 5}})
    await cluster.until(lambda: _are_so(sizes(), [3, 5]))
    (second,) = (await sizes()).keys() - {first}
    await admission.admit(second)
    await admission.until(first, "Finished", "True")
    assert condition(await cluster.get(WORKLOADS, first), "Finished")["reason"] == "WorkloadSliceReplaced"
    await cluster.patch(kind, name, {"spec": {"parallelism": 1}})
    await cluster.until(lambda: _are_so(sizes(), [1]))
    assert "Stopped" not in await reasons(cluster, name)


async def _are_so(sizes: Awaitable[dict[str, int]], wanted: list[int]) -> bool:
    return sorted((await sizes).values()) == wanted


async def _workload_of(cluster: SmallCluster, made: Obj) -> str:
    found: list[str] = []

    async def is_there() -> bool:
        found[:] = [
            one["metadata"]["name"] for one in await cluster.all(WORKLOADS) if _owner(one) == made["metadata"]["uid"]
        ]
        return len(found) == 1

    await cluster.until(is_there)
    return found[0]


def _owner(workload: Obj) -> str:
    return str(next((one["uid"] for one in workload["metadata"].get("ownerReferences") or ()), ""))


async def _until_suspended(cluster: SmallCluster, kind: Kind, name: str, *, is_so: bool) -> None:
    way = BY_KIND[kind.group, kind.name].shape.suspend

    async def holds() -> bool:
        return (dig(await cluster.get(kind, name), way) is True) == is_so

    await cluster.until(holds)


def _queued_job(name: str) -> Obj:
    made = job(name, suspend=True, parallelism=3, completions=3)
    made["metadata"]["labels"] = dict(QUEUE)
    made["metadata"]["annotations"] = {"kueue.x-k8s.io/job-min-parallelism": "2"}
    return made


@pytest.mark.parametrize("is_after", [False, True], ids=["undone", "unanswered"])
@pytest.mark.parametrize(
    ("kind", "told"),
    [(JOBS, _story), (JOB_SETS, _story), (PYTORCH_JOBS, _story), (JOBS, _elastic_story)],
    ids=lambda case: case.name if isinstance(case, Kind) else case.__name__,
)
def test_after_a_crash_at_any_write_the_next_process_finishes(
    tmp_path: Path, kind: Kind, told: Explanation, is_after: bool
) -> None:
    @virtual
    async def run() -> None:
        case = next((one for one in JOB_KIND_CASES if one.kind == kind), None)
        async with small_cluster(tmp_path, [job_controller]) as cluster:
            await furnish(cluster, {KUEUE, kind.group})
            for at in range(1, _MOST_WRITES):
                made = _queued_job(f"j{at}") if case is None else _made(case, f"j{at}")
                deadly = DeadlyApi(cluster.api, at, is_after=is_after)
                first = Process(cluster, deadly)
                deadly.tasks = first.tasks
                story = asyncio.ensure_future(told(cluster, FakeAdmission(cluster), made, kind, _idle(case)))
                while deadly.writes < at and not story.done():
                    await cluster.pass_time(0.05)
                if story.done():
                    await story
                    await first.end()
                    assert at > 5
                    return
                await first.end()
                successor = Process(cluster, cluster.api)
                await story
                await successor.end()
                await cluster.delete(kind, f"j{at}")
                for one in await cluster.all(WORKLOADS):
                    await _forget(cluster, one["metadata"]["name"])
            raise AssertionError("the story never ended")

    run()


def _made(case: JobKindCase, name: str) -> Obj:
    made = case.made()
    made["metadata"]["name"] = name
    return made


def _idle(case: JobKindCase | None) -> Obj:
    return {} if case is None else case.idle


async def _forget(cluster: SmallCluster, name: str) -> None:
    try:
        await cluster.patch(WORKLOADS, name, {"metadata": {"finalizers": None}})
        await cluster.delete(WORKLOADS, name)
    except NotFoundError:
        return


# -- death at any step, and bad weather -------------------------------------------------------------------------------


class Unrest:
    """A admission that admits and evicts by chance, and a hand that runs and ends pods."""

    def __init__(self, cluster: SmallCluster, draw: random.Random, jobs: int) -> None:
        self.cluster = cluster
        self.admission = FakeAdmission(cluster)
        self.hand = Hand(cluster)
        self.draw = draw
        self.names = [f"j{at}" for at in range(jobs)]
        self.before: dict[str, Obj] = {}

    async def create(self) -> None:
        for name in self.names:
            made = _queued_job(name)
            made["spec"]["suspend"] = self.draw.random() < 0.7
            made["spec"]["completions"] = 9
            self.before[name] = await self.cluster.create(JOBS, made)

    async def go_on(self, seconds: float) -> None:
        ends = self.cluster.clock.seconds() + seconds
        while self.cluster.clock.seconds() < ends:
            await self.step()
            await self.cluster.pass_time(self.draw.uniform(0.05, 1.5))

    async def step(self) -> None:
        for workload in await self.cluster.all(WORKLOADS):
            name = workload["metadata"]["name"]
            reserved = condition(workload, "QuotaReserved").get("status") == "True"
            evicted = condition(workload, "Evicted").get("status") == "True"
            chance = self.draw.random()
            try:
                if not reserved and chance < 0.3:
                    counts = {"main": self.draw.choice((2, 3))}
                    await self.admission.admit(name, counts=counts)
                elif reserved and not evicted and chance < 0.2:
                    await self.admission.evict(name, self.draw.choice(("Preempted", "PodsReadyTimeout")))
                elif reserved and not evicted and chance > 0.9:
                    await self.admission.withdraw(name)
                elif 0.86 < chance < 0.89:
                    await self.cluster.delete(WORKLOADS, name)
            except NotFoundError:
                continue
        await self.hand.bury()
        for pod in await self.hand.live():
            if self.draw.random() < 0.3:
                await self.hand.run(pod)

    async def check(self) -> None:
        """At any time."""
        owners = [_owner(one) for one in await self.cluster.all(WORKLOADS) if "finalizers" in one["metadata"]]
        assert len(owners) == len(set(owners)), "a job has two workloads"

    async def settle(self) -> None:
        """Nobody decides any more; what was begun is brought to its end."""

        async def is_settled() -> bool:
            await self.hand.bury()
            return not await self.faults()

        try:
            await self.cluster.until(is_settled, within_s=300)
        except AssertionError:
            assert not await self.faults()
        await self.check()

    async def faults(self) -> list[str]:
        workloads = {_owner(one): one for one in await self.cluster.all(WORKLOADS)}
        found = []
        for name, before in self.before.items():
            present = await self.cluster.get(JOBS, name)
            workload = workloads.get(before["metadata"]["uid"])
            if workload is None:
                found.append(f"{name}: its workload is lost")
            else:
                found += [f"{name}: {what}" for what in _faults(before, present, workload)]
        return found


def _faults(before: Obj, present: Obj, workload: Obj) -> list[str]:
    admitted = condition(workload, "Admitted").get("status") == "True"
    evicted = condition(workload, "Evicted").get("status") == "True"
    spec = present["spec"]
    found = []
    if admitted and evicted:
        found.append("evicted, and its quota is still held")
    elif admitted:
        count = workload["status"]["admission"]["podSetAssignments"][0]["count"]
        if spec.get("suspend"):
            found.append("admitted and suspended")
        if spec["template"]["spec"].get("nodeSelector") != FLAVOR or spec["parallelism"] != count:
            found.append(f"runs otherwise than admitted: {spec['parallelism']} instead of {count}")
    else:
        if not spec.get("suspend"):
            found.append("runs and is not admitted")
        if spec != {**before["spec"], "suspend": True}:
            found.append("is not as its owner wrote it")
        if "kueue.x-k8s.io/stopping" in (present["metadata"].get("annotations") or {}):
            found.append("is still being stopped")
    return found


@pytest.mark.parametrize("seed", seeds(3))
def test_repeated_crashes_at_any_step(tmp_path: Path, seed: int) -> None:
    @virtual
    async def run() -> None:
        draw = random.Random(seed)
        async with small_cluster(tmp_path, seed=seed) as cluster:
            await furnish(cluster)
            unrest = Unrest(cluster, draw, jobs=4)
            await unrest.create()
            going = asyncio.ensure_future(unrest.go_on(60))
            await crash_often(cluster, [job_controller, queued_jobs()], draw, 30, unrest.check)
            going.cancel()
            await asyncio.gather(going, return_exceptions=True)
            cluster.start(job_controller, queued_jobs())
            await unrest.settle()

    run()


@pytest.mark.parametrize("seed", [*seeds(2), 15, 34])
def test_conflicts_lost_answers_and_broken_watches_at_once(tmp_path: Path, seed: int) -> None:
    """15 and 34: a start whose answer was lost, and a Workload that was deleted before the cache knew of the start."""

    @virtual
    async def run() -> None:
        draw = random.Random(seed)
        async with small_cluster(tmp_path, seed=seed) as cluster:
            await furnish(cluster)
            storm = StormyApi(cluster.api, cluster.clock, draw)
            informers = Informers(storm, cluster.clock, draw)
            tasks = [asyncio.ensure_future(informers.run())]
            for make in (job_controller, queued_jobs()):
                recorder = Recorder(cluster.api, cluster.clock, "test")
                api = WriteThroughApi(storm, informers)
                context = Context("test", api, informers, cluster.clock, draw, recorder)
                tasks += [asyncio.ensure_future(make(context).run()), asyncio.ensure_future(recorder.run())]
            unrest = Unrest(cluster, draw, jobs=4)
            await unrest.create()
            await unrest.go_on(120)
            assert min(storm.happened.get(what, 0) for what in ("lost", "stale", "refused", "dropped")) > 0
            storm.calm()
            await unrest.settle()
            assert not [task.exception() for task in tasks if task.done()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    run()
