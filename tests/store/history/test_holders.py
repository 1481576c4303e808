"""Who pays for a pod: an administrator decides by the namespace, and a pod with GPUs is never the cluster's own."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from shoal.client.item import item_of
from shoal.cost.records import DeviceShare, Holder, Records
from shoal.store.history.measured import jobs_with_checkpoints
from shoal.store.history.node_rows import NodeDeviceNames
from shoal.store.history.pod_rows import holder_of, holding_of, read_pod

GPU = {"resources": {"limits": {"nvidia.com/gpu": "1"}}}
PART = {"resources": {"limits": {"nvidia.com/mig-1g.10gb": "1"}}}
CPU = {"resources": {"requests": {"cpu": "1"}}}


def _holder(
    owner: str = "",
    namespace: str = "lab",
    container: dict[str, Any] = CPU,
    namespace_labels: dict[str, str] | None = None,
    claims: tuple[dict[str, str], ...] = (),
    **meta: dict[str, str],
) -> Holder:
    owners = [{"apiVersion": "v1", "kind": owner, "name": "o", "uid": "o", "controller": True}] if owner else []
    pod = {
        "metadata": {
            "name": "p",
            "namespace": namespace,
            "uid": "u",
            "resourceVersion": "1",
            "ownerReferences": owners,
            **meta,
        },
        "spec": {"containers": [{"name": "main", "image": "x", **container}], "resourceClaims": list(claims)},
    }
    return holder_of(read_pod(item_of(msgspec.json.encode(pod))), namespace_labels or {})


def test_the_team_of_the_namespace_goes_before_that_of_the_pod() -> None:
    labels = {"shoal.dev/team": "other"}
    assert _holder(labels=labels, namespace_labels={"team": "blue"}).team == "blue"
    assert _holder(labels=labels).team == "other"
    assert _holder().team == "lab"


def test_a_pod_of_a_daemon_set_without_gpus_is_overhead() -> None:
    assert _holder("DaemonSet").is_overhead
    assert _holder("Node").is_overhead
    assert not _holder().is_overhead
    assert not _holder("Job").is_overhead


@pytest.mark.parametrize("owner", ["DaemonSet", "Node"])
def test_a_pod_that_asks_for_gpus_is_no_overhead_in_a_namespace_of_tenants(owner: str) -> None:
    assert not _holder(owner, container=GPU).is_overhead
    assert not _holder(owner, container=PART).is_overhead
    assert not _holder(owner, claims=({"name": "gpu", "resourceClaimName": "c"},)).is_overhead
    assert not _holder(owner, annotations={"gpu-fraction": "0.5"}).is_overhead
    assert not _holder(owner, container=PART, annotations={"gpu-fraction": "wrong"}).is_overhead
    assert not _holder(owner, annotations={"shoal.dev/devices": '{"main":{"nvidia.com/gpu":["GPU-a"]}}'}).is_overhead


def test_a_pod_of_the_cluster_is_overhead_also_with_gpus() -> None:
    assert _holder(namespace="kube-system", container=GPU).is_overhead
    assert _holder("DaemonSet", "gpu-operator", GPU).is_overhead


def test_a_pod_that_is_given_a_gpu_later_is_no_overhead_from_then_on() -> None:
    given = {"shoal.dev/devices": '{"main":{"nvidia.com/gpu":["GPU-a"]}}'}
    meta = {"name": "p", "namespace": "lab", "uid": "u", "resourceVersion": "1", "annotations": given}
    spec = {"nodeName": "n", "containers": [{"name": "main", "image": "x"}]}
    pod = read_pod(item_of(msgspec.json.encode({"metadata": meta, "spec": spec})))
    names = NodeDeviceNames(("GPU-a",), {"GPU-a": DeviceShare("GPU-a")})
    held = holding_of(pod, Holder("p", "lab", is_overhead=True), names, {}, 1000)
    assert held is not None
    assert held.devices == (DeviceShare("GPU-a"),)
    assert not held.holder.is_overhead


def test_the_queue_of_a_pod_is_that_of_its_own_label_or_of_its_admitted_job() -> None:
    admitted = {"kueue.x-k8s.io/local-queue-name": "research"}
    assert _holder("Job", labels=admitted).queue == "research"
    assert _holder("Job", labels={**admitted, "kueue.x-k8s.io/queue-name": "own"}).queue == "own"
    assert _holder("Job").queue == ""


@pytest.mark.parametrize(
    ("meta", "is_told"),
    [
        ({"labels": {"shoal.dev/checkpoint": "yes"}}, True),
        ({"annotations": {"shoal.dev/checkpoint-every": "10m"}}, True),
        ({"annotations": {"shoal.dev/last-checkpoint": "2026-01-01T00:00:00Z"}}, True),
        ({"annotations": {"shoal.dev/checkpoints": ""}}, True),
        ({"annotations": {"shoal.dev/progress": "3"}}, False),
        ({}, False),
    ],
    ids=["label", "every", "last", "checkpoints", "progress", "nothing"],
)
def test_a_job_writes_checkpoints_where_its_pods_say_so(meta: dict[str, dict[str, str]], is_told: bool) -> None:
    """Also where the program says it only after its start, when the holder is known already."""
    owners = [{"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "o", "controller": True}]
    head = {"name": "p", "namespace": "lab", "uid": "u", "resourceVersion": "1", "ownerReferences": owners}
    spec = {"nodeName": "n", "containers": [{"name": "main", "image": "x", **GPU}]}
    before, after = (
        read_pod(item_of(msgspec.json.encode({"metadata": {**head, **more}, "spec": spec})))
        for more in ({"labels": meta.get("labels", {})}, meta)
    )
    held = holding_of(after, holder_of(before, {}), NodeDeviceNames(("g",)), {}, 0)
    assert held is not None
    assert list(jobs_with_checkpoints(Records(holdings=(held,)))) == (["lab/j"] if is_told else [])
