"""Owners of pods that name KAI's scheduler, and the pods that their operators would make."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from build.live_schedulers import pod
from build.small_clusters import SmallCluster
from shoal.client.ecosystem_kinds import PYTORCH_JOBS
from shoal.client.item import Obj
from shoal.client.kind import DEPLOYMENTS, JOBS, PODS, Kind

QUEUED = {"kai.scheduler/queue": "team"}
_ROLE = "training.kubeflow.org/replica-type"


async def add_owner(cluster: SmallCluster, kind: Kind, name: str, spec: Obj, **meta: Any) -> Obj:
    made = await cluster.create(kind, {"metadata": {"name": name, **meta}, "spec": spec})
    return {**made, "apiVersion": kind.api_version, "kind": kind.name}


async def add_pytorch_job(cluster: SmallCluster, name: str, workers: int, **meta: Any) -> Obj:
    template = {"spec": {"containers": [{"name": "pytorch", "image": "train"}]}}
    specs = {"Master": {"replicas": 1, "template": template}, "Worker": {"replicas": workers, "template": template}}
    return await add_owner(cluster, PYTORCH_JOBS, name, {"pytorchReplicaSpecs": specs}, **meta)


async def add_job(cluster: SmallCluster, name: str, **meta: Any) -> Obj:
    containers = [{"name": "main", "image": "train"}]
    template = {"spec": {"restartPolicy": "Never", "containers": containers}}
    return await add_owner(cluster, JOBS, name, {"parallelism": 3, "template": template}, **meta)


async def add_deployment(cluster: SmallCluster, name: str, **meta: Any) -> Obj:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "serve"}]}}
    spec = {"selector": {"matchLabels": labels}, "template": template}
    return await add_owner(cluster, DEPLOYMENTS, name, spec, **meta)


async def add_owned(
    cluster: SmallCluster, owner: Obj | None, name: str, labels: Mapping[str, str] | None = None, **spec: Any
) -> None:
    body = kai_pod(name, labels, **spec)
    if owner is not None:
        meta = owner["metadata"]
        who = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": meta["name"], "uid": meta["uid"]}
        body["metadata"]["ownerReferences"] = [{**who, "controller": True}]
    await cluster.create(PODS, body)


async def add_pods_of_pytorch(cluster: SmallCluster, owner: Obj, role: str, count: int) -> None:
    for index in range(count):
        await add_owned(cluster, owner, f"{owner['metadata']['name']}-{role}-{index}", {_ROLE: role})


def kai_pod(name: str, labels: Mapping[str, str] | None = None, gpus: int = 1, **spec: Any) -> Obj:
    return pod(name, gpus=gpus, labels=dict(labels or {}), **{"schedulerName": "kai-scheduler", **spec})
