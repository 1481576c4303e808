"""Lists all kinds of jobs that are queued with a Workload of their own.

A new kind is a row in `store/queues/job_parts/table.py` and a row here; kinds of Kubeflow's training operator need no
row here. Kinds that cannot be suspended have pods that
are queued by scheduling gates; `controllers/queued_pods` handles these.
"""

from __future__ import annotations

from shoal.client.ecosystem_kinds import (
    APP_WRAPPERS,
    JOB_SETS,
    RAY_CLUSTERS,
    RAY_JOBS,
    RAY_SERVICES,
    SPARK_APPLICATIONS,
    TRAIN_JOBS,
    VOLCANO_JOBS,
)
from shoal.client.kind import JOBS, Kind
from shoal.controllers.queued_jobs import job_progress
from shoal.controllers.queued_jobs.job_kind import QueuedJobKind
from shoal.controllers.queued_jobs.pod_set_injection import (
    AppWrapperInjector,
    BatchJobInjector,
    PodSetInjector,
    RayJobInjector,
    SparkInjector,
    TrainJobInjector,
)
from shoal.store.queues.job_parts import BY_KIND as PARTS
from shoal.store.queues.job_parts import JOB_KINDS as ROWS
from shoal.store.queues.job_parts import Steps

COMMANDS = Kind("bus.volcano.sh", "v1alpha1", "commands", "Command")
TRAINING_RUNTIMES = Kind("trainer.kubeflow.org", "v1alpha1", "trainingruntimes", "TrainingRuntime")
CLUSTER_TRAINING_RUNTIMES = Kind(
    "trainer.kubeflow.org", "v1alpha1", "clustertrainingruntimes", "ClusterTrainingRuntime", is_namespaced=False
)
_POLICY: Steps = ("spec", "runPolicy", "schedulingPolicy", "priorityClass")


def _versions(kind: Kind) -> tuple[Kind, ...]:
    return PARTS[kind.group, kind.name].versions


JOB_KINDS: tuple[QueuedJobKind, ...] = (
    QueuedJobKind(
        (JOBS,),
        job_progress.batch_job,
        BatchJobInjector(),
        restores_when="stopped",
        is_elastic=True,
        keeps_other_conditions=True,
    ),
    QueuedJobKind((JOB_SETS,), job_progress.job_set, keeps_other_conditions=True),
    *(QueuedJobKind(row.versions, job_progress.training, priority_class=_POLICY) for row in ROWS if row.replica_types),
    QueuedJobKind(
        (TRAIN_JOBS,),
        job_progress.train_job,
        TrainJobInjector(),
        restores_when="idle",
        needs_suspended_injection=True,
        refers_to=(TRAINING_RUNTIMES, CLUSTER_TRAINING_RUNTIMES),
    ),
    QueuedJobKind(_versions(RAY_JOBS), job_progress.ray_job, RayJobInjector()),
    QueuedJobKind(_versions(RAY_CLUSTERS), job_progress.ray_cluster, is_elastic=True),
    QueuedJobKind(_versions(RAY_SERVICES), job_progress.ray_service),
    QueuedJobKind((SPARK_APPLICATIONS,), job_progress.spark, SparkInjector()),
    QueuedJobKind((APP_WRAPPERS,), job_progress.app_wrapper, AppWrapperInjector()),
    QueuedJobKind((VOLCANO_JOBS,), job_progress.volcano_job, PodSetInjector(), suspended_by="command"),
)

BY_KIND = {(job_kind.kind.group, job_kind.kind.name): job_kind for job_kind in JOB_KINDS}
