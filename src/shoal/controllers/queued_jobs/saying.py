"""What a job that has quota is told of the checks that keep it."""

from __future__ import annotations

from shoal.controllers.queued_jobs.office import Office
from shoal.controllers.queued_jobs.workloads import Workload
from shoal.store.live.item import Obj
from shoal.store.queues.job_parts import dig


def say_checks(office: Office, job: Obj, workload: Workload) -> None:
    each = dig(workload.obj, ("status", "admissionChecks")) or ()
    words = [
        f"{one.get('name')}: {one['message']}" for one in each if one.get("state") == "Pending" and one.get("message")
    ]
    if words:
        office.warn(job, "UpdatedAdmissionCheck", "; ".join(words), "Normal")
