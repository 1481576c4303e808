"""The work that is measured, as manifests, and questions about how far it is."""

from __future__ import annotations

from typing import Any

import msgspec

from bench.cluster.wire import Connection

Obj = dict[str, Any]
JOBS, DEPLOYMENTS = b"/apis/batch/v1/namespaces/default/jobs", b"/apis/apps/v1/namespaces/default/deployments"


def job(name: str, pods: int, run_s: int) -> Obj:
    """One GPU for each pod, which runs so long and is done."""
    template = _template(name, {"nvidia.com/gpu": "1"})
    template["metadata"]["annotations"] = {"shoal.dev/run-for": f"{run_s}s"}
    template["spec"]["restartPolicy"] = "Never"
    spec = {"completions": pods, "parallelism": pods, "template": template}
    return {"kind": "Job", "apiVersion": "batch/v1", "metadata": {"name": name}, "spec": spec}


def deployment(name: str, pods: int, limits: dict[str, str]) -> Obj:
    selector = {"matchLabels": {"app": name}}
    spec = {"replicas": pods, "selector": selector, "template": _template(name, limits)}
    return {"kind": "Deployment", "apiVersion": "apps/v1", "metadata": {"name": name}, "spec": spec}


def _template(name: str, limits: dict[str, str]) -> Obj:
    container = {"name": "main", "image": "work", "resources": {"limits": limits}}
    return {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}}


async def create(line: Connection, path: bytes, obj: Obj) -> None:
    code, body = await line.answer(b"POST", path, msgspec.json.encode(obj))
    if code != 201:
        raise RuntimeError(f"not created: {body[:300]!r}")


async def status(line: Connection, path: bytes, name: str) -> Obj:
    code, body = await line.answer(b"GET", path + b"/" + name.encode())
    if code != 200:
        raise RuntimeError(f"not found: {body[:300]!r}")
    found: Obj = msgspec.json.decode(body)
    return found.get("status") or {}


async def ready_nodes(line: Connection) -> int:
    _, body = await line.answer(b"GET", b"/api/v1/nodes?resourceVersion=0")
    items = msgspec.json.decode(body)["items"]
    return sum(_is_ready(node) for node in items)


def _is_ready(node: Obj) -> bool:
    conditions = node["status"].get("conditions") or []
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
