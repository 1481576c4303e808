"""Computes how many pods of an owner start together, and in which subgroups: KAI's rules, one function per kind.

A kind that is not in the table has one group for all of its pods, with a minimum of one, as in KAI: for example
ReplicaSets, PipelineRuns and TaskRuns, services of Seldon and KServe, and virtual machines.

Not implemented, so grouped by the default rule: Grove, Dynamo, AmlJobs and RunaiJobs, whose operators are separate
projects; and segments (`kai.scheduler/segment-size`), which divide workers into parts that are placed close together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from shoal.controllers.kai.grouping_types import (
    BUILD,
    INFERENCE,
    MINIMUM_KEY,
    SET_MINIMUM_KEY,
    GroupingInput,
    GroupingResult,
    minimum_of,
)
from shoal.controllers.kai.role_grouping_rules import job_set, kubeflow, leader_worker_set, mpi, pytorch, ray
from shoal.units.errors import UserError, Where


def grouping_of(given: GroupingInput) -> GroupingResult:
    return RULES.get(given.owner.group_kind, _default)(given)


def _default(given: GroupingInput) -> GroupingResult:  # noqa: ARG001 - the signature is the table's
    return GroupingResult()


def _job(given: GroupingInput) -> GroupingResult:
    return GroupingResult(minimum_of(given.owner, MINIMUM_KEY, 1))


def _deployment(given: GroupingInput) -> GroupingResult:  # noqa: ARG001
    return GroupingResult(priority=INFERENCE, is_per_pod=True)


def _notebook(given: GroupingInput) -> GroupingResult:  # noqa: ARG001
    return GroupingResult(priority=BUILD)


def _stateful_set(given: GroupingInput) -> GroupingResult:
    if SET_MINIMUM_KEY not in given.owner.annotations:
        return GroupingResult()
    if given.owner.text("spec", "podManagementPolicy") != "Parallel":
        where = Where(obj=f"StatefulSet {given.owner.namespace}/{given.owner.name}")
        raise UserError(
            "its pods start one after the other, so a gang of them never starts",
            where=where.with_path(f"metadata.annotations[{SET_MINIMUM_KEY}]"),
            fix="spec.podManagementPolicy: Parallel",
        )
    return GroupingResult(minimum_of(given.owner, SET_MINIMUM_KEY, 1))


def _revision(given: GroupingInput) -> GroupingResult:
    """A Knative Revision: its minimum scale starts together."""
    text = given.owner.annotations.get("autoscaling.knative.dev/min-scale", "")
    return GroupingResult(
        max(int(text), 1) if text.isascii() and text.isdigit() and len(text) < 8 else 1, priority=INFERENCE
    )


_RAY_KINDS = ("RayCluster", "RayJob", "RayService")
RULES: Mapping[tuple[str, str], Callable[[GroupingInput], GroupingResult]] = {
    ("batch", "Job"): _job,
    ("apps", "Deployment"): _deployment,
    ("apps", "StatefulSet"): _stateful_set,
    ("kubeflow.org", "Notebook"): _notebook,
    ("kubeflow.org", "PyTorchJob"): pytorch,
    ("kubeflow.org", "TFJob"): kubeflow("tfReplicaSpecs"),
    ("kubeflow.org", "XGBoostJob"): kubeflow("xgbReplicaSpecs", "Master"),
    ("kubeflow.org", "JAXJob"): kubeflow("jaxReplicaSpecs"),
    ("kubeflow.org", "MPIJob"): mpi,
    ("serving.knative.dev", "Revision"): _revision,
    ("jobset.x-k8s.io", "JobSet"): job_set,
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): leader_worker_set,
    **{("ray.io", kind): ray for kind in _RAY_KINDS},
}
