"""Objects that contract tests create, and what has to be there before a real cluster takes them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import aiohttp

from build.cluster_api import Api, Obj

IMAGE = "registry.k8s.io/pause:3.10"
NO_SCHEDULER = "nobody-schedules-this"
"""A scheduler that does not exist: the pod stays where the test puts it."""
ABSENT = "no-such-node"
HELD = "example.com/held"
"""A finalizer that nobody but the test takes away."""


def configmap(name: str, data: Mapping[str, str] | None = None, **metadata: Any) -> Obj:
    found: Obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}}
    return found if data is None else {**found, "data": dict(data)}


def secret(name: str, **rest: Any) -> Obj:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, **rest}


def pod(name: str, *, labels: Mapping[str, str] | None = None, **spec: Any) -> Obj:
    """A pod that no scheduler takes."""
    whole = {"schedulerName": NO_SCHEDULER, "containers": [{"name": "main", "image": IMAGE}], **spec}
    metadata: Obj = {"name": name, **({"labels": dict(labels)} if labels else {})}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": whole}


def container(**rest: Any) -> Obj:
    return {"name": "main", "image": IMAGE, **rest}


def template(**spec: Any) -> Obj:
    whole = {"schedulerName": NO_SCHEDULER, "containers": [container()], **spec}
    return {"metadata": {"labels": {"app": "web"}}, "spec": whole}


def deployment(name: str, **spec: Any) -> Obj:
    whole = {"replicas": 0, "selector": {"matchLabels": {"app": "web"}}, "template": template(), **spec}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": whole}


async def make_configmap(api: Api, name: str, data: Mapping[str, str] | None = None, **metadata: Any) -> Obj:
    return (await api.post(api.core("configmaps"), configmap(name, data, **metadata))).ok(201)


async def make_secret(api: Api, name: str, **rest: Any) -> Obj:
    return (await api.post(api.core("secrets"), secret(name, **rest))).ok(201)


async def make_pod(api: Api, name: str, *, labels: Mapping[str, str] | None = None, **spec: Any) -> Obj:
    await ready_for_pods(api)
    return (await api.post(api.core("pods"), pod(name, labels=labels, **spec))).ok(201)


async def ready_for_pods(api: Api) -> None:
    """Where a controller makes the default account of a namespace, pods are refused until it has."""
    path, only = api.core("serviceaccounts"), "metadata.name=default"
    if (await api.get(path, fieldSelector=only)).ok()["items"]:
        return
    async with api.watch(path, fieldSelector=only, timeoutSeconds=30) as watch:
        try:
            await watch.next_of("ADDED")
        except (AssertionError, aiohttp.ClientError, TimeoutError):
            return  # A cluster without accounts.


async def let_go(api: Api, path: str) -> None:
    """Take the finalizers from an object, so that it can end."""
    (await api.patch(path, {"metadata": {"finalizers": None}})).ok()


def names(listed: Obj) -> list[str]:
    return [item["metadata"]["name"] for item in listed["items"]]


def line(value: Any) -> bytes:
    return json.dumps(value).encode()
