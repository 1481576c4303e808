"""The series of CronJobs."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from shoal.api.meta import ObjectMeta
from shoal.api.wire import ApiStruct, Timestamp
from shoal.client.item import Item
from shoal.telemetry.kube_state.series import Family, add, add_all, common_series
from shoal.units.calendar_windows import zone_of
from shoal.units.errors import UserError
from shoal.units.schedules import ScheduleError, read_schedule


class _ShownSpec(ApiStruct, frozen=True):
    schedule: str = ""
    time_zone: str = ""
    concurrency_policy: str = ""
    suspend: bool = False
    starting_deadline_seconds: int | None = None
    successful_jobs_history_limit: int | None = None
    failed_jobs_history_limit: int | None = None


class _ShownStatus(ApiStruct, frozen=True):
    active: tuple[Mapping[str, Any], ...] = ()
    last_schedule_time: Timestamp | None = None
    last_successful_time: Timestamp | None = None


class _ShownCronJob(ApiStruct, frozen=True):
    metadata: ObjectMeta
    spec: _ShownSpec = _ShownSpec()
    status: _ShownStatus = _ShownStatus()


def cron_job_series(item: Item) -> Family:
    """Raises msgspec.DecodeError for an object that is no CronJob."""
    job = item.read(_ShownCronJob)
    spec, status = job.spec, job.status
    found, own = common_series("cronjob", job.metadata)
    about = (
        ("schedule", spec.schedule),
        ("concurrency_policy", spec.concurrency_policy),
        ("timezone", spec.time_zone or "local"),
    )
    add(found, "kube_cronjob_info", (*own, *about))
    limits = {
        "spec_starting_deadline_seconds": spec.starting_deadline_seconds,
        "spec_successful_job_history_limit": spec.successful_jobs_history_limit,
        "spec_failed_job_history_limit": spec.failed_jobs_history_limit,
    }
    given = {name: value for name, value in limits.items() if value is not None}
    add_all(found, "cronjob", own, {"spec_suspend": spec.suspend, "status_active": len(status.active), **given})
    moments = {
        "status_last_schedule_time": status.last_schedule_time,
        "status_last_successful_time": status.last_successful_time,
        "next_schedule_time": _next_start(job),
    }
    for name, moment in moments.items():
        if moment is not None:
            add(found, f"kube_cronjob_{name}", own, moment.timestamp())
    return found


def _next_start(job: _ShownCronJob) -> datetime | None:
    """The first one after the last start, or after the creation of a CronJob that never started."""
    since = job.status.last_schedule_time or job.metadata.creation_timestamp
    if job.spec.suspend or since is None:
        return None
    try:
        return read_schedule(job.spec.schedule, zone_of(job.spec.time_zone) if job.spec.time_zone else UTC).next(since)
    except (ScheduleError, UserError):
        return None
