"""Admission webhooks of the contract suite: asked about one namespace, and in force before a test goes on."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from build.cluster_api import Answer, Api
from build.contract_objects import config_map, deployment, eventually, gated_pod
from build.hook_server import HookServer, allowed, hook_server
from build.live_waits import until

Obj = dict[str, Any]
CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1"
CONFIG_MAPS = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}


def configuration(api: Api, hook: HookServer, kind: str, path: str, **more: Any) -> Obj:
    webhook = {
        "name": "hook.example.com",
        "clientConfig": {"url": f"{hook.url}{path}", "caBundle": hook.bundle},
        "rules": [CONFIG_MAPS],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": api.namespace}},
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "timeoutSeconds": 5,
        **more,
    }
    name = f"t-{uuid.uuid4().hex[:10]}"
    group = "admissionregistration.k8s.io/v1"
    return {"apiVersion": group, "kind": kind, "metadata": {"name": name}, "webhooks": [webhook]}


@asynccontextmanager
async def hooked(api: Api, kind: str = "ValidatingWebhookConfiguration", **more: Any) -> AsyncIterator[HookServer]:
    """A hook at /hook that allows, in force until the end of the block. It is asked about `probe` until it answers."""
    plural = f"{kind.lower()}s"
    # What a controller writes into every new namespace, it has written: nobody but the test is asked about.
    await until(api, api.core("configmaps", "kube-root-ca.crt"), lambda one: one["metadata"].get("annotations"))
    async with hook_server() as hook:
        hook.answers["/hook"] = allowed
        made_up = configuration(api, hook, kind, "/hook", **more)
        (await api.post(f"{CONFIGURATIONS}/{plural}", made_up)).ok(201)
        try:
            await in_force(api, hook)
            yield hook
        finally:
            await api.delete(f"{CONFIGURATIONS}/{plural}/{made_up['metadata']['name']}")


async def in_force(api: Api, hook: HookServer) -> None:
    probe = config_map("probe", labels={"probe": "yes"})
    deploy = deployment("probe")

    async def ask() -> Answer:
        await api.post(api.core("pods"), gated_pod("probe"), dryRun="All")
        await api.post(api.group("apps/v1", "deployments"), deploy, dryRun="All")
        return await api.post(api.core("configmaps"), probe, dryRun="All")

    await eventually(ask, lambda _: bool(hook.asked))
    hook.asked.clear()
