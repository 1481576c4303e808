"""Resource requests by the size of the cluster, from measured use (docs/performance.md)."""

from __future__ import annotations

from typing import Any

Obj = dict[str, Any]
_BASE_MIB, _MIB_PER_1000_NODES = 160, 70
"""Measured: 148 MB with 1,000 nodes and 10,000 pods, 410 MB with 5,000 nodes and 50,000 pods."""
_STEP_MIB = 32
_LEAST_CPU_MILLI, _MILLI_PER_1000_NODES = 100, 200


def scheduler_resources(nodes: int) -> Obj:
    """The limit of memory is twice the request. There is no limit of CPU: decisions would wait for it."""
    needed = _BASE_MIB + nodes * _MIB_PER_1000_NODES // 1000
    memory = -(-needed // _STEP_MIB) * _STEP_MIB
    cpu = _LEAST_CPU_MILLI + nodes * _MILLI_PER_1000_NODES // 1000
    return {"requests": {"cpu": f"{cpu}m", "memory": f"{memory}Mi"}, "limits": {"memory": f"{2 * memory}Mi"}}


def operator_resources(nodes: int) -> Obj:
    memory = 96 + nodes * 20 // 1000
    return {"requests": {"cpu": "50m", "memory": f"{memory}Mi"}, "limits": {"memory": f"{3 * memory}Mi"}}


def observer_resources(nodes: int) -> Obj:
    """A reading holds all objects of the cluster, and uses a core for some seconds."""
    memory = 256 + nodes * 400 // 1000
    return {"requests": {"cpu": "50m", "memory": f"{memory}Mi"}, "limits": {"memory": f"{2 * memory}Mi"}}


def pod_autoscaling_resources(nodes: int) -> Obj:
    """It holds the pods, nodes and jobs of the cluster."""
    memory = 160 + nodes * 300 // 1000
    return {"requests": {"cpu": "50m", "memory": f"{memory}Mi"}, "limits": {"memory": f"{2 * memory}Mi"}}
