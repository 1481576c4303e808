"""Manifests in few words: plain dictionaries as the API has them, and the files that commands read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

Object = dict[str, Any]


def node(name: str, gpus: int = 0, cpu: int | str = 64, labels: dict[str, str] | None = None, **more: Any) -> Object:
    amounts = {"cpu": cpu, "memory": "512Gi", "pods": 110, **({"nvidia.com/gpu": gpus} if gpus else {})}
    return _object("v1", "Node", name, "", labels, status={"allocatable": amounts}, **more)


def pod(
    name: str,
    gpus: int = 0,
    on: str = "",
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    status: Object | None = None,
    meta: Object | None = None,
    limits: Object | None = None,
    **spec: Any,
) -> Object:
    namespace, _, short = name.rpartition("/")
    wanted = {**({"nvidia.com/gpu": gpus} if gpus else {}), **(limits or {})}
    made = _object("v1", "Pod", short, namespace, labels)
    made["metadata"] |= {**({"annotations": annotations} if annotations else {}), **(meta or {})}
    made["spec"] = {"containers": [{"name": "c", "resources": {"limits": wanted}}], **spec}
    if on:
        made["spec"]["nodeName"] = on
    if status:
        made["status"] = status
    return made


def job(name: str, pods: int, gpus: int = 0, labels: dict[str, str] | None = None, **more: Any) -> Object:
    """`annotations` are the job's, `template` the metadata of its pods."""
    namespace, _, short = name.rpartition("/")
    made = _object("batch/v1", "Job", short, namespace, labels)
    if annotations := more.pop("annotations", None):
        made["metadata"]["annotations"] = annotations
    template = {"metadata": more.pop("template", {}), "spec": pod(name, gpus)["spec"] | {"restartPolicy": "Never"}}
    made["spec"] = {"parallelism": pods, "template": template, **more}
    return made


def replicas(kind: str, name: str, count: int, gpus: int = 0, **more: Any) -> Object:
    namespace, _, short = name.rpartition("/")
    labels = {"app": short}
    made = _object("apps/v1", kind, short, namespace, labels)
    made["metadata"] |= more
    template = {"metadata": {"labels": labels}, "spec": pod(name, gpus)["spec"]}
    made["spec"] = {"replicas": count, "selector": {"matchLabels": labels}, "template": template}
    return made


def priority_class(name: str, value: int, **more: Any) -> Object:
    return _object("scheduling.k8s.io/v1", "PriorityClass", name, "", None, value=value, **more)


def volcano_group(name: str, minimum: int, **spec: Any) -> Object:
    return group("scheduling.volcano.sh/v1beta1", name, minMember=minimum, **spec)


def kai_group(name: str, minimum: int | None = None, **spec: Any) -> Object:
    return group("scheduling.run.ai/v2alpha2", name, **({} if minimum is None else {"minMember": minimum}), **spec)


def group(version: str, name: str, **spec: Any) -> Object:
    namespace, _, short = name.rpartition("/")
    return _object(version, "PodGroup", short, namespace, None, spec=spec)


def hyper_node(name: str, tier: int, *members: Object, tier_name: str = "") -> Object:
    spec = {"tier": tier, "members": list(members), **({"tierName": tier_name} if tier_name else {})}
    return _object("topology.volcano.sh/v1alpha1", "HyperNode", name, "", None, spec=spec)


def exactly(kind: str, name: str) -> Object:
    return {"type": kind, "selector": {"exactMatch": {"name": name}}}


def topology(version: str, name: str, *levels: str) -> Object:
    return _object(version, "Topology", name, "", None, spec={"levels": [{"nodeLabel": level} for level in levels]})


def thing(version: str, kind: str, name: str, **more: Any) -> Object:
    """Anything else."""
    namespace, _, short = name.rpartition("/")
    return _object(version, kind, short, namespace, None, **more)


def as_file(folder: Path, *objects: Object, name: str = "world.json") -> str:
    """One file with all of them, as `kubectl get -o json` prints lists."""
    path = folder / name
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}), encoding="utf-8")
    return str(path)


def _object(version: str, kind: str, name: str, namespace: str, labels: dict[str, str] | None, **more: Any) -> Object:
    meta: Object = {"name": name}
    if namespace:
        meta["namespace"] = namespace
    if labels:
        meta["labels"] = labels
    return {"apiVersion": version, "kind": kind, "metadata": meta, **more}
