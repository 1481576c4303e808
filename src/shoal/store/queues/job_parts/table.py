"""The table: every kind of job that has its pods held back by one field, or one command, by API group and kind."""

from __future__ import annotations

from shoal.store.queues.job_parts.endings import app_wrapper as wrapper_ending
from shoal.store.queues.job_parts.endings import by_condition, by_phase, never
from shoal.store.queues.job_parts.endings import ray_job as ray_job_ending
from shoal.store.queues.job_parts.part import JobShape, Steps
from shoal.store.queues.job_parts.plain import batch_job, job_set, replica_specs, volcano_job
from shoal.store.queues.job_parts.ray import ray_cluster, ray_job, uses_a_cluster_that_is_there
from shoal.store.queues.job_parts.spark import spark_application
from shoal.store.queues.job_parts.train import train_job
from shoal.store.queues.job_parts.wrapped import app_wrapper

_SUSPEND: Steps = ("spec", "suspend")
_RUN_POLICY: Steps = ("spec", "runPolicy", "suspend")
_SERVED = "rayClusterConfig"


def _training(specs: str) -> JobShape:
    return JobShape(replica_specs(specs), _RUN_POLICY, by_condition("Succeeded"))


_PLAIN: dict[tuple[str, str], JobShape] = {
    ("batch", "Job"): JobShape(batch_job, _SUSPEND, by_condition("Complete")),
    ("jobset.x-k8s.io", "JobSet"): JobShape(job_set, _SUSPEND, by_condition("Completed")),
    ("kubeflow.org", "PyTorchJob"): _training("pytorchReplicaSpecs"),
    ("kubeflow.org", "TFJob"): _training("tfReplicaSpecs"),
    ("kubeflow.org", "XGBoostJob"): _training("xgbReplicaSpecs"),
    ("kubeflow.org", "PaddleJob"): _training("paddleReplicaSpecs"),
    ("kubeflow.org", "JAXJob"): _training("jaxReplicaSpecs"),
    ("kubeflow.org", "MPIJob"): _training("mpiReplicaSpecs"),
    ("trainer.kubeflow.org", "TrainJob"): JobShape(train_job, _SUSPEND, by_condition("Complete")),
    ("ray.io", "RayJob"): JobShape(ray_job, _SUSPEND, ray_job_ending, uses_a_cluster_that_is_there),
    ("ray.io", "RayCluster"): JobShape(ray_cluster(("spec",)), _SUSPEND, never),
    ("ray.io", "RayService"): JobShape(ray_cluster(("spec", _SERVED)), ("spec", _SERVED, "suspend"), never),
    ("sparkoperator.k8s.io", "SparkApplication"): JobShape(
        spark_application,
        _SUSPEND,
        by_phase(
            ("status", "applicationState", "state"),
            ("status", "applicationState", "errorMessage"),
            {"COMPLETED": True, "FAILED": False, "SUBMISSION_FAILED": False},
        ),
    ),
    ("batch.volcano.sh", "Job"): JobShape(
        volcano_job,
        (),
        by_phase(
            ("status", "state", "phase"),
            ("status", "state", "message"),
            {"Completed": True, "Failed": False, "Terminated": False},
        ),
    ),
}

SHAPES: dict[tuple[str, str], JobShape] = {
    **_PLAIN,
    ("workload.codeflare.dev", "AppWrapper"): JobShape(app_wrapper(_PLAIN), _SUSPEND, wrapper_ending),
}
