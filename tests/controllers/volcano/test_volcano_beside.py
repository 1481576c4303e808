"""Volcano's objects beside others: controllers that make pods, Volcano itself, manifests as people write them."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from build.small_clusters import small_cluster
from build.virtual_time import virtual
from build.volcano_scenes import bare_volcano, volcano, volcano_scene
from shoal.client.context import Context, Controller
from shoal.client.ecosystem_kinds import VOLCANO_JOBS, VOLCANO_POD_GROUPS, VOLCANO_QUEUES
from shoal.client.item import Obj
from shoal.client.kind import LEASES, NAMESPACES, PODS, REPLICA_SETS
from shoal.client.presence import VOLCANO, Presence
from shoal.embedded.controllers.replicas.controller import replica_set_controller

SEEDS = Path(__file__).parents[4] / "shared" / "manifests" / "volcano"


@virtual
async def test_everything_is_left_to_volcano_where_it_runs_and_taken_on_when_it_goes(tmp_path: Path) -> None:
    async with bare_volcano(tmp_path) as scene:
        lease: Obj = {"holderIdentity": "vc-scheduler-0", "leaseDurationSeconds": 600}
        lease["renewTime"] = scene.cluster.clock.now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        await scene.cluster.create(NAMESPACES, {"metadata": {"name": "volcano-system"}})
        await scene.cluster.create(LEASES, {"metadata": {"name": "volcano"}, "spec": lease}, "volcano-system")

        seen: list[Presence] = []

        def beside(context: Context) -> Controller:
            seen.append(Presence(context, VOLCANO))
            return volcano(context, seen[0])

        scene.cluster.start(beside)
        scene.start_scheduler(presence=seen[0])
        await scene.group("g", minMember=1)
        await scene.pod("alone")
        task = {"name": "worker", "replicas": 1, "template": {"spec": {"containers": [{"name": "m", "image": "x"}]}}}
        await scene.cluster.create(VOLCANO_JOBS, {"metadata": {"name": "train"}, "spec": {"tasks": [task]}})
        await scene.cluster.pass_time(60)
        assert await scene.status(VOLCANO_POD_GROUPS, "g") == {}
        assert await scene.status(VOLCANO_JOBS, "train") == {}
        assert await scene.cluster.all(VOLCANO_QUEUES) == []
        assert [one["metadata"]["name"] for one in await scene.cluster.all(VOLCANO_POD_GROUPS)] == ["g"]
        await scene.cluster.delete(LEASES, "volcano", namespace="volcano-system")
        await scene.cluster.until(lambda: scene.phase_is("g", "Inqueue"))
        await scene.cluster.until(lambda: scene.job_is("train", "Pending"))
        assert len(await scene.cluster.all(VOLCANO_QUEUES)) == 2


@virtual
async def test_a_server_without_volcanos_kinds_is_waited_for_quietly(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [volcano]) as cluster:
        await cluster.pass_time(120)
        assert await cluster.pods() == []


@virtual
async def test_pods_of_one_owner_share_a_group_that_starts_as_many_together_as_the_owner_says(tmp_path: Path) -> None:
    async with volcano_scene(tmp_path) as scene:
        scene.cluster.start(replica_set_controller)
        pod = {
            "metadata": {"labels": {"app": "web"}, "annotations": {"volcano.sh/preemptable": "true"}},
            "spec": {"schedulerName": "volcano", "containers": [{"name": "main", "image": "x"}]},
        }
        spec = {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": pod}
        notes = {"scheduling.volcano.sh/group-min-member": "3"}
        made = await scene.cluster.create(
            REPLICA_SETS, {"metadata": {"name": "web", "annotations": notes}, "spec": spec}
        )
        await scene.cluster.pass_time(5)
        assert await scene.bound() == set()
        (group,) = await scene.cluster.all(VOLCANO_POD_GROUPS)
        assert group["metadata"]["name"] == "podgroup-" + made["metadata"]["uid"]
        assert group["metadata"]["ownerReferences"][0]["kind"] == "ReplicaSet"
        assert group["metadata"]["annotations"] == {"volcano.sh/preemptable": "true"}
        assert group["spec"]["minMember"] == 3
        await scene.cluster.patch(REPLICA_SETS, "web", {"spec": {"replicas": 3}})
        await scene.cluster.until(lambda: scene.phase_is(group["metadata"]["name"], "Running"))
        assert len(await scene.bound()) == 3


@virtual
async def test_pods_in_a_group_of_another_project_are_not_waited_with(tmp_path: Path) -> None:
    async with volcano_scene(tmp_path) as scene:
        project = "pod-group.scheduling.sigs.k8s.io"
        labels = {f"{project}/name": "g", f"{project}/min-available": "2"}
        for name in "ab":
            spec = {"schedulerName": "volcano", "containers": [{"name": "main", "image": "x"}]}
            await scene.cluster.create(PODS, {"metadata": {"name": name, "labels": labels}, "spec": spec})
        await scene.cluster.until(lambda: scene.bound_are("a", "b"))
        assert await scene.cluster.all(VOLCANO_POD_GROUPS) == []


@virtual
async def test_it_is_said_on_pods_why_nobody_looks_for_a_place_for_them(tmp_path: Path) -> None:
    async with volcano_scene(tmp_path) as scene:
        await scene.queue("none", capability={"nvidia.com/gpu": 0})
        await scene.group("g", minMember=1, minResources={"nvidia.com/gpu": 1}, queue="none")
        await scene.pod("a", "g", gpus=1)
        await scene.cluster.pass_time(3)
        told = (await scene.pods())["a"]["status"]["conditions"]
        assert [(one["type"], one["status"], one["reason"]) for one in told] == [
            ("PodScheduled", "False", "Unschedulable")
        ]
        assert told[0]["message"] == (
            "pod group is not ready; queue resource quota insufficient: insufficient nvidia.com/gpu"
        )


@virtual
async def test_an_object_of_a_strange_shape_keeps_nobody_else_waiting(tmp_path: Path) -> None:
    async with volcano_scene(tmp_path) as scene:
        await scene.group("odd", minMember=-1)
        await scene.group("even", minMember=1)
        await scene.pod("a", "even")
        await scene.cluster.until(lambda: scene.phase_is("even", "Running"))
        assert "InvalidPodGroup" in {reason for reason, _ in await scene.said("odd")}


@pytest.mark.skipif(not SEEDS.exists(), reason="the collected manifests are not here")
@virtual
async def test_the_seeds_gang_starts_at_eight_members_and_not_at_seven(tmp_path: Path) -> None:
    async with volcano_scene(tmp_path, gpus=8, cpu="96", memory="600Gi") as scene:
        await scene.cluster.create(VOLCANO_QUEUES, _seed("queue-research.yaml"))
        await scene.cluster.create(VOLCANO_POD_GROUPS, _seed("podgroup-pytorch-distributed.yaml"))
        for at in range(7):
            await scene.pod(f"w{at}", "pytorch-distributed", gpus=1)
        await scene.cluster.pass_time(5)
        assert await scene.bound() == set()
        await scene.pod("w7", "pytorch-distributed", gpus=1)
        await scene.cluster.until(lambda: scene.phase_is("pytorch-distributed", "Running"))
        assert len(await scene.bound()) == 8
        assert "PriorityClassNotFound" in {reason for reason, _ in await scene.said("pytorch-distributed")}


@pytest.mark.skipif(not SEEDS.exists(), reason="the collected manifests are not here")
@virtual
async def test_the_seeds_queue_makes_the_thirty_third_gpu_wait(tmp_path: Path) -> None:
    async with volcano_scene(tmp_path, gpus=40) as scene:
        await scene.cluster.create(VOLCANO_QUEUES, _seed("queue-research.yaml"))
        for at in range(33):
            await scene.group(f"g{at}", minMember=1, queue="research-queue")
            await scene.pod(f"p{at}", f"g{at}", gpus=1)
        await scene.cluster.pass_time(10)
        assert len(await scene.bound()) == 32
        assert (await scene.status(VOLCANO_QUEUES, "research-queue"))["allocated"]["nvidia.com/gpu"] == "32"
        await scene.cluster.delete(PODS, next(iter(await scene.bound())))
        await scene.cluster.pass_time(5)
        assert len(await scene.bound()) == 32


def _seed(name: str) -> Obj:
    found: Obj = yaml.safe_load((SEEDS / name).read_text())
    return found
