"""Defines the views of a CronJob and its Jobs that the controller reads, and builds new Jobs."""

from __future__ import annotations

from copy import deepcopy
from datetime import UTC, datetime, tzinfo
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec

from shoal.api.conditions import Condition
from shoal.api.meta import OwnerReference
from shoal.client.item import Item
from shoal.client.kind import CRON_JOBS
from shoal.client.owner_reference import controlled_by

Obj = dict[str, Any]
SCHEDULED_AT = "batch.kubernetes.io/cronjob-scheduled-timestamp"


class CronSpec(msgspec.Struct, frozen=True, rename="camel"):
    schedule: str
    job_template: Obj
    time_zone: str | None = None
    starting_deadline_seconds: int | None = None
    concurrency_policy: str = "Allow"
    suspend: bool = False
    successful_jobs_history_limit: int | None = None
    failed_jobs_history_limit: int | None = None


class CronJobMeta(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    namespace: str
    uid: str
    creation_timestamp: datetime
    deletion_timestamp: datetime | None = None


class Status(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    active: tuple[Obj, ...] = ()
    last_schedule_time: datetime | None = None
    last_successful_time: datetime | None = None


class CronJob(msgspec.Struct, frozen=True):
    metadata: CronJobMeta
    spec: CronSpec
    status: Status = Status()

    @property
    def since(self) -> datetime:
        return self.status.last_schedule_time or self.metadata.creation_timestamp


class _JobStatus(msgspec.Struct, frozen=True, rename="camel"):
    conditions: tuple[Condition, ...] = ()
    start_time: datetime | None = None
    completion_time: datetime | None = None


class _JobMeta(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    namespace: str
    uid: str
    owner_references: tuple[OwnerReference, ...] = ()
    deletion_timestamp: datetime | None = None


class OwnedJob(msgspec.Struct, frozen=True):
    metadata: _JobMeta
    status: _JobStatus = _JobStatus()

    @property
    def owner(self) -> OwnerReference | None:
        """The CronJob that controls it."""
        found = next((one for one in self.metadata.owner_references if one.controller), None)
        return found if found is not None and found.kind == "CronJob" else None

    @property
    def end(self) -> str:
        """`Complete`, `Failed`, or empty while it runs."""
        ends = (
            one.type for one in self.status.conditions if one.type in ("Complete", "Failed") and one.status == "True"
        )
        return next(ends, "")

    @property
    def age(self) -> tuple[bool, datetime, str]:
        """A sort key that increases with the start time; Jobs that did not start are last."""
        started = self.status.start_time
        return (started is None, started or datetime.min.replace(tzinfo=UTC), self.metadata.name)


def reference(job: Item) -> Obj:
    return {
        "kind": "Job",
        "namespace": job.namespace,
        "name": job.name,
        "uid": job.uid,
        "apiVersion": "batch/v1",
        "resourceVersion": str(job.version),
    }


def zone_of(name: str | None) -> tzinfo | None:
    """None if there is no such zone."""
    try:
        return UTC if name is None else ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None


def job_name(cron_job: CronJob, time: datetime) -> str:
    """The name contains the scheduled minute, so that no Job is created twice."""
    return f"{cron_job.metadata.name}-{int(time.timestamp()) // 60}"


def new_job(cron_job: CronJob, time: datetime, zone: tzinfo) -> Obj:
    template, meta = cron_job.spec.job_template, cron_job.metadata
    given = template.get("metadata") or {}
    written = time.astimezone(zone).isoformat()
    owner = controlled_by(CRON_JOBS, meta.name, meta.uid)
    metadata = {
        "name": job_name(cron_job, time),
        "namespace": meta.namespace,
        "labels": dict(given.get("labels") or {}),
        "annotations": {**(given.get("annotations") or {}), SCHEDULED_AT: written.replace("+00:00", "Z")},
        "creationTimestamp": time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "ownerReferences": [owner],
    }
    return {"kind": "Job", "apiVersion": "batch/v1", "metadata": metadata, "spec": deepcopy(template.get("spec") or {})}
