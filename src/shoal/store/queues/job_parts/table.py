"""Lists the job kinds: the paths of the pod templates of each, the field that suspends it, and how it reports its end.

Other lists are derived from it: the kinds that are suspended at their creation (`controllers/gatekeeping`), that a
snapshot contains (`store/snapshot`), whose pods follow from manifests (`store/operator_pods`), and that the advisor
checks. How a kind's progress is read and its admission injected is in `controllers/queued_jobs/job_kinds.py`.
"""

from __future__ import annotations

from shoal.client.ecosystem_kinds import (
    APP_WRAPPERS,
    JOB_SETS,
    PYTORCH_JOBS,
    RAY_CLUSTERS,
    RAY_JOBS,
    RAY_SERVICES,
    SPARK_APPLICATIONS,
    TRAIN_JOBS,
    VOLCANO_JOBS,
)
from shoal.client.kind import JOBS, Kind
from shoal.store.queues.job_parts.endings import app_wrapper as wrapper_ending
from shoal.store.queues.job_parts.endings import by_condition, by_phase, never
from shoal.store.queues.job_parts.endings import ray_job as ray_job_ending
from shoal.store.queues.job_parts.part import JobKind, JobShape, Steps
from shoal.store.queues.job_parts.plain import batch_job, job_set, replica_specs, volcano_job
from shoal.store.queues.job_parts.ray import ray_cluster, ray_job, uses_a_cluster_that_is_there
from shoal.store.queues.job_parts.spark import spark_application
from shoal.store.queues.job_parts.train import train_job
from shoal.store.queues.job_parts.wrapped import app_wrapper

SUSPEND: Steps = ("spec", "suspend")
RUN_POLICY: Steps = ("spec", "runPolicy", "suspend")
_RAY_VERSIONS = ("v1alpha1",)
_SERVED = "rayClusterConfig"
_SPARK_ENDING = by_phase(
    ("status", "applicationState", "state"),
    ("status", "applicationState", "errorMessage"),
    {"COMPLETED": True, "FAILED": False, "SUBMISSION_FAILED": False},
)
_VOLCANO_ENDING = by_phase(
    ("status", "state", "phase"),
    ("status", "state", "message"),
    {"Completed": True, "Failed": False, "Terminated": False},
)


def _training(kind: Kind, specs: str, *older: str) -> JobKind:
    shape = JobShape(replica_specs(specs), RUN_POLICY, by_condition("Succeeded"))
    return JobKind(kind, shape, older, replica_types=True, has_predictable_pods=True)


def _kubeflow(plural: str, name: str, version: str = "v1") -> Kind:
    return Kind("kubeflow.org", version, plural, name)


_UNWRAPPED = (
    JobKind(JOBS, JobShape(batch_job, SUSPEND, by_condition("Complete"))),
    JobKind(JOB_SETS, JobShape(job_set, SUSPEND, by_condition("Completed")), has_predictable_pods=True),
    _training(PYTORCH_JOBS, "pytorchReplicaSpecs"),
    _training(_kubeflow("tfjobs", "TFJob"), "tfReplicaSpecs"),
    _training(_kubeflow("xgboostjobs", "XGBoostJob"), "xgbReplicaSpecs"),
    _training(_kubeflow("paddlejobs", "PaddleJob"), "paddleReplicaSpecs"),
    _training(_kubeflow("jaxjobs", "JAXJob"), "jaxReplicaSpecs"),
    _training(_kubeflow("mpijobs", "MPIJob", "v2beta1"), "mpiReplicaSpecs", "v1"),
    JobKind(TRAIN_JOBS, JobShape(train_job, SUSPEND, by_condition("Complete"))),
    JobKind(RAY_JOBS, JobShape(ray_job, SUSPEND, ray_job_ending, uses_a_cluster_that_is_there), _RAY_VERSIONS),
    JobKind(RAY_CLUSTERS, JobShape(ray_cluster(("spec",)), SUSPEND, never), _RAY_VERSIONS),
    JobKind(RAY_SERVICES, JobShape(ray_cluster(("spec", _SERVED)), ("spec", _SERVED, "suspend"), never), _RAY_VERSIONS),
    JobKind(SPARK_APPLICATIONS, JobShape(spark_application, SUSPEND, _SPARK_ENDING)),
    JobKind(VOLCANO_JOBS, JobShape(volcano_job, (), _VOLCANO_ENDING)),
)
_INSIDE = {(row.kind.group, row.kind.name): row.shape for row in _UNWRAPPED}

JOB_KINDS: tuple[JobKind, ...] = (
    *_UNWRAPPED,
    JobKind(APP_WRAPPERS, JobShape(app_wrapper(_INSIDE), SUSPEND, wrapper_ending)),
)
BY_KIND: dict[tuple[str, str], JobKind] = {(row.kind.group, row.kind.name): row for row in JOB_KINDS}
SHAPES: dict[tuple[str, str], JobShape] = {key: row.shape for key, row in BY_KIND.items()}
