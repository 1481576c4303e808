"""Defines the views of a Job that its controller reads, and the status that it writes.

The status struct has all fields of a Job status, so that two statuses compare by value and zero values are left out, as
in Kubernetes. The pod template is kept as plain JSON.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from shoal.api.meta import ObjectMeta
from shoal.api.selectors import LabelSelector
from shoal.embedded.controllers.jobs.names import CONTROLLER

Obj = dict[str, Any]


class ExitCodes(msgspec.Struct, frozen=True, rename="camel"):
    operator: str
    values: tuple[int, ...] = ()
    container_name: str | None = None


class PodCondition(msgspec.Struct, frozen=True):
    type: str
    status: str = "True"


class FailureRule(msgspec.Struct, frozen=True, rename="camel"):
    action: Literal["FailJob", "FailIndex", "Ignore", "Count"]
    on_exit_codes: ExitCodes | None = None
    on_pod_conditions: tuple[PodCondition, ...] | None = None


class FailurePolicy(msgspec.Struct, frozen=True):
    rules: tuple[FailureRule, ...] = ()


class SuccessRule(msgspec.Struct, frozen=True, rename="camel"):
    succeeded_indexes: str | None = None
    succeeded_count: int | None = None


class SuccessPolicy(msgspec.Struct, frozen=True):
    rules: tuple[SuccessRule, ...] = ()


class BatchJobSpec(msgspec.Struct, frozen=True, rename="camel"):
    template: Obj
    parallelism: int = 1
    completions: int | None = None
    backoff_limit: int = 6
    backoff_limit_per_index: int | None = None
    max_failed_indexes: int | None = None
    active_deadline_seconds: int | None = None
    completion_mode: str = "NonIndexed"
    suspend: bool = False
    selector: LabelSelector = LabelSelector()
    manual_selector: bool = False
    pod_failure_policy: FailurePolicy | None = None
    success_policy: SuccessPolicy | None = None
    pod_replacement_policy: str = "TerminatingOrFailed"
    managed_by: str = CONTROLLER

    @property
    def is_indexed(self) -> bool:
        return self.completion_mode == "Indexed"

    @property
    def replaces_only_failed(self) -> bool:
        """Whether a terminating pod is not replaced and has not failed yet."""
        return self.pod_replacement_policy == "Failed" or self.pod_failure_policy is not None

    @property
    def restarts_in_place(self) -> bool:
        return bool(self.template["spec"].get("restartPolicy") == "OnFailure")

    def has_index(self, index: int | None) -> bool:
        return index is not None and self.completions is not None and index < self.completions


class JobCondition(msgspec.Struct, frozen=True, rename="camel"):
    type: str
    status: str
    last_probe_time: str | None = None
    last_transition_time: str | None = None
    reason: str = ""
    message: str = ""


class Uncounted(msgspec.Struct, frozen=True, omit_defaults=True):
    """The uids of finished pods that are about to be counted; their finalizer may already be removed."""

    succeeded: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.succeeded) + len(self.failed)


class BatchJobStatus(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    conditions: tuple[JobCondition, ...] = ()
    start_time: str | None = None
    completion_time: str | None = None
    active: int = 0
    succeeded: int = 0
    failed: int = 0
    terminating: int | None = None
    completed_indexes: str = ""
    failed_indexes: str | None = None
    uncounted_terminated_pods: Uncounted | None = None
    ready: int | None = None

    def condition(self, kind: str) -> JobCondition | None:
        """The condition of that type with status True."""
        return next((one for one in self.conditions if one.type == kind and one.status == "True"), None)

    @property
    def end(self) -> JobCondition | None:
        return self.condition("Complete") or self.condition("Failed")


class BatchJob(msgspec.Struct, frozen=True):
    metadata: ObjectMeta
    spec: BatchJobSpec
    status: BatchJobStatus = BatchJobStatus()

    @property
    def uid(self) -> str:
        return self.metadata.uid

    @property
    def is_deleting(self) -> bool:
        return self.metadata.deletion_timestamp is not None

    @property
    def is_elsewhere(self) -> bool:
        """Whether another controller manages the job."""
        return self.spec.managed_by != CONTROLLER


def status_object(status: BatchJobStatus) -> Obj:
    # JSON turns tuples into lists.
    written: Obj = msgspec.json.decode(msgspec.json.encode(status))
    return written
