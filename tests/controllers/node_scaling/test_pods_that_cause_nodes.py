"""Which pods cause nodes."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from shoal.api.decode import read
from shoal.controllers.node_scaling.cluster_state import unschedulable
from shoal.store.inventory import Inventory

REFUSED = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/2 nodes are available"}

CASES: dict[str, tuple[dict[str, Any], bool]] = {
    "a pod that the scheduler refused": ({}, True),
    "a pod that no scheduler has tried": ({"status": {"phase": "Pending"}}, False),
    "a pod with a scheduling gate": (
        {"status": {"conditions": [{**REFUSED, "reason": "SchedulingGated"}]}},
        False,
    ),
    "a pod that has a place after a preemption": (
        {"status": {"conditions": [REFUSED], "nominatedNodeName": "n1"}},
        False,
    ),
    "a pod on a node": ({"spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "i"}]}}, False),
    "a pod that is being deleted": ({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}, False),
    "a pod that a queue of KAI holds at its limit": (
        {"status": {"conditions": [{**REFUSED, "message": "OverLimit: queue team has 8 of 8 GPUs"}]}},
        False,
    ),
    "a pod that a queue of Volcano holds": (
        {"status": {"conditions": [{**REFUSED, "message": "queue resource quota insufficient: insufficient gpu"}]}},
        False,
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_only_pods_that_lack_a_node_cause_one(case: tuple[dict[str, Any], bool]) -> None:
    changed, causes_node = case
    pod: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "a", **changed.get("metadata", {})},
        "spec": changed.get("spec", {"containers": [{"name": "c", "image": "i"}]}),
        "status": changed.get("status", {"conditions": [REFUSED]}),
    }
    found = unschedulable(Inventory(read(msgspec.json.encode(pod))))
    assert bool(found) is causes_node
