"""Jobs that change their size while they run: one Workload after another, each in the place of the one before.

A job that shrinks has its Workload made smaller. One that grows gets another Workload of its whole size, which says
whose place it takes; the job goes on under the one that is admitted, and its new pods are held until the other one is.
Then the older one is finished.

Promises: of several Workloads the newest that is admitted counts, and whoever comes after a crash finds it so; a job is
never stopped for having grown.

Rejected: finishing the older one before the newer is admitted, as Kueue does it. Between the two nobody holds quota for
pods that run.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from shoal.controllers.queued_jobs.finding import delete, release
from shoal.controllers.queued_jobs.matching import ask_alike
from shoal.controllers.queued_jobs.office import Office
from shoal.controllers.queued_jobs.standing import finished, left
from shoal.controllers.queued_jobs.switching import Switch
from shoal.controllers.queued_jobs.workloads import Workload, owned, owner_value
from shoal.controllers.queued_work.fields import string_map
from shoal.controllers.queued_work.kueue_names import JOB_UID
from shoal.store.live.item import Obj
from shoal.store.queues.job_parts import PodPart

_OUT_OF_SYNC = "The workload slice is out of sync with its parent job"
REPLACED = "WorkloadSliceReplaced"


class Slices:
    """Of one job. `is_busy` after it: something was written, and its news brings the job back."""

    def __init__(self, office: Office, job: Obj, parts: tuple[PodPart, ...], switch: Switch) -> None:
        self._office = office
        self._job = job
        self._parts = parts
        self._switch = switch
        self.is_busy = False
        self.lacks_next = False
        """The job has grown, and nothing asks for that yet."""

    async def settle(self, *, is_over: bool) -> Workload | None:
        """The Workload that it runs by. None where it has one at most: that is looked after like any job's."""
        mine = self._mine()
        for one in mine:
            if one.is_replaced and await release(self._office, one):
                self.is_busy = True
                return None
        if is_over:
            return next((one for one in mine if not one.is_finished or one.is_held), next(iter(mine), None))
        there = _in_turn(one for one in mine if not one.is_finished)
        current = next((one for one in reversed(there) if one.is_admitted), None)
        if current is None:
            return await self._none_admitted(there)
        older, newer = there[: there.index(current)], there[there.index(current) + 1 :]
        if older:
            await self._finish(older[0], REPLACED, _replaced(current))
            return None
        if current.is_evicted or current.is_deleting:
            return current
        if await self._let_go(newer):
            return None
        if self._switch.is_suspended or not ask_alike(list(current.pod_sets.values()), self._parts):
            await self._drop(newer)
            return None
        return await self._resize(current, newer)

    def _mine(self) -> list[Workload]:
        meta, kind = self._job["metadata"], self._office.kind
        items = self._office.of_owner[owner_value(kind.group, kind.name, (meta["namespace"], meta["name"]))]
        return [Workload(one) for one in items if (owner := owned(one).controller) and owner.uid == meta["uid"]]

    async def _none_admitted(self, there: list[Workload]) -> Workload | None:
        if len(there) < 2:
            return None
        leaving = next((one for one in there if one.is_evicted and one.has_quota), None)
        if leaving is None:
            await self._finish(there[0], "OutOfSync", _OUT_OF_SYNC)
        return leaving

    async def _resize(self, current: Workload, newer: list[Workload]) -> Workload | None:
        wanted = {part.name: part.count for part in self._parts}
        given = {name: int(one.get("count", 1)) for name, one in current.pod_sets.items()}
        if all(wanted[name] <= count for name, count in given.items()):
            await self._drop(newer)
            if not self.is_busy and wanted != given:
                await self._count(current)
        elif not newer:
            self.lacks_next = True
        else:
            await self._drop(newer[:-1])
            asked = {name: int(one.get("count", 1)) for name, one in newer[-1].pod_sets.items()}
            if not self.is_busy and asked != wanted and not newer[-1].has_quota:
                await self._count(newer[-1])
        return None if self.is_busy else current

    # -- writes -----------------------------------------------------------------------------------------------------

    async def _let_go(self, newer: list[Workload]) -> bool:
        """Whether one had to leave again before the job ran by it: no pod of it runs."""
        await self._drop([one for one in newer if one.is_deleting])
        leaving = next((one for one in newer if one.is_evicted and one.has_quota), None)
        if leaving is not None and not self.is_busy:
            self.is_busy = True
            await self._office.write_workload_status(leaving.obj, left(leaving, self._office.context.clock))
        return self.is_busy

    async def _count(self, workload: Workload) -> None:
        self.is_busy = True
        counts = {part.name: part.count for part in self._parts}
        pod_sets = [{**one, "count": counts[name]} for name, one in workload.pod_sets.items()]
        await self._office.write_workload(workload.obj, {"spec": {"podSets": pod_sets}})
        self._office.say(self._job, "UpdatedWorkload", f"Updated Workload size: {workload.key}")

    async def _drop(self, workloads: Sequence[Workload]) -> None:
        """Nobody wants them any more."""
        for one in workloads:
            self.is_busy = True
            await release(self._office, one)
            if not one.is_deleting:
                await delete(self._office, one)
                self._office.say(self._job, "DeletedWorkload", f"Deleted not matching Workload: {one.key}")

    async def _finish(self, workload: Workload, reason: str, message: str) -> None:
        self.is_busy = True
        office = self._office
        await office.write_workload_status(workload.obj, finished(workload, office.context.clock, reason, message))
        if reason == REPLACED:
            about = {**workload.obj, "kind": "Workload", "apiVersion": office.workload_kind.api_version}
            office.say(about, REPLACED, message)


def _replaced(by: Workload) -> str:
    uids = f"(UID: {by.item.uid}, JobUID: {string_map(by.obj['metadata'], 'labels').get(JOB_UID, '')})"
    return f"Replaced to accommodate a workload {uids} due to workload slice aggregation"


def _in_turn(workloads: Iterable[Workload]) -> list[Workload]:
    """The oldest first; several may be of one second."""
    there = {one.key: one for one in workloads}
    return sorted(
        there.values(), key=lambda one: (_depth(one, there), str(one.obj["metadata"].get("creationTimestamp")))
    )


def _depth(workload: Workload, there: dict[str, Workload]) -> int:
    """How many of those that are there it follows."""
    found, seen = 0, {workload.key}
    while (before := there.get(workload.replaces)) is not None and before.key not in seen:
        seen.add(before.key)
        workload, found = before, found + 1
    return found
