"""Admission of Workloads, as their statuses show it."""

from __future__ import annotations

from pathlib import Path

from build.queue_admission import (
    add_flavor,
    add_queue,
    finish,
    is_so,
    queued_cluster,
    said,
    start_admission,
    submit,
    until_so,
)
from build.small_clusters import SmallCluster
from build.virtual_time import virtual
from shoal.client.ecosystem_kinds import CLUSTER_QUEUES, LOCAL_QUEUES, WORKLOADS


@virtual
async def test_a_workload_is_admitted_with_its_flavor_and_its_use(tmp_path: Path) -> None:
    async with queued_cluster(tmp_path) as cluster:
        start_admission(cluster)
        await add_flavor(cluster)
        await add_queue(cluster)
        await submit(cluster, "a", cpu="500m", count=3)
        await until_so(cluster, "a")
        status = (await cluster.get(WORKLOADS, "a"))["status"]
        assert status["admission"] == {
            "clusterQueue": "cq",
            "podSetAssignments": [
                {"name": "main", "flavors": {"cpu": "default"}, "resourceUsage": {"cpu": "1500m"}, "count": 3}
            ],
        }
        assert await said(cluster, "a", "QuotaReserved") == (
            "True",
            "QuotaReserved",
            "Quota reserved in ClusterQueue cq",
        )
        assert await said(cluster, "a", "Admitted") == ("True", "Admitted", "The workload is admitted")
        await cluster.pass_time(2)
        reasons = {event["reason"]: event["message"] for event in await cluster.events("a")}
        assert reasons["QuotaReserved"] == "Quota reserved in ClusterQueue cq, wait time since queued was 0s"
        assert reasons["Admitted"] == "Admitted by ClusterQueue cq, wait time since reservation was 0s"


@virtual
async def test_a_workload_over_quota_is_pending_with_the_reason_until_others_have_finished(tmp_path: Path) -> None:
    async with queued_cluster(tmp_path) as cluster:
        start_admission(cluster)
        await add_flavor(cluster)
        await add_queue(cluster, cpu="2")
        await submit(cluster, "a", cpu="2")
        await until_so(cluster, "a")
        await submit(cluster, "b", cpu="1")
        await until_so(cluster, "b", "QuotaReserved", "False")
        words = (
            "couldn't assign flavors to pod set main: insufficient unused quota for cpu in flavor default, 1 more "
            "needed. Workload requires preemption, but there are no candidate workloads allowed for preemption"
        )
        await cluster.until(lambda: _is(cluster, "b", ("False", "WaitingForQuota", words)))
        assert await said(cluster, "b", "Admitted") == ("False", "NoReservation", "The workload has no reservation")
        status = (await cluster.get(WORKLOADS, "b"))["status"]
        assert status["resourceRequests"] == [{"name": "main", "resources": {"cpu": "1"}}]
        await finish(cluster, "a")
        await until_so(cluster, "b")
        assert "resourceRequests" not in (await cluster.get(WORKLOADS, "b"))["status"]


async def _is(cluster: SmallCluster, name: str, wanted: tuple[str, str, str]) -> bool:
    return await said(cluster, name, "QuotaReserved") == wanted


@virtual
async def test_a_missing_queue_is_named_and_its_workload_is_admitted_once_it_exists(tmp_path: Path) -> None:
    async with queued_cluster(tmp_path) as cluster:
        start_admission(cluster)
        await add_flavor(cluster)
        await submit(cluster, "a", queue="nowhere")
        await until_so(cluster, "a", "QuotaReserved", "False")
        assert await said(cluster, "a", "QuotaReserved") == (
            "False",
            "Misconfigured",
            "LocalQueue nowhere doesn't exist",
        )
        await add_queue(cluster, "nowhere")
        await until_so(cluster, "a")


@virtual
async def test_a_cluster_queue_without_its_flavor_is_inactive_and_admits_once_the_flavor_exists(tmp_path: Path) -> None:
    async with queued_cluster(tmp_path) as cluster:
        start_admission(cluster)
        await add_queue(cluster)
        await submit(cluster, "a")
        await cluster.until(lambda: _is(cluster, "a", ("False", "Suspended", "ClusterQueue cq is inactive")))
        await cluster.pass_time(3)
        queue = (await cluster.get(CLUSTER_QUEUES, "cq"))["status"]
        (active,) = queue["conditions"]
        assert (active["status"], active["reason"]) == ("False", "FlavorNotFound")
        assert active["message"] == "Can't admit new workloads: references missing ResourceFlavor(s): default."
        door = (await cluster.get(LOCAL_QUEUES, "cq"))["status"]["conditions"][0]
        assert (door["reason"], door["message"]) == (
            "ClusterQueueIsInactive",
            "Can't submit new workloads to clusterQueue",
        )
        await add_flavor(cluster)
        await until_so(cluster, "a")


@virtual
async def test_statuses_of_queues_count_pending_workloads_and_reserved_quota(tmp_path: Path) -> None:
    async with queued_cluster(tmp_path) as cluster:
        start_admission(cluster)
        await add_flavor(cluster)
        await add_queue(cluster, cpu="2")
        for name in ("a", "b", "c"):
            await submit(cluster, name, cpu="1")
        await cluster.pass_time(5)
        queue = (await cluster.get(CLUSTER_QUEUES, "cq"))["status"]
        counts = (queue["pendingWorkloads"], queue["reservingWorkloads"], queue["admittedWorkloads"])
        assert counts == (1, 2, 2)
        usage = [{"name": "default", "resources": [{"name": "cpu", "total": "2", "borrowed": "0"}]}]
        assert queue["flavorsReservation"] == usage
        assert queue["flavorsUsage"] == usage
        assert queue["conditions"][0]["message"] == "Can admit new workloads"
        door = (await cluster.get(LOCAL_QUEUES, "cq"))["status"]
        assert (door["pendingWorkloads"], door["admittedWorkloads"]) == (1, 2)
        assert door["flavorsUsage"] == [{"name": "default", "resources": [{"name": "cpu", "total": "2"}]}]
        assert door["conditions"][0]["message"] == "Can submit new workloads to localQueue"


@virtual
async def test_a_strict_queue_admits_no_workload_before_its_head(tmp_path: Path) -> None:
    async with queued_cluster(tmp_path) as cluster:
        start_admission(cluster)
        await add_flavor(cluster)
        await add_queue(cluster, "strict", cpu="2", queueingStrategy="StrictFIFO")
        await add_queue(cluster, "easy", cpu="2")
        for queue in ("strict", "easy"):
            await submit(cluster, f"{queue}-first", queue=queue, cpu="1")
            await until_so(cluster, f"{queue}-first")
            await submit(cluster, f"{queue}-large", queue=queue, cpu="2")
            await until_so(cluster, f"{queue}-large", "QuotaReserved", "False")
            await cluster.pass_time(2)
            await submit(cluster, f"{queue}-small", queue=queue, cpu="1")
        await until_so(cluster, "easy-small")
        await cluster.pass_time(5)
        assert not await is_so(cluster, "strict-small")
