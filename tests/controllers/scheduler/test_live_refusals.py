"""What pods are told that wait: kube-scheduler's words to the letter, and Shoal's reason behind them."""

from __future__ import annotations

from pathlib import Path

import pytest

from build.live_schedulers import add_node, condition, is_bound, pod, start_scheduler
from build.small_clusters import SmallCluster, small_cluster
from build.virtual_time import virtual
from shoal.client.item import Obj
from shoal.client.kind import NODES, PODS, PRIORITY_CLASSES
from shoal.client.port import Deletion

TAINT: Obj = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}


async def told(cluster: SmallCluster, name: str) -> str:
    found = await condition(cluster, name)
    assert (found["status"], found["reason"]) == ("False", "Unschedulable")
    words: str = found["message"]
    return words


@virtual
async def test_a_refusal_counts_every_node_and_an_event_says_the_same(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await add_node(cluster, "n1", gpus=8, taints=[TAINT])
        for name in ("n2", "n3"):
            await add_node(cluster, name, gpus=2)
        start_scheduler(cluster)
        await cluster.create(PODS, pod("big", gpus=4))
        await cluster.pass_time(1)
        words = await told(cluster, "big")
        assert words == (
            "0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 Insufficient nvidia.com/gpu. "
            "no new claims to deallocate, preemption: 0/3 nodes are available: "
            "3 Preemption is not helpful for scheduling. "
            "No node that may take this pod is large enough, even empty: n3 has 2 of 4 GPUs. "
            "Tolerate nvidia.com/gpu=present:NoSchedule (1 node)."
        )
        (said,) = await cluster.events("big")
        assert (said["reason"], said["type"], said["message"]) == ("FailedScheduling", "Warning", words)
        assert said["source"]["component"] == "shoal"


@virtual
async def test_nodes_that_could_take_the_pod_if_they_were_empty_have_no_victims(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await add_node(cluster, "n1", cpu="4")
        await add_node(cluster, "n2", cpu="1")
        await add_node(cluster, "n3", cpu="8")
        await cluster.patch(NODES, "n3", {"spec": {"unschedulable": True}})
        start_scheduler(cluster)
        await cluster.create(PODS, pod("first", cpu="3"))
        await cluster.until(lambda: is_bound(cluster, "first"))
        await cluster.create(PODS, pod("second", cpu="2"))
        await cluster.pass_time(1)
        assert (await told(cluster, "second")).startswith(
            "0/3 nodes are available: 1 node(s) were unschedulable, 2 Insufficient cpu. "
            "no new claims to deallocate, preemption: 0/3 nodes are available: "
            "1 No preemption victims found for incoming pod, 2 Preemption is not helpful for scheduling. "
            "The nearest node is n1: it has 1 of 2 cores free."
        )


@virtual
async def test_without_nodes_the_pod_is_told_so_and_goes_to_the_first_that_comes(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        start_scheduler(cluster)
        await cluster.create(PODS, pod("a"))
        await cluster.pass_time(1)
        assert await told(cluster, "a") == "no nodes available to schedule pods"
        await add_node(cluster, "n1")
        await cluster.until(lambda: is_bound(cluster, "a"), 5)


@virtual
async def test_what_was_said_is_said_anew_when_the_cluster_has_changed(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await add_node(cluster, "n1", gpus=1)
        start_scheduler(cluster)
        await cluster.create(PODS, pod("a", gpus=2))
        await cluster.pass_time(1)
        assert "0/1 nodes are available: 1 Insufficient nvidia.com/gpu." in await told(cluster, "a")
        since = (await condition(cluster, "a"))["lastTransitionTime"]
        await add_node(cluster, "n2", gpus=1)
        await cluster.pass_time(40)
        assert "0/2 nodes are available: 2 Insufficient nvidia.com/gpu." in await told(cluster, "a")
        assert (await condition(cluster, "a"))["lastTransitionTime"] == since


@virtual
async def test_nothing_is_written_again_while_nothing_changes_and_not_by_a_successor(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await add_node(cluster, "n1", gpus=1)
        live = start_scheduler(cluster)
        await cluster.create(PODS, pod("a", gpus=2))
        await cluster.pass_time(5)
        version = (await cluster.get(PODS, "a"))["metadata"]["resourceVersion"]
        await cluster.pass_time(200)
        await live.kill()
        start_scheduler(cluster)
        await cluster.pass_time(100)
        assert (await cluster.get(PODS, "a"))["metadata"]["resourceVersion"] == version


@virtual
async def test_a_condition_that_no_node_can_meet_is_named(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await add_node(cluster, "n1", gpus=1, labels={"zone": "a1"})
        start_scheduler(cluster)
        await cluster.create(PODS, pod("a", nodeSelector={"zone": "a"}))
        await cluster.pass_time(1)
        assert await told(cluster, "a") == (
            "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector. "
            "no new claims to deallocate, preemption: 0/1 nodes are available: "
            "1 Preemption is not helpful for scheduling. No node has zone=a; did you mean a1?"
        )


@virtual
async def test_a_pod_that_never_preempts_is_told_so(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        polite = {"metadata": {"name": "polite"}, "value": 100, "preemptionPolicy": "Never"}
        await cluster.create(PRIORITY_CLASSES, polite)
        await add_node(cluster, "n1", gpus=1)
        start_scheduler(cluster)
        await cluster.create(PODS, pod("low", gpus=1))
        await cluster.until(lambda: is_bound(cluster, "low"))
        await cluster.create(PODS, pod("urgent", gpus=1, priorityClassName="polite"))
        await cluster.pass_time(1)
        assert "no new claims to deallocate, preemption: not eligible due to preemptionPolicy=Never." in await told(
            cluster, "urgent"
        )
        assert "deletionTimestamp" not in (await cluster.get(PODS, "low"))["metadata"]


@virtual
async def test_every_pod_of_a_gang_is_told_what_the_gang_lacks(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await add_node(cluster, "n1", gpus=4)
        await add_node(cluster, "n2", gpus=1)
        start_scheduler(cluster)
        labels = {"pod-group.scheduling.sigs.k8s.io/name": "train"}
        labels["pod-group.scheduling.sigs.k8s.io/min-available"] = "3"
        for name in "abc":
            await cluster.create(PODS, pod(name, gpus=2, labels=labels))
        await cluster.pass_time(40)
        for name in "abc":
            assert await told(cluster, name) == (
                "0/2 nodes are available: 1 Insufficient nvidia.com/gpu, 1 node(s) didn't have room for the whole "
                "gang. no new claims to deallocate, preemption: 0/2 nodes are available: 1 No preemption victims "
                "found for incoming pod, 1 Preemption is not helpful for scheduling. The gang needs 3 pods at once. "
                "The most that could run now is 2 of 3, and 2 if everything else were gone: waiting does not help."
            )


@virtual
async def test_a_gang_of_which_too_few_pods_exist_says_how_many(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await add_node(cluster, "n1", gpus=4)
        start_scheduler(cluster)
        labels = {"pod-group.scheduling.sigs.k8s.io/name": "train"}
        labels["pod-group.scheduling.sigs.k8s.io/min-available"] = "3"
        await cluster.create(PODS, pod("a", gpus=1, labels=labels))
        await cluster.pass_time(2)
        assert await told(cluster, "a") == (
            "0/1 nodes are available: the gang needs 3 pods, and only 1 exists. "
            "Create 2 pods more, or lower the minimum to 1."
        )


@virtual
async def test_a_gang_that_is_being_created_is_told_nothing_before_it_stops_growing(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await add_node(cluster, "n1", gpus=8)
        start_scheduler(cluster)
        labels = {"pod-group.scheduling.sigs.k8s.io/name": "train"}
        labels["pod-group.scheduling.sigs.k8s.io/min-available"] = "6"
        for name in ("a", "b", "c", "d"):
            await cluster.create(PODS, pod(name, gpus=1, labels=labels))
            await cluster.pass_time(0.7)
        assert not await condition(cluster, "a")
        await cluster.pass_time(2)
        assert "the gang needs 6 pods, and only 4 exist" in await told(cluster, "a")
        for name in ("e", "f"):
            await cluster.create(PODS, pod(name, gpus=1, labels=labels))
        await cluster.until(lambda: is_bound(cluster, "a"), 5)
        assert len(await cluster.events("a")) == 2


@virtual
async def test_an_object_that_cannot_be_read_costs_nobody_else_anything_and_is_told_its_fault(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await add_node(cluster, "n1", gpus=4)
        start_scheduler(cluster)
        await cluster.create(PODS, pod("bad", gpus=1, annotations={"shoal.dev/checkpoint-every": "often"}))
        await cluster.create(PODS, pod("good", gpus=1))
        await cluster.until(lambda: is_bound(cluster, "good"), 5)
        await cluster.pass_time(10)
        assert await told(cluster, "bad") == (
            'metadata.annotations[shoal.dev/checkpoint-every]: "often" is not a time span; write e.g. 10m or 1h30m'
        )
        (said,) = await cluster.events("bad")
        assert said["reason"] == "FailedScheduling"
        await cluster.patch(PODS, "bad", {"metadata": {"annotations": {"shoal.dev/checkpoint-every": "10m"}}})
        await cluster.until(lambda: is_bound(cluster, "bad"), 5)


@virtual
async def test_a_pod_that_waits_is_told_of_devices_that_cannot_be_read(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await add_node(cluster, "n1", gpus=1)
        start_scheduler(cluster)
        await cluster.create(PODS, pod("odd", gpus=2, annotations={"shoal.dev/devices": "first"}))
        await cluster.pass_time(30)
        said = {event["reason"]: event["message"] for event in await cluster.events("odd")}
        assert set(said) == {"FailedScheduling", "InvalidAnnotation"}
        assert said["InvalidAnnotation"].startswith("metadata.annotations[shoal.dev/devices]: ")


@virtual
async def test_a_node_whose_topology_cannot_be_read_says_so_and_takes_pods_by_number(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with small_cluster(tmp_path) as cluster:
        for name in ("n1", "n2"):
            await add_node(cluster, name, gpus=1)
            await cluster.patch(NODES, name, {"metadata": {"annotations": {"shoal.dev/topology": "{bad"}}})
        start_scheduler(cluster)
        await cluster.create(PODS, pod("a", gpus=1))
        await cluster.until(lambda: is_bound(cluster, "a"), 5)
        assert '["0"]' in (await cluster.get(PODS, "a"))["metadata"]["annotations"]["shoal.dev/devices"]
        await cluster.pass_time(30)
        (said,) = await cluster.events("n1")
        assert (said["type"], said["reason"], said.get("count", 1)) == ("Warning", "InvalidAnnotation", 1)
        assert said["message"].startswith("metadata.annotations[shoal.dev/topology]: JSON is malformed")
        assert len(await cluster.events("n2")) == 1
        assert len([one for one in caplog.records if "shoal.dev/topology" in one.getMessage()]) == 1
        await cluster.patch(NODES, "n1", {"metadata": {"annotations": {"shoal.dev/topology": None}}})
        await cluster.pass_time(5)
        await cluster.patch(NODES, "n1", {"metadata": {"annotations": {"shoal.dev/topology": '{"gpus": 3}'}}})
        await cluster.pass_time(5)
        assert len(await cluster.events("n1")) == 2


@virtual
async def test_a_checkpoint_in_the_future_is_told_once_and_counts_as_now(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await add_node(cluster, "n1", gpus=2)
        live = start_scheduler(cluster)
        for name, saved in (("ahead", "2031-01-01T00:00:00Z"), ("behind", "2025-01-01T00:00:00Z")):
            await cluster.create(PODS, pod(name, gpus=1, annotations={"shoal.dev/last-checkpoint": saved}))
        await cluster.until(lambda: is_bound(cluster, "ahead", "behind"), 5)
        await cluster.pass_time(60)
        said = [one for name in ("ahead", "behind") for one in await cluster.events(name) if one["type"] == "Warning"]
        assert [(one["reason"], one["involvedObject"]["name"], one.get("count", 1)) for one in said] == [
            ("CheckpointToCome", "ahead", 1)
        ]
        assert live.loop.cluster.pods["default/ahead"].who.lost_s(cluster.clock.seconds()) == 0


@virtual
async def test_gated_pods_and_pods_of_other_schedulers_are_left_alone(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await add_node(cluster, "n1")
        start_scheduler(cluster)
        await cluster.create(PODS, pod("gated", schedulingGates=[{"name": "example.com/wait"}]))
        await cluster.create(PODS, pod("other", schedulerName="somebody"))
        await cluster.pass_time(60)
        assert not await condition(cluster, "other")
        assert (await condition(cluster, "gated"))["reason"] == "SchedulingGated"
        assert not await cluster.events("gated")
        await cluster.patch(PODS, "gated", {"spec": {"schedulingGates": None}})
        await cluster.until(lambda: is_bound(cluster, "gated"), 5)


@virtual
async def test_a_backlog_is_told_slowly_and_whoever_goes_is_forgotten(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await add_node(cluster, "n1", gpus=1)
        start_scheduler(cluster)
        for number in range(200):
            await cluster.create(PODS, pod(f"p{number}", gpus=2))
        await cluster.pass_time(1)
        silent = [one for one in await cluster.pods() if not one["status"].get("conditions")]
        assert 100 < len(silent) < 200
        await cluster.pass_time(4)
        assert not [one for one in await cluster.pods() if not one["status"].get("conditions")]
        await cluster.delete(PODS, "p0", Deletion(grace_s=0))
        await cluster.pass_time(60)


@virtual
async def test_a_pod_whose_volume_is_not_there_is_told_so_in_kube_schedulers_words(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await add_node(cluster, "n1")
        start_scheduler(cluster)
        volume = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
        await cluster.create(PODS, pod("a", volumes=[volume]))
        await cluster.pass_time(10)
        assert await told(cluster, "a") == (
            '0/1 nodes are available: persistentvolumeclaim "data" not found. no new claims to deallocate, '
            "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
        )
