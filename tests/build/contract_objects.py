"""Objects of built-in kinds that the contract suite writes: small, and such that nobody else touches them meanwhile.

A deployment here is paused and wants no pods, and a pod is gated, so that on a cluster with controllers and kubelets
nothing moves under a test.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from build.cluster_api import PATIENCE_S, Answer, Api

Obj = dict[str, Any]


def config_map(name: str, data: Obj | None = None, **metadata: Any) -> Obj:
    made: Obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}}
    return made if data is None else {**made, "data": data}


def container(name: str = "main", **fields: Any) -> Obj:
    return {"name": name, "image": f"registry.example/{name}:1", **fields}


def gated_pod(name: str, *containers: Obj, **spec: Any) -> Obj:
    held = list(containers) or [container()]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"schedulingGates": [{"name": "example.com/never"}], "containers": held, **spec},
    }


def deployment(name: str, *containers: Obj, template: Obj | None = None, **spec: Any) -> Obj:
    held = {"containers": list(containers) or [container()], **(template or {})}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": 0,
            "paused": True,
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": held},
            **spec,
        },
    }


def service(name: str, *ports: Obj, **spec: Any) -> Obj:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name},
        "spec": {"selector": {"app": name}, "ports": list(ports), **spec},
    }


def managers(obj: Obj) -> dict[tuple[str, str], Obj]:
    """The owned fields by (manager, operation), or (manager, operation/subresource)."""
    found = {}
    for entry in obj["metadata"].get("managedFields", []):
        where = f"/{entry['subresource']}" if entry.get("subresource") else ""
        found[entry["manager"], entry["operation"] + where] = entry["fieldsV1"]
    return found


async def eventually(ask: Callable[[], Awaitable[Answer]], holds: Callable[[Answer], bool]) -> Answer:
    """Ask again until it holds: for what a server does in its own time and of which it sends no event."""
    answer = await ask()
    try:
        async with asyncio.timeout(PATIENCE_S):
            while not holds(answer):
                answer = await ask()
    except TimeoutError:
        raise AssertionError(f"still {answer.code}: {answer.raw[:2000].decode()}") from None
    return answer


async def made(api: Api, plural: str, obj: Obj, **query: Any) -> Obj:
    """The object, created in the test's namespace."""
    version = obj["apiVersion"]
    path = api.core(plural) if version == "v1" else api.group(version, plural)
    return (await api.post(path, obj, **query)).ok(201)
