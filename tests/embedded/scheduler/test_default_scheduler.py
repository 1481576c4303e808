"""The scheduler on a whole control plane in virtual time: where pods go, what they are told when there is no place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from build.small_clusters import SmallCluster, small_cluster
from build.virtual_time import virtual
from shoal.client.item import Obj
from shoal.client.kind import NODES, PODS, PRIORITY_CLASSES
from shoal.client.port import Deletion
from shoal.embedded.scheduler.controller import default_scheduler

NO_HELP = (
    "no new claims to deallocate, preemption: 0/{0} nodes are available: {0} Preemption is not helpful for scheduling."
)


async def add_node(cluster: SmallCluster, obj: Obj) -> None:
    """Without the taint that the server puts on nodes nobody has called ready."""
    name, taints = obj["metadata"]["name"], obj["spec"].get("taints")
    await cluster.create(NODES, obj)
    await cluster.patch(NODES, name, {"spec": {"taints": taints}})


def node(name: str, *, gpus: int = 8, labels: dict[str, str] | None = None, **spec: Any) -> Obj:
    has = {"cpu": "8", "memory": "32Gi", "pods": "110", "nvidia.com/gpu": str(gpus)}
    return {
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
        "spec": spec,
        "status": {"capacity": has, "allocatable": has},
    }


def pod(name: str, *, gpus: int = 0, labels: dict[str, str] | None = None, **spec: Any) -> Obj:
    limits = {"nvidia.com/gpu": str(gpus)} if gpus else {}
    container = {"name": "main", "image": "pause", "resources": {"limits": limits}}
    return {"metadata": {"name": name, "labels": labels or {}}, "spec": {"containers": [container], **spec}}


async def place_of(cluster: SmallCluster, name: str) -> str:
    found: str = (await cluster.get(PODS, name))["spec"].get("nodeName", "")
    return found


async def is_bound(cluster: SmallCluster, name: str) -> bool:
    return bool(await place_of(cluster, name))


async def condition(cluster: SmallCluster, name: str) -> Obj:
    status = (await cluster.get(PODS, name)).get("status", {})
    return next((one for one in status.get("conditions", ()) if one["type"] == "PodScheduled"), {})


async def finish(cluster: SmallCluster, name: str) -> None:
    await cluster.patch(PODS, name, {"status": {"phase": "Succeeded"}}, subresource="status")


@virtual
async def test_a_pod_is_bound_and_an_event_says_where(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [default_scheduler]) as cluster:
        await add_node(cluster, node("n1"))
        await cluster.create(PODS, pod("a", gpus=1))
        await cluster.until(lambda: is_bound(cluster, "a"))
        await cluster.pass_time(0.1)
        said = await cluster.events("a")
        assert [(one["reason"], one["message"]) for one in said] == [
            ("Scheduled", "Successfully assigned default/a to n1")
        ]
        assert said[0]["source"]["component"] == "default-scheduler"
        assert (await condition(cluster, "a"))["status"] == "True"


@virtual
async def test_a_refusal_counts_every_node_and_says_what_each_lacks(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [default_scheduler]) as cluster:
        taint = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
        await add_node(cluster, node("n1", taints=[taint]))
        for name in ("n2", "n3"):
            await add_node(cluster, node(name, gpus=2))
        await cluster.create(PODS, pod("big", gpus=4))
        await cluster.pass_time(1)
        told = await condition(cluster, "big")
        assert (told["status"], told["reason"]) == ("False", "Unschedulable")
        assert told["message"] == (
            "0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 Insufficient nvidia.com/gpu. "
            + NO_HELP.format(3)
        )
        said = await cluster.events("big")
        assert (said[0]["reason"], said[0]["type"], said[0]["message"]) == (
            "FailedScheduling",
            "Warning",
            told["message"],
        )


@virtual
async def test_without_nodes_the_pod_is_told_so_and_goes_to_the_first_that_comes(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [default_scheduler]) as cluster:
        await cluster.create(PODS, pod("a"))
        await cluster.pass_time(1)
        assert (await condition(cluster, "a"))["message"] == "no nodes available to schedule pods"
        await add_node(cluster, node("n1"))
        await cluster.until(lambda: is_bound(cluster, "a"), within_s=5)


@virtual
async def test_a_pod_whose_own_claim_is_not_made_yet_says_whom_it_waits_for(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [default_scheduler]) as cluster:
        await add_node(cluster, node("n1"))
        spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        volume = {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": spec}}}
        await cluster.create(PODS, pod("a", volumes=[volume]))
        await cluster.pass_time(1)
        assert (await condition(cluster, "a"))["message"].startswith(
            "0/1 nodes are available: waiting for ephemeral volume controller to create the persistentvolumeclaim "
            '"a-scratch".'
        )


@virtual
async def test_gpus_are_never_given_twice_and_come_free_when_pods_end(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [default_scheduler]) as cluster:
        await add_node(cluster, node("n1", gpus=2))
        for name in "abc":
            await cluster.create(PODS, pod(name, gpus=1))
        await cluster.pass_time(2)
        places = [await place_of(cluster, name) for name in "abc"]
        assert sorted(places) == ["", "n1", "n1"]
        waiting, first = "abc"[places.index("")], "abc"[places.index("n1")]
        await finish(cluster, first)
        await cluster.until(lambda: is_bound(cluster, waiting), within_s=1)


@virtual
async def test_gated_pods_and_pods_of_other_schedulers_are_left_alone(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [default_scheduler]) as cluster:
        await add_node(cluster, node("n1"))
        await cluster.create(PODS, pod("gated", schedulingGates=[{"name": "example.com/wait"}]))
        await cluster.create(PODS, pod("other", schedulerName="shoal"))
        await cluster.pass_time(20)
        assert not await is_bound(cluster, "gated")
        assert not await is_bound(cluster, "other")
        assert (await condition(cluster, "gated"))["reason"] == "SchedulingGated"
        await cluster.patch(PODS, "gated", {"spec": {"schedulingGates": None}})
        await cluster.until(lambda: is_bound(cluster, "gated"), within_s=5)


@virtual
async def test_the_more_important_pod_takes_the_place_of_the_less_important(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [default_scheduler]) as cluster:
        await cluster.create(PRIORITY_CLASSES, {"metadata": {"name": "high"}, "value": 100})
        await add_node(cluster, node("n1", gpus=1))
        await cluster.create(PODS, pod("low", gpus=1))
        await cluster.until(lambda: is_bound(cluster, "low"))
        await cluster.create(PODS, pod("urgent", gpus=1, priorityClassName="high"))
        await cluster.pass_time(1)
        low = await cluster.get(PODS, "low")
        target = next(one for one in low["status"]["conditions"] if one["type"] == "DisruptionTarget")
        assert target["reason"] == "PreemptionByScheduler"
        assert target["message"] == "default-scheduler: preempting to accommodate a higher priority pod"
        assert (await cluster.get(PODS, "urgent"))["status"]["nominatedNodeName"] == "n1"
        await cluster.delete(PODS, "low", Deletion(grace_s=0))
        await cluster.until(lambda: is_bound(cluster, "urgent"), within_s=15)
        said = [one for one in await cluster.events("low") if one["reason"] == "Preempted"]
        uid = (await cluster.get(PODS, "urgent"))["metadata"]["uid"]
        assert said[0]["message"] == f"Preempted by pod {uid} on node n1"
        assert (said[0]["action"], said[0]["related"]["uid"]) == ("Preempting", uid)


@virtual
async def test_a_pod_that_never_preempts_waits_and_says_so(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [default_scheduler]) as cluster:
        polite = {"metadata": {"name": "polite"}, "value": 100, "preemptionPolicy": "Never"}
        await cluster.create(PRIORITY_CLASSES, polite)
        await add_node(cluster, node("n1", gpus=1))
        await cluster.create(PODS, pod("low", gpus=1))
        await cluster.until(lambda: is_bound(cluster, "low"))
        await cluster.create(PODS, pod("urgent", gpus=1, priorityClassName="polite"))
        await cluster.pass_time(1)
        assert (await condition(cluster, "urgent"))["message"].endswith(
            "preemption: not eligible due to preemptionPolicy=Never."
        )
        assert "deletionTimestamp" not in (await cluster.get(PODS, "low"))["metadata"]


@virtual
async def test_the_important_go_first_when_room_comes(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [default_scheduler]) as cluster:
        await cluster.create(PRIORITY_CLASSES, {"metadata": {"name": "high"}, "value": 100})
        await cluster.create(PODS, pod("early", gpus=1))
        await cluster.create(PODS, pod("urgent", gpus=1, priorityClassName="high"))
        await cluster.pass_time(5)
        await add_node(cluster, node("n1", gpus=1))
        await cluster.until(lambda: is_bound(cluster, "urgent"), within_s=5)
        assert not await is_bound(cluster, "early")
