"""Pods as controllers see them, made directly: `sight("web-1", ready_s=10)`; for tests of what is decided by them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec

from shoal.client.owned_pods.pod_view import PodView

NOW_S = 1_767_225_600.0
AGE_S = 100.0


def pod_obj(
    name: str,
    *,
    phase: str = "Running",
    ready_s: float | None = AGE_S,
    age_s: float = AGE_S,
    node: str = "n1",
    restarts: int = 0,
    ending: bool = False,
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
) -> dict[str, Any]:
    """`ready_s`: for how long it has been ready; None when it is not."""
    conditions = []
    if ready_s is not None:
        conditions = [{"type": "Ready", "status": "True", "lastTransitionTime": _at(ready_s)}]
    meta: dict[str, Any] = {"name": name, "namespace": "default", "uid": name, "creationTimestamp": _at(age_s)}
    meta |= {"labels": labels or {}, "annotations": annotations or {}}
    if ending:
        meta["deletionTimestamp"] = _at(0)
    containers = [{"restartCount": restarts}]
    status = {"phase": phase, "conditions": conditions, "containerStatuses": containers}
    return {"metadata": meta, "spec": {"nodeName": node}, "status": status}


def sight(name: str, **told: Any) -> PodView:
    return msgspec.convert(pod_obj(name, **told), PodView)


def _at(ago_s: float) -> str:
    return datetime.fromtimestamp(NOW_S - ago_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
