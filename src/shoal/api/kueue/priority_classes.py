"""Workload priority classes: an order among workloads that says nothing about their pods.

`value` is a top-level field, as in Kubernetes' PriorityClass. Written under `spec`, where people look for it first, the
API server would refuse it; here it is taken for what it means and `probable_mistakes.py` tells.
"""

from __future__ import annotations

from msgspec import field

from shoal.api.meta import ObjectMeta
from shoal.api.pod import Priority
from shoal.api.validity import check_meta
from shoal.api.wire import ApiStruct
from shoal.units.errors import UserError, Where

PRIORITY_CLASS_LABEL = "kueue.x-k8s.io/priority-class"
"""On a job: its class."""
LONGEST_DESCRIPTION = 2048


class MisplacedValue(ApiStruct, frozen=True):
    value: Priority | None = None
    description: str = ""


class WorkloadPriorityClass(ApiStruct, frozen=True):
    value: Priority
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    description: str = ""
    spec: MisplacedValue | None = None
    """Kept as it was written, for the warning."""


def check_workload_priority_class(priority_class: WorkloadPriorityClass, where: Where) -> None:
    check_meta(priority_class.metadata, where.below("metadata"))
    misplaced = priority_class.spec
    if misplaced is not None and misplaced.value not in {None, priority_class.value}:
        what = f"says {misplaced.value} where value says {priority_class.value}"
        raise UserError(what, where=where.below("spec.value"), fix="keep value, at the top")
    if len(priority_class.description) > LONGEST_DESCRIPTION:
        raise UserError(f"must be no more than {LONGEST_DESCRIPTION} characters", where=where.below("description"))
