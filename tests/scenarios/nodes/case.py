"""Reads what a case about nodes gives: instance types, pools, nodes, pods."""

from __future__ import annotations

from typing import Any

from shoal.api.decode import convert
from shoal.api.node import Node
from shoal.api.pod import Pod
from shoal.api.workloads import DaemonSet
from shoal.autoscale.nodes.existing_nodes import ExistingNode
from shoal.autoscale.nodes.instance_reading import instance_type_of
from shoal.autoscale.nodes.plan import PlanningSettings
from shoal.autoscale.nodes.planning_input import PlanningInput
from shoal.autoscale.nodes.pool_reading import pool_of
from shoal.autoscale.nodes.volumes import Volumes
from shoal.units.errors import Where

Raw = dict[str, Any]


def planning_input(case: Raw) -> PlanningInput:
    types = tuple(instance_type_of(each, Where(obj=each["name"])) for each in case["instanceTypes"])
    pools = tuple(pool_of(each, has_defaults=False) for each in case["nodePools"])
    settings = case.get("settings") or {}
    return PlanningInput(
        pools=pools,
        types={pool.name: types for pool in pools},
        nodes=tuple(existing_node(each) for each in case.get("existingNodes") or ()),
        pods=tuple(pod_of(each) for each in case.get("pods") or ()),
        daemon_sets=tuple(_daemon_set(each) for each in case.get("daemonSets") or ()),
        volumes=Volumes(
            case.get("persistentVolumeClaims") or (),
            case.get("persistentVolumes") or (),
            case.get("storageClasses") or (),
        ),
        settings=PlanningSettings(
            settings.get("preferencePolicy", "Respect"), settings.get("minValuesPolicy", "Strict")
        ),
    )


def existing_node(raw: Raw) -> ExistingNode:
    node = {
        "metadata": {
            "name": raw["name"],
            "labels": raw.get("labels") or {},
            "annotations": raw.get("annotations") or {},
        },
        "spec": {"taints": raw.get("taints") or []},
        "status": {"capacity": raw.get("capacity") or {}, "allocatable": raw.get("allocatable") or {}},
    }
    return ExistingNode(
        node=convert(node, Node, Where(obj=raw["name"])),
        pods=tuple(pod_of(each) for each in raw.get("pods") or ()),
        is_managed=raw.get("managed", True),
        is_initialized=raw.get("initialized", True),
        is_deleting=raw.get("deleting", False),
    )


def pod_of(raw: Raw) -> Pod:
    meta = dict(raw["metadata"])
    meta.setdefault("namespace", "default")
    if kind := meta.get("ownerKind"):
        meta["ownerReferences"] = [{"kind": kind, "name": "owner", "controller": True}]
    if meta.get("terminating"):
        meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return convert({**raw, "metadata": meta}, Pod, Where(obj=meta["name"]))


def _daemon_set(raw: Raw) -> DaemonSet:
    return convert({**raw, "metadata": {"namespace": "default", **raw["metadata"]}}, DaemonSet, Where())
