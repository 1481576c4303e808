"""The priorities that teams share: as PriorityClasses for pods, and as WorkloadPriorityClasses for queued jobs.

They are the same for all teams, because a class of a team's own would let it choose its place before the others.
"""

from __future__ import annotations

from typing import Final

from shoal.policy.advice import Obj

PRIORITIES: Final = {"production": 1000, "research": 100, "batch": 10}
SYSTEM_CLASSES: Final = ("system-cluster-critical", "system-node-critical")
"""Every cluster has them; pods of a team with one would evict the cluster's own programs."""
_ABOUT: Final = {
    "production": "Serving and other work that must not wait",
    "research": "Training and experiments",
    "batch": "Work that runs when nothing else needs the GPUs",
}


def priority_class(name: str) -> Obj:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": PRIORITIES[name],
        "description": _ABOUT[name],
    }


def workload_priority_class(name: str, version: str = "v1beta2") -> Obj:
    return {
        "apiVersion": f"kueue.x-k8s.io/{version}",
        "kind": "WorkloadPriorityClass",
        "metadata": {"name": name},
        "value": PRIORITIES[name],
        "description": _ABOUT[name],
    }
