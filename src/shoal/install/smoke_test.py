"""The pod that shows that containers get GPUs: NVIDIA's vectorAdd sample, once, on any node."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from shoal.install.release import Release
from shoal.install.values.reading import ChartValues

Obj = dict[str, Any]
POD_NAME = "shoal-smoke-test"
COMPONENT = "smoke-test"
_GPU, _MIG = "nvidia.com/gpu", "nvidia.com/mig-"
_USER = 65532


def resource_to_test(allocatable: Iterable[Mapping[str, str]]) -> str:
    """The resource that the pod requests: a GPU, else the smallest MIG profile by name; empty if no node has one."""
    names = {name for resources in allocatable for name, amount in resources.items() if amount not in ("0", "")}
    if _GPU in names:
        return _GPU
    return min((name for name in names if name.startswith(_MIG)), default="")


def smoke_test_pod(release: Release, values: ChartValues, resource: str) -> Obj:
    container = {
        "name": "vectoradd",
        "image": values.get("smokeTest.image"),
        "resources": {"limits": {resource: 1}},
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }
    parts = values.get("controllers")
    spec: Obj = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 0,
        "schedulerName": "shoal" if not parts or "scheduler" in parts else "default-scheduler",
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": _USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [container],
        "tolerations": [{"key": _GPU, "operator": "Exists"}],
    }
    meta = {"name": POD_NAME, "namespace": release.namespace, "labels": release.labels(COMPONENT)}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def outcome(pod: Obj) -> str | None:
    """None while it runs; empty when it succeeded; else why it failed."""
    status = pod.get("status") or {}
    phase = status.get("phase", "")
    if phase == "Succeeded":
        return ""
    if phase != "Failed":
        return None
    for one in status.get("containerStatuses") or ():
        ended = (one.get("state") or {}).get("terminated") or {}
        if ended:
            told = ended.get("message") or ended.get("reason") or "failed"
            return f"exit code {ended.get('exitCode')}: {told}"
    return str(status.get("message") or status.get("reason") or "failed")
