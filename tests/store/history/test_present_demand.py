"""The present demand for GPUs counts what the history counts: parts of GPUs, MIG instances, and claimed devices."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from shoal.client.item import Item
from shoal.cost.records import FULL_SHARE, DeviceShare
from shoal.store.history.present_demand import present_gpus

NOW = datetime(2026, 11, 27, 12, tzinfo=UTC)
GPU = "nvidia.com/gpu"


def item(obj: dict[str, Any]) -> Item:
    meta = obj["metadata"]
    return Item(meta.get("namespace", ""), meta["name"], meta["name"], 1, msgspec.json.encode(obj))


def pod(
    limits: dict[str, str] | None = None, notes: dict[str, str] | None = None, phase: str = "Pending", **spec: Any
) -> Item:
    container = {"name": "main", "resources": {"limits": limits or {}, "requests": limits or {}}}
    meta = {"name": "p", "namespace": "team", "annotations": notes or {}}
    return item({"metadata": meta, "spec": {"containers": [container], **spec}, "status": {"phase": phase}})


NODE = item({"metadata": {"name": "n", "labels": {}}, "status": {"capacity": {GPU: "8"}, "allocatable": {GPU: "8"}}})


def gpus(*pods: Item, claimed: tuple[DeviceShare, ...] = ()) -> float:
    nodes = {"n": NODE}
    return present_gpus(pods, nodes.get, lambda _namespace, name: claimed if name == "made" else (), NOW)


def test_whole_gpus_are_counted_whether_the_pod_is_bound_or_waits() -> None:
    assert gpus(pod({GPU: "4"}), pod({GPU: "2"}, nodeName="n")) == 6


@pytest.mark.parametrize("where", [{}, {"nodeName": "n"}])
def test_a_part_of_a_gpu_is_counted_as_this_part(where: dict[str, Any]) -> None:
    assert gpus(*[pod(notes={"gpu-fraction": "0.5"}, **where)] * 16) == 8


def test_a_mig_instance_is_a_part_of_a_gpu() -> None:
    assert gpus(pod({"nvidia.com/mig-1g.10gb": "1"}, nodeName="n")) == 0.125


def test_a_container_that_runs_beside_the_others_counts_too() -> None:
    beside = {"name": "side", "restartPolicy": "Always", "resources": {"requests": {GPU: "1"}, "limits": {GPU: "1"}}}
    assert gpus(pod({GPU: "1"}, initContainers=[beside])) == 2


def test_claimed_devices_are_counted() -> None:
    shares = (DeviceShare("g0"), DeviceShare("g1", FULL_SHARE // 2))
    claims = [{"name": "gpu", "resourceClaimName": "made"}]
    assert gpus(pod(nodeName="n", resourceClaims=claims), claimed=shares) == 1.5


def test_pods_that_are_finished_or_cannot_be_read_count_nothing() -> None:
    broken = Item("team", "b", "b", 1, b'{"metadata": 3}')
    assert gpus(pod({GPU: "1"}, phase="Succeeded", nodeName="n"), broken) == 0
