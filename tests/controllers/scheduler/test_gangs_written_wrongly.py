"""What somebody wrote about a gang cannot be: its pods say what is wrong, and so does the object that it stands on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from build.live_schedulers import add_node, is_bound, pod, start_scheduler
from build.small_clusters import SmallCluster, small_cluster
from build.virtual_time import virtual
from shoal.client.item import Obj
from shoal.client.kind import JOBS, PODS, STATEFUL_SETS, Kind


async def _says(cluster: SmallCluster, name: str) -> str:
    conditions = (await cluster.get(PODS, name))["status"].get("conditions") or ()
    return next((str(one["message"]) for one in conditions if one["type"] == "PodScheduled"), "")


async def _owned(cluster: SmallCluster, kind: Kind, owner: Obj, *names: str) -> None:
    meta = owner["metadata"]
    reference: dict[str, Any] = {
        "apiVersion": kind.api_version,
        "kind": kind.name,
        "name": meta["name"],
        "uid": meta["uid"],
        "controller": True,
    }
    for name in names:
        body = pod(name, gpus=1)
        body["metadata"]["ownerReferences"] = [reference]
        await cluster.create(PODS, body)


def _template(policy: str = "Never") -> Obj:
    spec = {"restartPolicy": policy, "schedulerName": "shoal", "containers": [{"name": "main", "image": "pause"}]}
    return {"metadata": {"labels": {"app": "x"}}, "spec": spec}


async def _job(cluster: SmallCluster, gang: str, parallelism: int = 2) -> Obj:
    meta = {"name": "train", "annotations": {"shoal.dev/gang": gang}}
    spec = {"parallelism": parallelism, "completions": parallelism, "template": _template()}
    return await cluster.create(JOBS, {"metadata": meta, "spec": spec})


async def _events(cluster: SmallCluster, name: str) -> list[str]:
    return [one["message"] for one in await cluster.events(name)]


@virtual
async def test_an_annotation_that_nobody_can_read_is_named_as_the_cause_until_it_is_mended(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        start_scheduler(cluster)
        await add_node(cluster, "n1", gpus=8)
        job = await _job(cluster, "sure")
        await _owned(cluster, JOBS, job, "train-0", "train-1")
        await cluster.pass_time(40)
        words = await _says(cluster, "train-0")
        assert "its gang cannot be as it is written: Job default/train" in words
        assert "shoal.dev/gang" in words
        assert any("shoal.dev/gang" in message for message in await _events(cluster, "train"))
        await cluster.patch(JOBS, "train", {"metadata": {"annotations": {"shoal.dev/gang": "true"}}})
        await cluster.until(lambda: is_bound(cluster, "train-0", "train-1"))


@virtual
async def test_a_set_that_starts_one_pod_after_the_other_can_be_no_gang(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        start_scheduler(cluster)
        await add_node(cluster, "n1", gpus=8)
        meta = {"name": "serve", "annotations": {"shoal.dev/gang": "true"}}
        spec = {
            "replicas": 2,
            "serviceName": "s",
            "selector": {"matchLabels": {"app": "x"}},
            "template": _template("Always"),
        }
        made = await cluster.create(STATEFUL_SETS, {"metadata": meta, "spec": spec})
        await _owned(cluster, STATEFUL_SETS, made, "serve-0")
        await cluster.pass_time(40)
        assert "podManagementPolicy: Parallel" in await _says(cluster, "serve-0")
        assert any("podManagementPolicy: Parallel" in message for message in await _events(cluster, "serve"))


@virtual
async def test_a_gang_of_more_pods_than_its_job_ever_has_is_told_on_the_job(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        start_scheduler(cluster)
        await add_node(cluster, "n1", gpus=8)
        job = await _job(cluster, "9")
        await _owned(cluster, JOBS, job, "train-0", "train-1")
        await cluster.pass_time(40)
        assert "9 pods" in await _says(cluster, "train-0")
        assert any("9 pods" in message and "parallelism" in message for message in await _events(cluster, "train"))
