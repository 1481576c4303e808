"""Computes the pod templates of TrainJobs: the runtime that a job names is the template of a JobSet, and the job's own
fields override it.
"""

from __future__ import annotations

from typing import Any

from msgspec import field

from shoal.api.decode import convert
from shoal.api.wire import ApiStruct
from shoal.store.queues.job_parts.part import Obj, ObjectLookup, PodPart, Replicas, dig
from shoal.store.queues.job_parts.plain import COMPLETION_INDEX, JOB_INDEX, replicated_jobs
from shoal.units.errors import UserError, Where

ANCESTOR = "trainer.kubeflow.org/trainjob-ancestor-step"
_CLUSTER_WIDE = "ClusterTrainingRuntime"


class _Reference(ApiStruct, frozen=True):
    name: str
    kind: str = _CLUSTER_WIDE


class _Trainer(ApiStruct, frozen=True):
    num_nodes: Replicas | None = None
    image: str = ""
    resources_per_node: dict[str, Any] = field(default_factory=dict)


class _TrainJobSpec(ApiStruct, frozen=True):
    runtime_ref: _Reference
    trainer: _Trainer = field(default_factory=_Trainer)


def train_job(job: Obj, where: Where, look: ObjectLookup) -> tuple[PodPart, ...]:
    here = where.below("spec")
    spec = convert(job.get("spec") or {}, _TrainJobSpec, here)
    reference = spec.runtime_ref
    namespace = "" if reference.kind == _CLUSTER_WIDE else str(dig(job, ("metadata", "namespace")) or "")
    runtime = look(reference.kind, namespace, reference.name)
    if runtime is None:
        at = f" in {namespace}" if namespace else ""
        raise UserError(f"{reference.kind} {reference.name} not found{at}", where=here.below("runtimeRef.name"))
    inner = dig(runtime, ("spec", "template", "spec")) or {}
    parts = replicated_jobs(inner, Where(obj=f"{reference.kind} {reference.name}", path="spec.template.spec"), ())
    nodes = spec.trainer.num_nodes
    if nodes is None:
        said = dig(runtime, ("spec", "mlPolicy", "numNodes"))
        nodes = said if isinstance(said, int) else None
    leads = bool(dig(runtime, ("spec", "mlPolicy", "mpi", "runLauncherAsNode")))
    labels = {str(one.get("name")): _ancestor(one) for one in inner.get("replicatedJobs") or ()}
    return tuple(_made(part, labels.get(part.name, ""), spec.trainer, nodes, leads=leads) for part in parts)


def _made(part: PodPart, ancestor: str, trainer: _Trainer, nodes: int | None, *, leads: bool) -> PodPart:
    """`leads`: the launcher runs on one of the nodes."""
    is_node = part.name == "node"
    count, template = part.count, part.template
    if nodes is not None and (is_node or (ancestor == "trainer" and part.name != "launcher")):
        count = max(nodes - 1, 0) if leads and is_node else nodes
    if (is_node or ancestor == "trainer") and (trainer.resources_per_node or trainer.image):
        template = _with_resources(template, trainer)
    return PodPart(
        part.name,
        count,
        template,
        ("spec", "runtimeRef"),
        is_made=True,
        index_label=COMPLETION_INDEX,
        sub_group_label=JOB_INDEX,
        sub_groups=part.sub_groups,
    )


def _ancestor(replicated: Any) -> str:
    for way in (("template", "metadata"), ("template", "spec", "template", "metadata")):
        found = dig(replicated, (*way, "labels", ANCESTOR))
        if isinstance(found, str):
            return found
    return ""


def _with_resources(template: Obj, trainer: _Trainer) -> Obj:
    """The container named `node` is the trainer."""
    spec = template.get("spec") or {}
    said: Obj = {"image": trainer.image} if trainer.image else {}
    if trainer.resources_per_node:
        said["resources"] = trainer.resources_per_node
    containers = [{**one, **said} if one.get("name") == "node" else one for one in spec.get("containers") or ()]
    return {**template, "spec": {**spec, "containers": containers}}
