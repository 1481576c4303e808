"""How many pods of an owner start together, and in which parts, by the owner's kind: KAI's rules, one function a kind.

A kind that is not in the table has one group for all of its pods, of which any one may start, as with KAI: that holds
for ReplicaSets, PipelineRuns and TaskRuns, Seldon's and KServe's services, virtual machines and whatever else.

Left out, as default groups: Grove's and Dynamo's, AmlJobs and RunaiJobs, whose operators are other projects' again; and
segments (`kai.scheduler/segment-size`), which cut workers into pieces that are close together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from shoal.controllers.kai.role_shapes import job_set, kubeflow, leader_worker_set, mpi, pytorch, ray
from shoal.controllers.kai.shape import BUILD, INFERENCE, MINIMUM_KEY, SET_MINIMUM_KEY, Look, Shape, minimum_of
from shoal.units.errors import UserError, Where


def shape_of(look: Look) -> Shape:
    return SHAPES.get(look.owner.group_kind, _any_one)(look)


def _any_one(look: Look) -> Shape:  # noqa: ARG001 - the signature is the table's
    return Shape()


def _job(look: Look) -> Shape:
    return Shape(minimum_of(look.owner, MINIMUM_KEY, 1))


def _deployment(look: Look) -> Shape:  # noqa: ARG001
    return Shape(priority=INFERENCE, is_for_one=True)


def _notebook(look: Look) -> Shape:  # noqa: ARG001
    return Shape(priority=BUILD)


def _stateful_set(look: Look) -> Shape:
    if SET_MINIMUM_KEY not in look.owner.annotations:
        return Shape()
    if look.owner.text("spec", "podManagementPolicy") != "Parallel":
        where = Where(obj=f"StatefulSet {look.owner.namespace}/{look.owner.name}")
        raise UserError(
            "its pods come one after the other, and never all of a gang",
            where=where.with_path(f"metadata.annotations[{SET_MINIMUM_KEY}]"),
            fix="spec.podManagementPolicy: Parallel",
        )
    return Shape(minimum_of(look.owner, SET_MINIMUM_KEY, 1))


def _revision(look: Look) -> Shape:
    """Of Knative: so many as the revision never goes below start together."""
    text = look.owner.annotations.get("autoscaling.knative.dev/min-scale", "")
    return Shape(max(int(text), 1) if text.isascii() and text.isdigit() and len(text) < 8 else 1, priority=INFERENCE)


_RAY_KINDS = ("RayCluster", "RayJob", "RayService")
SHAPES: Mapping[tuple[str, str], Callable[[Look], Shape]] = {
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
