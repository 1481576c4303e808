"""CronJobs: a schedule and the job it makes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shoal.embedded.apiserver.field_errors import FieldError, bad_value, not_supported, required, too_long
from shoal.embedded.apiserver.kinds.complaints import Errors, Obj, add_faults, add_negative, add_unsupported
from shoal.embedded.apiserver.kinds.pods.defaults import default_template
from shoal.embedded.apiserver.kinds.pods.warnings import pod_warnings
from shoal.embedded.apiserver.kinds.workloads.job_spec import check_job_spec
from shoal.embedded.apiserver.kinds.workloads.schedules import LONGEST, schedule_fault
from shoal.embedded.apiserver.kinds.workloads.time_zones import time_zone_faults
from shoal.embedded.apiserver.strategy import Strategy

_LONGEST_NAME = 52
"""Jobs are named after it with a time of eleven letters behind."""
_POLICIES = ("Allow", "Forbid", "Replace")
_COUNTS = ("startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit")


class CronJobStrategy(Strategy):
    has_status = True
    counts_generation = True

    initial_status: Mapping[str, Any] = {}

    def default(self, obj: Obj) -> None:
        spec = obj.setdefault("spec", {})
        if not spec.get("concurrencyPolicy"):
            spec["concurrencyPolicy"] = "Allow"
        spec.setdefault("suspend", False)
        spec.setdefault("successfulJobsHistoryLimit", 3)
        spec.setdefault("failedJobsHistoryLimit", 1)
        job = spec.setdefault("jobTemplate", {})
        job.setdefault("metadata", {})
        default_template(job.setdefault("spec", {}).setdefault("template", {}))

    def validate(self, obj: Obj) -> list[FieldError]:
        errors: Errors = []
        name = obj["metadata"].get("name", "")
        if len(name) > _LONGEST_NAME:
            words = f"must be no more than {_LONGEST_NAME} characters"
            errors.append(bad_value("metadata.name", name, words))
        return errors + self._check_spec(obj["spec"], None)

    def validate_update(self, new: Obj, old: Obj) -> list[FieldError]:
        return self._check_spec(new["spec"], old["spec"])

    def _check_spec(self, spec: Obj, before: Obj | None) -> list[FieldError]:
        errors: Errors = []
        _check_schedule(spec, before, errors)
        for key in _COUNTS:
            add_negative(errors, f"spec.{key}", spec.get(key))
        add_unsupported(errors, "spec.concurrencyPolicy", spec.get("concurrencyPolicy"), _POLICIES)
        job = spec["jobTemplate"]["spec"]
        check_job_spec(job, "spec.jobTemplate.spec", errors)
        if job.get("selector") is not None:
            words = "`selector` will be auto-generated"
            errors.append(bad_value("spec.jobTemplate.spec.selector", job["selector"], words))
        if job.get("manualSelector"):
            errors.append(not_supported("spec.jobTemplate.spec.manualSelector", True, ("nil", "false")))
        return errors

    def warnings(self, new: Obj, old: Obj | None) -> list[str]:
        template = new["spec"]["jobTemplate"]["spec"]["template"]
        if old is not None:
            return []
        return pod_warnings(template.get("metadata") or {}, template["spec"], "spec.jobTemplate.spec.template.")


def _check_schedule(spec: Obj, before: Obj | None, errors: Errors) -> None:
    schedule = spec.get("schedule", "")
    if not schedule:
        errors.append(required("spec.schedule"))
    elif len(schedule) > LONGEST:
        errors.append(too_long("spec.schedule", LONGEST))
    else:
        if fault := schedule_fault(schedule):
            errors.append(bad_value("spec.schedule", schedule, fault))
        had_zone = before is not None and "TZ" in before.get("schedule", "")
        if "TZ" in schedule and (spec.get("timeZone") is not None or not had_zone):
            words = (
                "cannot use both timeZone field and TZ or CRON_TZ in schedule"
                if had_zone
                else "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
            )
            errors.append(bad_value("spec.schedule", schedule, words))
    if (zone := spec.get("timeZone")) is not None:
        add_faults(errors, "spec.timeZone", zone, time_zone_faults(zone))
