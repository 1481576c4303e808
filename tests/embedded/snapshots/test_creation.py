"""The objects of a snapshot in an API server without controllers: what is created, and what is said of the rest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from build.small_clusters import small_cluster
from build.virtual_time import virtual
from shoal.client.kind import JOBS, NODES, PODS
from shoal.embedded.snapshots.creation import SnapshotStart, create_snapshot, snapshot_start

Obj = dict[str, Any]
NODE: Obj = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n", "labels": {"rack": "r"}},
    "status": {"capacity": {"cpu": "8", "memory": "32Gi", "pods": "110"}},
}


def job() -> Obj:
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "x"}]}}
    meta = {"name": "j", "namespace": "t", "uid": "old", "labels": {"team": "a"}}
    status = {"active": 1, "ready": 1}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": meta,
        "spec": {"template": template},
        "status": status,
    }


def pod(name: str, **meta: Any) -> Obj:
    spec = {"nodeName": "n", "restartPolicy": "Never", "containers": [{"name": "c", "image": "x"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "t", **meta}, "spec": spec}


def start(*objects: Obj) -> SnapshotStart:
    return snapshot_start([NODE, *objects], Path("snapshot.json"))


@virtual
async def test_pods_keep_their_nodes_and_their_owners(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "old", "controller": True}
        given = pod("p", ownerReferences=[owner], labels={"controller-uid": "old"})
        lines = await create_snapshot(cluster.api, start(given, job()))
        made, found = await cluster.get(JOBS, "j", "t"), await cluster.get(PODS, "p", "t")
        uid = made["metadata"]["uid"]
        assert uid != "old"
        assert (found["metadata"]["ownerReferences"][0]["uid"], found["metadata"]["labels"]["controller-uid"]) == (
            uid,
            uid,
        )
        assert found["spec"]["nodeName"] == "n"
        assert made["status"]["active"] == 1
        assert (await cluster.get(NODES, "n"))["metadata"]["labels"]["rack"] == "r"
        assert lines == [
            "reproduced from snapshot.json: 1 Node, 1 Job, 1 Pod",
            "added because others refer to them: 1 Namespace",
        ]


@virtual
async def test_what_the_server_refuses_is_counted_with_the_first_reason(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        strange = {"apiVersion": "example.com/v1", "kind": "Strange", "metadata": {"name": "s", "namespace": "t"}}
        wrong = [pod(f"WRONG-{at}") for at in range(2)]
        event = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e", "namespace": "t"}}
        lines = await create_snapshot(cluster.api, start(*wrong, strange, event, pod("right")))
        assert "1 Pod" in lines[0]
        told = [line for line in lines if line.startswith("not reproduced: ")]
        assert told[0] == "not reproduced: 1 Event: they tell of the other cluster"
        assert any(line.startswith("not reproduced: 2 Pod: the first: ") and "WRONG-0" in line for line in told)
        assert "not reproduced: 1 Strange: the first: example.com/v1 is not served" in told


@virtual
async def test_a_cluster_gets_the_objects_of_a_snapshot_once(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await create_snapshot(cluster.api, start(pod("p")))
        await cluster.delete(PODS, "p", namespace="t")
        (line,) = await create_snapshot(cluster.api, start(pod("p")))
        assert "are not created again" in line
