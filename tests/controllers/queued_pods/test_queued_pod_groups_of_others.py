"""Pods of a PodGroup of any ecosystem with a queue are one Workload: quota and gang are one decision."""

from __future__ import annotations

from pathlib import Path

import pytest

from build.queued_groups import LIVE_STYLES, STYLES, group_cluster
from build.virtual_time import in_virtual_time, virtual
from shoal.client.ecosystem_kinds import VOLCANO_JOBS
from shoal.client.kind import PODS

WITH_OBJECT = [name for name in LIVE_STYLES if STYLES[name].kind is not None]


@pytest.mark.parametrize("style", LIVE_STYLES)
def test_the_pods_of_a_group_are_one_workload(style: str, tmp_path: Path) -> None:
    async def run() -> None:
        async with group_cluster(tmp_path, cpu="3") as groups:
            await groups.group(style, "train", 2)
            await groups.join(style, "train", "a", 2)
            await groups.cluster.pass_time(3)
            assert (await groups.workloads(), await groups.held()) == ([], {"a"})
            await groups.join(style, "train", "b", 2)
            await groups.until_bound("a", "b")
            workload = await groups.workload()
            assert workload["metadata"]["annotations"]["kueue.x-k8s.io/is-group-workload"] == "true"
            assert {owner["name"] for owner in workload["metadata"]["ownerReferences"]} == {"a", "b"}
            assert sum(one["count"] for one in workload["spec"]["podSets"]) == 2
            assert workload["metadata"]["name"] == "train"
            await groups.cluster.pass_time(5)
            assert await groups.used() == "2"

    in_virtual_time(run())


@pytest.mark.parametrize("style", LIVE_STYLES)
def test_of_two_groups_with_quota_for_one_and_a_half_one_runs_and_the_other_waits_whole(
    style: str, tmp_path: Path
) -> None:
    async def run() -> None:
        async with group_cluster(tmp_path, cpu="5") as groups:
            for name in ("one", "two"):
                await groups.group(style, name, 3)
            # The pods of both groups come in turn.
            for index in range(3):
                for name in ("one", "two"):
                    await groups.join(style, name, f"{name}-{index}", 3)
            await groups.cluster.pass_time(60)
            running = await groups.bound()
            assert running in ({f"one-{at}" for at in range(3)}, {f"two-{at}" for at in range(3)})
            assert list((await groups.admitted()).values()) == [3]
            assert len(await groups.workloads()) == 2
            await groups.succeed(*running)
            await groups.until_bound(*({f"{name}-{at}" for name in ("one", "two") for at in range(3)} - running))

    in_virtual_time(run())


@pytest.mark.parametrize("style", [name for name in LIVE_STYLES if name != "kueue"])
def test_a_group_without_enough_pods_waits_with_the_numbers(style: str, tmp_path: Path) -> None:
    async def run() -> None:
        async with group_cluster(tmp_path, cpu="3") as groups:
            await groups.group(style, "train", 3)
            await groups.join(style, "train", "a", 3)
            await groups.join(style, "train", "b", 3)
            await groups.cluster.pass_time(3)
            (reason,) = set(await groups.pod_reasons("a"))
            assert reason == (
                "ErrWorkloadCompose",
                "pod group default/train has 2 of the 3 pods that it needs: it is queued once 1 more exists",
            )

    in_virtual_time(run())


@pytest.mark.parametrize("style", WITH_OBJECT)
def test_pods_whose_group_does_not_exist_yet_wait_for_it(style: str, tmp_path: Path) -> None:
    async def run() -> None:
        async with group_cluster(tmp_path, cpu="3") as groups:
            await groups.join(style, "train", "a", 2)
            await groups.join(style, "train", "b", 2)
            await groups.cluster.pass_time(3)
            assert (await groups.workloads(), await groups.held()) == ([], {"a", "b"})
            (reason, message) = (await groups.pod_reasons("a"))[0]
            assert reason == "ErrWorkloadCompose"
            assert message.endswith("not found: its pods are queued once it exists")
            await groups.group(style, "train", 2)
            await groups.until_bound("a", "b")

    in_virtual_time(run())


@virtual
async def test_a_group_whose_pods_name_different_queues_is_refused_until_they_agree(tmp_path: Path) -> None:
    async with group_cluster(tmp_path, cpu="3") as groups:
        await groups.group("volcano", "train", 2)
        await groups.join("volcano", "train", "a")
        await groups.join("volcano", "train", "b", queue="other")
        await groups.cluster.pass_time(3)
        assert await groups.workloads() == []
        message = (
            "pods a and b of pod group default/train name different queues, cq and other: give all pods of the group "
            "the same label kueue.x-k8s.io/queue-name"
        )
        assert ("ErrWorkloadCompose", message) in await groups.pod_reasons("b")
        await groups.cluster.delete(PODS, "b")
        await groups.join("volcano", "train", "c")
        await groups.until_bound("a", "c")


@pytest.mark.parametrize(("style", "spec"), [("volcano", {}), ("kubernetes", {"schedulingPolicy": {"basic": {}}})])
def test_pods_that_no_minimum_ties_together_are_workloads_of_their_own(
    style: str, spec: dict[str, object], tmp_path: Path
) -> None:
    async def run() -> None:
        async with group_cluster(tmp_path, cpu="1") as groups:
            await groups.group(style, "train", 1, **spec)
            for name in ("a", "b"):
                await groups.join(style, "train", name)
            await groups.cluster.pass_time(10)
            names = sorted(one["metadata"]["name"].rpartition("-")[0] for one in await groups.workloads())
            assert names == ["pod-a", "pod-b"]
            (first,) = await groups.bound()
            await groups.succeed(first)
            await groups.until_bound(*({"a", "b"} - {first}))

    in_virtual_time(run())


@virtual
async def test_a_pod_that_is_admitted_alone_stays_so_when_a_group_is_written_on_it(tmp_path: Path) -> None:
    async with group_cluster(tmp_path, cpu="3") as groups:
        await groups.pod("a", schedulerName="shoal", labels={"kueue.x-k8s.io/queue-name": "cq"})
        await groups.until_bound("a")
        before = await groups.workload()
        await groups.group("volcano", "late", 2)
        await groups.cluster.patch(PODS, "a", {"metadata": {"annotations": {"scheduling.k8s.io/group-name": "late"}}})
        await groups.cluster.pass_time(30)
        assert await groups.bound() == {"a"}
        assert (await groups.workload())["metadata"]["uid"] == before["metadata"]["uid"]


@pytest.mark.parametrize("is_queued", [True, False])
def test_pods_of_a_volcano_job_are_queued_unless_the_job_is(is_queued: bool, tmp_path: Path) -> None:
    """The label may be on the job and on its templates."""

    async def run() -> None:
        async with group_cluster(tmp_path, cpu="3") as groups:
            await groups.group("volcano", "train-1", 2)
            job = await groups.cluster.create(VOLCANO_JOBS, _volcano_job("train", is_queued=is_queued))
            owner = {
                "apiVersion": VOLCANO_JOBS.api_version,
                "kind": VOLCANO_JOBS.name,
                "name": "train",
                "uid": job["metadata"]["uid"],
                "controller": True,
            }
            for name in ("a", "b"):
                await groups.join("volcano", "train-1", name, owners=[owner])
            await groups.until_bound("a", "b")
            assert [one["metadata"]["name"] for one in await groups.workloads()] == ["train-1"] * (not is_queued)

    in_virtual_time(run())


@virtual
async def test_pods_of_a_deleted_volcano_job_end(tmp_path: Path) -> None:
    async with group_cluster(tmp_path, cpu="3") as groups:
        await groups.group("volcano", "train-1", 2)
        job = await groups.cluster.create(VOLCANO_JOBS, _volcano_job("train", is_queued=False))
        owner = {
            "apiVersion": VOLCANO_JOBS.api_version,
            "kind": VOLCANO_JOBS.name,
            "name": "train",
            "uid": job["metadata"]["uid"],
            "controller": True,
        }
        for name in ("a", "b"):
            await groups.join("volcano", "train-1", name, owners=[owner])
        await groups.until_bound("a", "b")
        await groups.cluster.delete(VOLCANO_JOBS, "train")
        await groups.cluster.pass_time(3)
        assert await groups.used() == "2"
        for name in ("a", "b"):
            await groups.cluster.delete(PODS, name)
        await groups.end_deleted()
        await groups.cluster.pass_time(5)
        assert (await groups.names(), await groups.used()) == (set(), "0")


def _volcano_job(name: str, *, is_queued: bool) -> dict[str, object]:
    template = {"spec": {"containers": [{"name": "main", "image": "busybox"}]}}
    labels = {"kueue.x-k8s.io/queue-name": "cq"} if is_queued else {}
    spec = {"minAvailable": 2, "tasks": [{"name": "worker", "replicas": 2, "template": template}]}
    return {"metadata": {"name": name, "labels": labels}, "spec": spec}
