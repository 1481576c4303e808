"""Pods that KAI's queues or groups keep waiting say so as kube-scheduler's do: condition, Event."""

from __future__ import annotations

from pathlib import Path

from build.kai_clusters import QUEUE_LABEL, add_kai_queue, add_work, bound, kai_cluster, start_kai, terminating
from build.live_schedulers import add_node, pod
from build.small_clusters import SmallCluster
from build.virtual_time import virtual
from shoal.api.groups.kai import GROUP_ANNOTATION
from shoal.client.ecosystem_kinds import KAI_POD_GROUPS
from shoal.client.kind import PODS


async def _told(cluster: SmallCluster, name: str) -> str:
    """What its condition says, and its last Event of that kind too."""
    conditions = (await cluster.get(PODS, name))["status"].get("conditions") or ()
    found: dict[str, str] = next((one for one in conditions if one["type"] == "PodScheduled"), {})
    assert (found.get("status"), found.get("reason")) == ("False", "Unschedulable")
    events = [one["message"] for one in await cluster.events(name) if one["reason"] == "FailedScheduling"]
    assert found["message"] in events
    return found["message"]


@virtual
async def test_pods_of_full_unknown_and_lacking_queues_and_groups_say_why_they_wait(tmp_path: Path) -> None:
    async with kai_cluster(tmp_path) as cluster:
        start_kai(cluster)
        await add_node(cluster, "n1", gpus=8)
        await add_kai_queue(cluster, "team")
        await add_work(cluster, "stray", "nosuch")
        group = {"metadata": {"name": "kg"}, "spec": {"queue": "team", "minMember": 3}}
        await cluster.create(KAI_POD_GROUPS, group)
        for name, its in (("a", "kg"), ("b", "kg"), ("lost", "none-such")):
            body = pod(name, gpus=1, labels={QUEUE_LABEL: "team"})
            body["metadata"].setdefault("annotations", {})[GROUP_ANNOTATION] = its
            await cluster.create(PODS, body)
        await cluster.pass_time(30)
        assert await _told(cluster, "stray") == "QueueDoesNotExist: Queue 'nosuch' does not exist"
        small = "0/1 nodes are available: the gang needs 3 pods, and only 2 exist. Create 1 pod more"
        assert (await _told(cluster, "a")).startswith(small)
        assert (await _told(cluster, "b")).startswith(small)
        assert "names a group that does not exist. Add the PodGroup" in await _told(cluster, "lost")
        (said,) = (await cluster.get(KAI_POD_GROUPS, "kg"))["status"]["schedulingConditions"]
        assert (said["type"], said["status"], said["reason"]) == ("UnschedulableOnNodePool", "True", "NotReady")
        assert said["message"].endswith("Waiting for 3 pods, currently 2 existing")


@virtual
async def test_a_pod_for_which_others_end_says_so_until_it_has_its_place(tmp_path: Path) -> None:
    async with kai_cluster(tmp_path) as cluster:
        start_kai(cluster)
        await add_node(cluster, "n1", gpus=2)
        await add_kai_queue(cluster, "lender", 1)
        await add_kai_queue(cluster, "borrower", 1)
        for name in ("x", "y"):
            await add_work(cluster, name, "borrower")
        await cluster.until(lambda: _are_bound(cluster, "x", "y"))
        await add_work(cluster, "mine", "lender")
        await cluster.pass_time(5)
        assert await terminating(cluster) != []
        assert "pods are being preempted for it" in await _told(cluster, "mine")


async def _are_bound(cluster: SmallCluster, *names: str) -> bool:
    return await bound(cluster) == sorted(names)
