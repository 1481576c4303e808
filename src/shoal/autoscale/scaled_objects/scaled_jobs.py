"""Decides how many Jobs a ScaledJob creates in one pass, and which finished ones are deleted.

A Job is never deleted while it runs: that is what a ScaledJob is for. The strategies are KEDA's: `default` subtracts
the running Jobs from the queue, `accurate` the pending ones (for queues that a message leaves when its work begins),
`eager` fills the free places, `custom` subtracts by its own figures.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import Struct, field

from shoal.api.wire import ApiStruct
from shoal.autoscale.scaled_objects.spec import USUAL_MAX_REPLICAS, Trigger

OWNER_LABEL = "scaledjob.keda.sh/name"
_USUAL_HISTORY = 100
_EXCLUDED = "scaledjob.keda.sh/job-excluded-labels"
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
Obj = dict[str, Any]


class ScalingStrategy(ApiStruct, frozen=True):
    strategy: str = ""
    custom_scaling_queue_length_deduction: int | None = None
    custom_scaling_running_job_percentage: str = ""
    pending_pod_conditions: tuple[str, ...] = ()
    multiple_scalers_calculation: str = ""


class ScaledJobSpec(ApiStruct, frozen=True):
    job_target_ref: Obj = field(default_factory=dict)
    env_source_container_name: str = ""
    polling_interval: int | None = None
    successful_jobs_history_limit: int | None = None
    failed_jobs_history_limit: int | None = None
    min_replica_count: int | None = None
    max_replica_count: int | None = None
    scaling_strategy: ScalingStrategy = ScalingStrategy()
    triggers: tuple[Trigger, ...] = ()

    def least(self) -> int:
        """Jobs that run whatever the triggers say."""
        least = self.min_replica_count or 0
        return least if self.max_replica_count is None else min(least, self.max_replica_count)

    def most(self) -> int:
        """Jobs beside the least ones."""
        if self.max_replica_count is None:
            return USUAL_MAX_REPLICAS
        return self.max_replica_count - self.least()

    def history(self, *, has_failed: bool) -> int:
        limit = self.failed_jobs_history_limit if has_failed else self.successful_jobs_history_limit
        return _USUAL_HISTORY if limit is None else limit


class TriggerDemand(Struct, frozen=True):
    """What one trigger asks for."""

    queue: float
    target: float
    is_active: bool


class JobDemand(Struct, frozen=True):
    is_active: bool
    queue: int
    most: int
    """The Jobs that the queue needs."""


class JobCounts(Struct, frozen=True):
    running: int
    """Jobs that have not ended, the pending ones among them."""
    pending: int = 0
    """Those of which no pod runs yet."""


def job_demand(demands: Sequence[TriggerDemand], spec: ScaledJobSpec) -> JobDemand:
    active = [one for one in demands if one.is_active]
    needed = [min(one.queue / one.target, spec.most()) if one.target else 0.0 for one in active]
    queues = [one.queue for one in active]
    how = spec.scaling_strategy.multiple_scalers_calculation
    queue = most = 0.0
    if active and how == "sum":
        queue, most = sum(queues), sum(needed)
    elif active and how == "avg":
        queue, most = sum(queues) / len(active), sum(needed) / len(active)
    elif active:
        chosen = min(range(len(active)), key=queues.__getitem__) if how == "min" else queues.index(max(queues))
        queue, most = queues[chosen], needed[chosen]
    is_active = bool(active) if how in ("min", "avg", "sum") else queue > 0
    return JobDemand(is_active or spec.least() > 0, math.ceil(queue), math.ceil(min(most, spec.most())))


def new_jobs(spec: ScaledJobSpec, demand: JobDemand, counts: JobCounts) -> int:
    if not demand.is_active:
        return 0
    least = spec.least()
    if counts.running < least:
        return least - counts.running
    running, wanted = counts.running - least, demand.queue
    strategy = spec.scaling_strategy
    if strategy.strategy == "accurate":
        most = demand.most - counts.pending
        if demand.most + running - counts.pending > spec.most():
            most = spec.most() - running
    elif strategy.strategy == "eager":
        most, wanted = min(spec.most() - running - counts.pending, demand.most), spec.most()
    elif strategy.strategy == "custom" and (part := _part(strategy)) is not None:
        deduction = strategy.custom_scaling_queue_length_deduction or 0
        most = min(demand.most - deduction - int(running * part), spec.most())
    else:
        most = demand.most - running
    return max(min(wanted, most), 0)


def _part(strategy: ScalingStrategy) -> float | None:
    """`None`: not a number, and the strategy is the default one."""
    try:
        found = float(strategy.custom_scaling_running_job_percentage)
    except ValueError:
        return None
    return found if math.isfinite(found) else None


class FinishedJob(Struct, frozen=True):
    name: str
    has_failed: bool
    ended: str
    """As text, which sorts by time."""


def surplus_jobs(finished: Iterable[FinishedJob], spec: ScaledJobSpec) -> list[str]:
    """The oldest ones beyond the limits of the history."""
    found = []
    ordered = sorted(finished, key=lambda one: (one.ended, one.name))
    for has_failed in (False, True):
        names = [one.name for one in ordered if one.has_failed == has_failed]
        found += names[: max(len(names) - spec.history(has_failed=has_failed), 0)]
    return found


def job_of(scaled_job: Obj, spec: ScaledJobSpec) -> Obj:
    """A Job as the ScaledJob describes it; the server gives it a name."""
    meta = scaled_job["metadata"]
    annotations = meta.get("annotations") or {}
    excluded = set(annotations.get(_EXCLUDED, "").split(","))
    labels = {
        "app.kubernetes.io/name": meta["name"],
        "app.kubernetes.io/part-of": meta["name"],
        "app.kubernetes.io/managed-by": "keda-operator",
        OWNER_LABEL: meta["name"],
    }
    labels |= {key: text for key, text in (meta.get("labels") or {}).items() if key not in excluded}
    template = spec.job_target_ref.get("template") or {}
    template_meta = template.get("metadata") or {}
    pod = dict(template.get("spec") or {})
    pod.setdefault("restartPolicy", "OnFailure")
    template_labels = {**(template_meta.get("labels") or {}), OWNER_LABEL: meta["name"]}
    made = {**template, "metadata": {**template_meta, "labels": template_labels}, "spec": pod}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "generateName": f"{meta['name']}-",
            "namespace": meta["namespace"],
            "labels": labels,
            "annotations": {
                **{key: text for key, text in annotations.items() if key != _LAST_APPLIED},
                "scaledjob.keda.sh/generation": str(meta.get("generation", 1)),
            },
            "ownerReferences": [
                {
                    "apiVersion": "keda.sh/v1alpha1",
                    "kind": "ScaledJob",
                    "name": meta["name"],
                    "uid": meta["uid"],
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "spec": {**spec.job_target_ref, "template": made},
    }
