"""Syncs one CronJob."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Literal

import msgspec

from shoal.client.context import Context
from shoal.client.item import Item
from shoal.client.kind import CRON_JOBS, JOBS
from shoal.client.port import Deletion
from shoal.client.refusals import AlreadyExistsError, NotFoundError
from shoal.embedded.controllers.cron_jobs.cron_job import (
    CronJob,
    Obj,
    OwnedJob,
    Status,
    job_name,
    new_job,
    reference,
    zone_of,
)
from shoal.embedded.controllers.cron_jobs.schedule_times import NeverTwiceError, find_schedule_time, next_wake_s
from shoal.units.errors import ConflictError, ShoalError
from shoal.units.schedules import Schedule, ScheduleError, read_schedule


class CronJobSync:
    def __init__(self, context: Context, item: Item, jobs: Sequence[Item]) -> None:
        self._context = context
        self._item = item
        self._cron_job = item.read(CronJob)
        self._status = self._cron_job.status
        self._jobs = [job.read(OwnedJob) for job in jobs]
        self._now = context.clock.now()

    async def go(self) -> float | None:
        await self._note_ended()
        await self._clear()
        await self._write()
        spec = self._cron_job.spec
        if self._cron_job.metadata.deletion_timestamp is not None:
            return None
        zone = zone_of(spec.time_zone)
        if zone is None:
            words = f'invalid timeZone: "{spec.time_zone}": unknown time zone {spec.time_zone}'
            self._event("UnknownTimeZone", words, "Warning")
            return None
        if spec.suspend:
            return None
        try:
            schedule = self._schedule()
        except ScheduleError as error:
            self._event("UnparseableSchedule", f'unparseable schedule: "{spec.schedule}" : {error}', "Warning")
            return None
        try:
            due = find_schedule_time(schedule, self._cron_job.since, self._now, spec.starting_deadline_seconds)
        except NeverTwiceError as error:
            self._event("InvalidSchedule", f"invalid schedule: {spec.schedule} : {error}", "Warning")
            return None
        if due.is_many:
            words = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew"
            self._event("TooManyMissedTimes", words, "Warning")
        if due.time is not None and self._is_wanted(due.time):
            await self._start(due.time)
            await self._write()
        return next_wake_s(schedule, self._status.last_schedule_time or self._cron_job.since, self._now)

    # -- earlier Jobs -------------------------------------------------------------------------------

    async def _note_ended(self) -> None:
        known = {one["uid"] for one in self._status.active}
        for job in self._jobs:
            uid, name = job.metadata.uid, job.metadata.name
            if not job.end:
                if uid not in known:
                    self._event(
                        "UnexpectedJob", f"Saw a job that the controller did not create or forgot: {name}", "Warning"
                    )
                continue
            if uid in known:
                self._forget(uid)
                self._event("SawCompletedJob", f"Saw completed job: {name}, condition: {job.end}")
            self._note_success(job)
        present = {job.metadata.uid for job in self._jobs}
        for one in self._status.active:
            if one["uid"] in present or await self._is_there(one):
                continue
            self._forget(one["uid"])
            self._event("MissingJob", f"Active job went missing: {one['name']}")

    def _note_success(self, job: OwnedJob) -> None:
        ended, last = job.status.completion_time, self._status.last_successful_time
        if job.end == "Complete" and ended is not None and (last is None or ended > last):
            self._status = msgspec.structs.replace(self._status, last_successful_time=ended)

    async def _is_there(self, one: Obj) -> bool:
        """Asks the server, because the cache may not have the Job yet."""
        try:
            found = await self._context.api.get(JOBS, self._item.namespace, one["name"])
        except NotFoundError:
            return False
        return found.uid == str(one["uid"])

    async def _clear(self) -> None:
        spec = self._cron_job.spec
        for end, most in (
            ("Complete", spec.successful_jobs_history_limit),
            ("Failed", spec.failed_jobs_history_limit),
        ):
            ended = sorted((job for job in self._jobs if job.end == end), key=lambda job: job.age)
            for job in ended[: max(len(ended) - most, 0)] if most is not None else ():
                if job.metadata.deletion_timestamp is None:
                    await self._delete(job.metadata.name, job.metadata.uid)

    # -- the next Job -----------------------------------------------------------------------------------------------

    def _schedule(self) -> Schedule:
        """Schedules with a time zone are rejected today, but older objects may have them."""
        spec = self._cron_job.spec
        text, zone = spec.schedule, zone_of(spec.time_zone)
        if text.startswith(("TZ=", "CRON_TZ=")):
            words = (
                f'CRON_TZ or TZ used in schedule "{text}" is not officially supported, see '
                "https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"
            )
            self._event("UnsupportedSchedule", words, "Warning")
            named, _, text = text.partition(" ")
            zone = zone_of(named.partition("=")[2])
            if zone is None:
                raise ScheduleError(f"provided bad location {named.partition('=')[2]}")
        return read_schedule(text, zone or UTC)

    def _is_wanted(self, time: datetime) -> bool:
        spec, status = self._cron_job.spec, self._status
        late_s = (self._now - time).total_seconds()
        if spec.starting_deadline_seconds is not None and late_s > spec.starting_deadline_seconds:
            written = time.strftime("%a, %d %b %Y %H:%M:%S +0000")
            self._event("MissSchedule", f"Missed scheduled time to start a job: {written}", "Warning")
            return False
        name = job_name(self._cron_job, time)
        if status.last_schedule_time == time or any(one["name"] == name for one in status.active):
            return False
        if spec.concurrency_policy == "Forbid" and status.active:
            words = "Not starting job because prior execution is running and concurrency policy is Forbid"
            self._event("JobAlreadyActive", words)
            return False
        return True

    async def _start(self, time: datetime) -> None:
        if self._cron_job.spec.concurrency_policy == "Replace":
            for one in self._status.active:
                await self._delete(one["name"], one["uid"])
        zone = zone_of(self._cron_job.spec.time_zone)
        assert zone is not None  # noqa: S101 - `go` returns before this if there is no zone
        wanted = new_job(self._cron_job, time, zone)
        try:
            made = await self._context.api.create(JOBS, wanted)
        except AlreadyExistsError:
            made = await self._context.api.get(JOBS, self._item.namespace, job_name(self._cron_job, time))
            owner = made.read(OwnedJob).owner
            if owner is None or owner.uid != self._item.uid:
                return
        except ShoalError as error:
            if not isinstance(error, ConflictError):
                self._event("FailedCreate", f"Error creating job: {error}", "Warning")
            raise
        else:
            self._event("SuccessfulCreate", f"Created job {made.name}")
        active = self._status.active
        if not made.read(OwnedJob).end and all(one["uid"] != made.uid for one in active):
            active = (*active, reference(made))
        self._status = msgspec.structs.replace(self._status, active=active, last_schedule_time=time)

    # -- writes ----------------------------------------------------------------------------------------------------

    async def _delete(self, name: str, uid: str) -> None:
        try:
            await self._context.api.delete(JOBS, self._item.namespace, name, Deletion(policy="Background", uid=uid))
        except NotFoundError:
            self._forget(uid)
            return
        except ShoalError as error:
            self._event("FailedDelete", f"Deleted job: {error}", "Warning")
            raise
        self._forget(uid)
        self._event("SuccessfulDelete", f"Deleted job {name}")

    def _forget(self, uid: str) -> None:
        left = tuple(one for one in self._status.active if one["uid"] != uid)
        self._status = msgspec.structs.replace(self._status, active=left)

    async def _write(self) -> None:
        if self._status == self._cron_job.status:
            return
        obj = self._item.obj()
        obj["status"] = _written(self._status)
        self._item = await self._context.api.update(CRON_JOBS, obj, "status")
        self._cron_job = msgspec.structs.replace(self._cron_job, status=self._status)

    def _event(self, reason: str, message: str, type_: Literal["Normal", "Warning"] = "Normal") -> None:
        item = self._item
        metadata = {"name": item.name, "namespace": item.namespace, "uid": item.uid}
        about = {"kind": "CronJob", "apiVersion": "batch/v1", "metadata": metadata}
        self._context.events.record(about, reason, message, type_=type_)


def _written(status: Status) -> Obj:
    written: Obj = msgspec.json.decode(msgspec.json.encode(status))
    return written
