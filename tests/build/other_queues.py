"""Queues of Volcano and KAI, and groups in them, as manifests in one line each."""

from __future__ import annotations

from typing import Any

from build.manifests import Object, thing, volcano_group

KAI_QUEUE = "kai.scheduler/queue"


def volcano_queue(name: str, gpus: int | None = None, **spec: Any) -> Object:
    limit = {} if gpus is None else {"capability": {"nvidia.com/gpu": gpus}}
    return thing("scheduling.volcano.sh/v1beta1", "Queue", name, spec={"weight": 1, **limit, **spec})


def kai_queue(name: str, parent: str = "", quota: float = -1, limit: float = -1) -> Object:
    share = {"quota": quota, "limit": limit, "overQuotaWeight": 1}
    endless = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
    spec = {"parentQueue": parent, "resources": {"gpu": share, "cpu": endless, "memory": endless}}
    return thing("scheduling.run.ai/v2", "Queue", name, spec=spec)


def vgroup(name: str, minimum: int, queue: str, phase: str = "Inqueue", **spec: Any) -> Object:
    return volcano_group(name, minimum, queue=queue, **spec) | {"status": {"phase": phase}}
