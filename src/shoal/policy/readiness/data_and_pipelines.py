"""Readiness of storage, and of the programs that train, deliver and serve models."""

from __future__ import annotations

from collections.abc import Callable

from shoal.policy.diagnosis.cluster_facts import few, named
from shoal.policy.diagnosis.gangs import JOB_KINDS
from shoal.policy.fields import dig, strings
from shoal.policy.kinds import DEPLOYMENT, INFERENCE_SERVICE, PIPELINE, POD, VOLUME_CLAIM, WORKFLOW, GroupKind
from shoal.policy.pod_templates import PodTemplateView, pod_templates
from shoal.policy.readiness.checkpoints import keeps_checkpoints, names_store
from shoal.policy.readiness.gpu_software import gpu_namespaces, name_list, programs
from shoal.policy.readiness.outcomes import (
    Outcome,
    ReadinessCheck,
    ReadinessFacts,
    failed,
    manual,
    not_applicable,
    passed,
)

_SHARED_MODES = ("ReadWriteMany", "ReadOnlyMany")
_STREAMING = ("streaming", "webdataset", "dali", "mosaicml", "litdata", "ffcv")
APPLICATION = GroupKind("argoproj.io", "Application")
SELDON = GroupKind("machinelearning.seldon.io", "SeldonDeployment")
PIPELINE_RUN = GroupKind("tekton.dev", "PipelineRun")


def _gpu_templates(facts: ReadinessFacts) -> list[PodTemplateView]:
    objects = [*facts.cluster.pods, *(job for kind in JOB_KINDS for job in facts.cluster.all(kind))]
    return [view for obj in objects for view in pod_templates(obj) if view.asks_gpus()]


def _datasets(facts: ReadinessFacts) -> Outcome:
    namespaces = gpu_namespaces(facts.cluster)
    if not namespaces:
        return not_applicable("no namespace uses GPUs")
    claims = [
        one
        for namespace in namespaces
        for one in facts.cluster.all(VOLUME_CLAIM, namespace)
        if not set(strings(dig(one, "spec", "accessModes"))).isdisjoint(_SHARED_MODES)
    ]
    bound = [one for one in claims if dig(one, "status", "phase") == "Bound"]
    if bound:
        return passed(f"shared claims: {name_list(bound)}")
    if claims:
        return failed(
            f"shared claims are not bound: {name_list(claims)}", "see why", "kubectl describe persistentvolumeclaim -A"
        )
    return failed(
        "no PersistentVolumeClaim that several nodes can read in the namespaces with GPUs",
        "create one with ReadOnlyMany or ReadWriteMany for the datasets, or stream them from an object store",
    )


def _object_store(facts: ReadinessFacts) -> Outcome:
    named_in = [view for view in _gpu_templates(facts) if names_store(view)]
    if named_in:
        return passed(f"{len(named_in)} pod templates with GPUs name an object store")
    return manual(
        "no pod with GPUs names an object store in its command or environment",
        "check where checkpoints and artefacts go; a volume of one zone is lost with it",
    )


def _bandwidth(_: ReadinessFacts) -> Outcome:
    return manual(
        "the bandwidth of the storage is not known to the cluster",
        "measure reads of the dataset on a node with GPUs: more than 10 Gbit/s (1.25 GB/s)",
        "fio --name=read --rw=read --bs=4M --size=20G --direct=1 --numjobs=8 --directory=/data --group_reporting",
    )


def _loaders(facts: ReadinessFacts) -> Outcome:
    known = [
        view
        for view in _gpu_templates(facts)
        if any(word in str(container).lower() for _, container in view.containers() for word in _STREAMING)
    ]
    if known:
        return passed(f"{len(known)} pod templates with GPUs name a streaming loader")
    return manual(
        "whether programs stream their data is not visible to the cluster",
        "read data in several worker processes ahead of the GPU; a low DCGM_FI_PROF_GR_ENGINE_ACTIVE shows waits",
    )


def _of_kinds(kinds: tuple[GroupKind, ...], *words: str) -> Callable[[ReadinessFacts], Outcome]:
    def judge(facts: ReadinessFacts) -> Outcome:
        objects = [one for kind in kinds for one in facts.cluster.all(kind)]
        running = programs(facts.cluster, *words)
        if running:
            return passed(f"{name_list(running)}; {len(objects)} objects")
        if objects:
            return failed(
                f"{len(objects)} objects exist ({name_list(objects)}), and no controller of them is seen",
                "install the controller, or remove the objects",
            )
        return not_applicable("not used")

    return judge


def _checkpoints(facts: ReadinessFacts) -> Outcome:
    jobs = [
        (job, views)
        for kind in JOB_KINDS
        for job in facts.cluster.all(kind)
        if (views := [view for view in pod_templates(job) if view.asks_gpus()])
    ]
    if not jobs:
        return not_applicable("no job uses GPUs")
    lacking = [job for job, views in jobs if not any(keeps_checkpoints(view) for view in views)]
    if lacking:
        return failed(
            f"{len(lacking)} of {len(jobs)} jobs keep no checkpoint: {few([named(job) for job in lacking])}",
            "write checkpoints to a volume claim or an object store and resume from the newest; see shoal.train",
        )
    return passed(f"{len(jobs)} jobs with GPUs keep checkpoints")


STORAGE = (
    ReadinessCheck("datasets", "Datasets are on claims that several nodes can read", _datasets, (POD, VOLUME_CLAIM)),
    ReadinessCheck("object-store", "Checkpoints and artefacts go to an object store", _object_store, (POD,)),
    ReadinessCheck("storage-bandwidth", "Storage reads above 10 Gbit/s", _bandwidth),
    ReadinessCheck("loaders", "Programs stream their data", _loaders, (POD,)),
)
PIPELINES = (
    ReadinessCheck(
        "workflows",
        "Kubeflow Pipelines or Argo Workflows (if used)",
        _of_kinds((WORKFLOW,), "workflow-controller", "ml-pipeline", "argo-server"),
        (DEPLOYMENT, WORKFLOW),
        ("ForeignTemplateLanguage",),
    ),
    ReadinessCheck(
        "delivery",
        "Tekton (if used)",
        _of_kinds((PIPELINE, PIPELINE_RUN), "tekton-pipelines"),
        (DEPLOYMENT, PIPELINE),
        ("MissingTask", "MisplacedTolerations", "NotShared"),
    ),
    ReadinessCheck(
        "serving",
        "KServe or Seldon (if used)",
        _of_kinds((INFERENCE_SERVICE, SELDON), "kserve-controller", "seldon-controller"),
        (DEPLOYMENT, INFERENCE_SERVICE),
    ),
    ReadinessCheck(
        "gitops",
        "Argo CD (if used)",
        _of_kinds((APPLICATION,), "argocd-application-controller", "argocd-server"),
        (DEPLOYMENT, APPLICATION),
    ),
    ReadinessCheck("checkpoints", "Training jobs keep checkpoints", _checkpoints, JOB_KINDS),
)
