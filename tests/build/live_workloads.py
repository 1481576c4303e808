"""Workloads whose pods no scheduler takes, for tests that play the kubelet."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

from build.api_objects import IMAGE, NO_SCHEDULER
from build.cluster_api import Api, Obj


def template(app: str = "web", image: str = IMAGE, **spec: Any) -> Obj:
    held = {"schedulerName": NO_SCHEDULER, "containers": [{"name": "main", "image": image}], **spec}
    return {"metadata": {"labels": {"app": app}}, "spec": held}


def workload(kind: str, name: str = "web", **spec: Any) -> Obj:
    """Of apps/v1: what all kinds there share."""
    whole = {"selector": {"matchLabels": {"app": name}}, "template": template(name), **spec}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name}, "spec": whole}


def images(pods: list[Obj]) -> list[str]:
    return sorted(pod["spec"]["containers"][0]["image"] for pod in pods)


@asynccontextmanager
async def own_node(api: Api, labels: dict[str, str] | None = None, **spec: Any) -> AsyncIterator[str]:
    """The name of a node that is only an object, Ready as far as its status says, and gone after the test."""
    name = f"paper-{uuid4().hex[:10]}"
    has = {"cpu": "8", "memory": "32Gi", "pods": "110"}
    body = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
        "spec": spec,
        "status": {"capacity": has, "allocatable": has, "conditions": [node_ready("True")]},
    }
    (await api.post("/api/v1/nodes", body)).ok(201)
    try:
        await api.patch(f"/api/v1/nodes/{name}", {"spec": {"taints": spec.get("taints")}})
        yield name
    finally:
        await api.delete(f"/api/v1/nodes/{name}")


def node_ready(status: str, reason: str = "KubeletReady") -> Obj:
    return {"type": "Ready", "status": status, "reason": reason, "message": "as the test says"}
