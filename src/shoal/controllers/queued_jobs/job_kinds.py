"""THE TABLE: every kind of job that waits in queues under a Workload of its own.

A new kind is a row here and one in `store/queues/job_parts/table.py`. Kinds whose pods wait one by one, or as groups
behind gates, have no switch of their own and are looked after by whoever looks after queued pods.
"""

from __future__ import annotations

from shoal.controllers.queued_jobs import courses
from shoal.controllers.queued_jobs.dressing import Dressing, OfAppWrappers, OfBatchJobs, OfRayJobs, OfSpark, OfTrainJobs
from shoal.controllers.queued_jobs.row import JobRow
from shoal.store.live.ecosystem_kinds import (
    JAX_JOBS,
    JOB_SETS,
    MPI_JOBS,
    PADDLE_JOBS,
    PYTORCH_JOBS,
    RAY_CLUSTERS,
    RAY_JOBS,
    RAY_SERVICES,
    SPARK_APPLICATIONS,
    TF_JOBS,
    TRAIN_JOBS,
    VOLCANO_JOBS,
    XGBOOST_JOBS,
)
from shoal.store.live.kind import JOBS, Kind
from shoal.store.queues.job_parts import Steps

APP_WRAPPERS = Kind("workload.codeflare.dev", "v1beta2", "appwrappers", "AppWrapper")
COMMANDS = Kind("bus.volcano.sh", "v1alpha1", "commands", "Command")
TRAINING_RUNTIMES = Kind("trainer.kubeflow.org", "v1alpha1", "trainingruntimes", "TrainingRuntime")
CLUSTER_TRAINING_RUNTIMES = Kind(
    "trainer.kubeflow.org", "v1alpha1", "clustertrainingruntimes", "ClusterTrainingRuntime", is_namespaced=False
)
_POLICY: Steps = ("spec", "runPolicy", "schedulingPolicy", "priorityClass")


def _versions(kind: Kind, *older: str) -> tuple[Kind, ...]:
    return (kind, *(kind._replace(version=version) for version in older))


def _training(kind: Kind, *older: str) -> JobRow:
    return JobRow(_versions(kind, *older), courses.training, priority_class=_POLICY)


ROWS: tuple[JobRow, ...] = (
    JobRow((JOBS,), courses.batch_job, OfBatchJobs(), restores_when="stopped", is_elastic=True, keeps_conditions=True),
    JobRow((JOB_SETS,), courses.job_set, keeps_conditions=True),
    _training(PYTORCH_JOBS),
    _training(TF_JOBS),
    _training(XGBOOST_JOBS),
    _training(PADDLE_JOBS),
    _training(JAX_JOBS),
    _training(MPI_JOBS, "v1"),
    JobRow(
        (TRAIN_JOBS,),
        courses.train_job,
        OfTrainJobs(),
        restores_when="idle",
        is_dressed_first=True,
        refers_to=(TRAINING_RUNTIMES, CLUSTER_TRAINING_RUNTIMES),
    ),
    JobRow(_versions(RAY_JOBS, "v1alpha1"), courses.ray_job, OfRayJobs()),
    JobRow(_versions(RAY_CLUSTERS, "v1alpha1"), courses.ray_cluster, is_elastic=True),
    JobRow(_versions(RAY_SERVICES, "v1alpha1"), courses.ray_service),
    JobRow((SPARK_APPLICATIONS,), courses.spark, OfSpark()),
    JobRow((APP_WRAPPERS,), courses.app_wrapper, OfAppWrappers()),
    JobRow((VOLCANO_JOBS,), courses.volcano_job, Dressing(), switch="command"),
)

BY_KIND = {(row.kind.group, row.kind.name): row for row in ROWS}
