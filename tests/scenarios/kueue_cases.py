"""Builders of small cases in the form of Kueue's: one cluster queue, one flavor, what a test says beyond that."""

from __future__ import annotations

from typing import Any

from .kueue.results import Options, results_of_case
from .result import Result


def quotas(flavor: str = "default", **nominal: str) -> dict[str, Any]:
    return {"name": flavor, "resources": [{"name": name, "nominalQuota": each} for name, each in nominal.items()]}


def queue(name: str = "cq", *flavors: dict[str, Any], **spec: Any) -> dict[str, Any]:
    found = flavors or (quotas(cpu="4"),)
    covered = [each["name"] for each in found[0]["resources"]]
    group = {"coveredResources": covered, "flavors": list(found)}
    return {"name": name, "spec": {"namespaceSelector": {}, "resourceGroups": [group], **spec}}


def waiting(name: str, cpu: str = "1", count: int = 1, **changes: Any) -> dict[str, Any]:
    pod_set = {"name": "main", "count": count, "requests": {"cpu": cpu}, **changes.pop("podSet", {})}
    return {"name": name, "namespace": "default", "queue": "lq", "podSets": [pod_set], **changes}


def holding(name: str, cpu: str = "1", *, flavor: str = "default", **changes: Any) -> dict[str, Any]:
    charged = {"flavors": {"cpu": flavor}, "usage": {"cpu": cpu}, "admittedCount": 1, **changes.pop("podSet", {})}
    held = {"clusterQueue": "cq", "admitted": True, "quotaReservedOffsetSeconds": 0.0, **changes}
    return waiting(name, cpu, podSet=charged, **held)


def granted(count: int = 1, **said: Any) -> dict[str, Any]:
    """An expected admission."""
    return {"clusterQueue": "cq", "podSets": {"main": {"count": count, "flavors": {"cpu": "default"}, **said}}}


def expecting(admitted: dict[str, Any] | None = None, **said: Any) -> dict[str, Any]:
    return {"admitted": admitted or {}, "preempted": [], "inadmissible_or_pending": [], **said}


def scenario(**changes: Any) -> dict[str, Any]:
    return {
        "id": "one",
        "level": "scheduler-cycle",
        "cycles": 1,
        "namespaces": [{"name": "default", "labels": {}}],
        "flavors": [{"name": "default"}],
        "clusterQueues": [queue()],
        "localQueues": [{"name": "lq", "namespace": "default", "clusterQueue": "cq"}],
        "admitted": [],
        "pending": [waiting("a")],
        "expect": expecting({"default/a": granted(usage={"cpu": "1"})}),
        **changes,
    }


HOSTS = ("kubernetes.io/hostname",)


def on_topology(**changes: Any) -> dict[str, Any]:
    """Two nodes with 2 cpu each, in a flavor with a topology."""
    nodes = [
        {"name": name, "labels": {HOSTS[0]: name, "pool": "a"}, "allocatable": {"cpu": "2", "pods": "10"}}
        for name in ("x1", "x2")
    ]
    return scenario(
        **{
            "flavors": [{"name": "default", "nodeLabels": {"pool": "a"}, "topologyName": "hosts"}],
            "topologies": [{"name": "hosts", "spec": {"levels": [{"nodeLabel": HOSTS[0]}]}}],
            "nodes": nodes,
            **changes,
        }
    )


def domains(**counts: int) -> dict[str, Any]:
    """Expected pods per host."""
    return {"levels": list(HOSTS), "domains": [{"values": [name], "count": each} for name, each in counts.items()]}


def unit(**changes: Any) -> dict[str, Any]:
    """A case about one component."""
    return scenario(level="unit", **changes)


def result_of(raw: dict[str, Any]) -> Result:
    (result,) = results_of_case(raw, Options())
    return result
