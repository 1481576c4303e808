"""Evictions of Workloads: by preemption, for other causes, and the requeueing after it."""

from __future__ import annotations

import random
from pathlib import Path

from build.queue_admission import (
    add_flavor,
    add_queue,
    is_so,
    queued_cluster,
    said,
    start_admission,
    stop,
    submit,
    until_so,
)
from build.small_clusters import SmallCluster
from build.stormy_api import StormyApi, Weather
from build.virtual_time import virtual
from shoal.api.kueue import Configuration
from shoal.api.kueue.configuration import RequeuingStrategy, WaitForPodsReady
from shoal.client.ecosystem_kinds import ADMISSION_CHECKS, CLUSTER_QUEUES, LOCAL_QUEUES, WORKLOADS


@virtual
async def test_a_higher_priority_preempts_a_lower_one_with_the_messages_of_kueue(tmp_path: Path) -> None:
    async with queued_cluster(tmp_path) as cluster:
        start_admission(cluster)
        await add_flavor(cluster)
        await add_queue(cluster, cpu="2", preemption={"withinClusterQueue": "LowerPriority"})
        await submit(cluster, "low", cpu="2", priority=1)
        await until_so(cluster, "low")
        high = await submit(cluster, "high", cpu="2", priority=100)
        await until_so(cluster, "low", "Preempted")
        status, reason, message = await said(cluster, "low", "Preempted")
        uid = high["metadata"]["uid"]
        words = (
            f"Preempted to accommodate a workload (UID: {uid}, JobUID: UNKNOWN) due to prioritization in the "
            "ClusterQueue; preemptor path: /cq; preemptee path: /cq"
        )
        assert (status, reason, message) == ("True", "InClusterQueue", words)
        assert await said(cluster, "low", "Evicted") == ("True", "Preempted", words)
        await cluster.pass_time(3)
        assert not await is_so(cluster, "high")
        assert (await said(cluster, "high", "QuotaReserved"))[1] == "WaitingForPreemptedWorkloads"
        reasons = {event["reason"] for event in await cluster.events("low")}
        assert {"EvictedDueToPreempted", "Preempted"} <= reasons
        (told,) = [event for event in await cluster.events("high") if event["reason"] == "PreemptedWorkload"]
        low = (await cluster.get(WORKLOADS, "low"))["metadata"]["uid"]
        ranks = (
            "preemptor effective priority: 100 (base: 100, boost: 0); "
            "preemptee effective priority: 1 (base: 1, boost: 0)"
        )
        made_room = f"Preempted workload default/low (UID: {low}) in ClusterQueue cq; {ranks}"
        assert (told["type"], told["message"]) == ("Normal", made_room)
        evictions = (await cluster.get(WORKLOADS, "low"))["status"]["schedulingStats"]["evictions"]
        assert evictions == [{"reason": "Preempted", "underlyingCause": "InClusterQueue", "count": 1}]
        await stop(cluster, "low")
        await until_so(cluster, "high")
        assert not await is_so(cluster, "low")


@virtual
async def test_borrowed_quota_is_reclaimed_when_the_lender_needs_it(tmp_path: Path) -> None:
    async with queued_cluster(tmp_path) as cluster:
        start_admission(cluster)
        await add_flavor(cluster)
        for name in ("one", "two"):
            await add_queue(cluster, name, cpu="2", cohortName="all", preemption={"reclaimWithinCohort": "Any"})
        await submit(cluster, "borrows", queue="one", cpu="4")
        await until_so(cluster, "borrows")
        await cluster.pass_time(3)
        used = (await cluster.get(CLUSTER_QUEUES, "one"))["status"]["flavorsUsage"][0]["resources"][0]
        assert used == {"name": "cpu", "total": "4", "borrowed": "2"}
        await submit(cluster, "owns", queue="two", cpu="2")
        await until_so(cluster, "borrows", "Preempted")
        assert (await said(cluster, "borrows", "Preempted"))[1] == "InCohortReclamation"
        await stop(cluster, "borrows")
        await until_so(cluster, "owns")
        assert not await is_so(cluster, "borrows")


@virtual
async def test_a_deactivated_workload_is_evicted_and_requeued_when_activated(tmp_path: Path) -> None:
    async with queued_cluster(tmp_path) as cluster:
        start_admission(cluster)
        await add_flavor(cluster)
        await add_queue(cluster)
        await submit(cluster, "a")
        await until_so(cluster, "a")
        await cluster.patch(WORKLOADS, "a", {"spec": {"active": False}})
        await until_so(cluster, "a", "Evicted")
        assert await said(cluster, "a", "Evicted") == ("True", "Deactivated", "The workload is deactivated")
        await stop(cluster, "a", "Deactivated", requeued=False)
        await cluster.pass_time(3)
        assert not await is_so(cluster, "a")
        await cluster.patch(WORKLOADS, "a", {"spec": {"active": True}})
        await until_so(cluster, "a")
        assert (await said(cluster, "a", "Requeued"))[1:] == ("Reactivated", "The workload was reactivated")
        assert await said(cluster, "a", "Evicted") == (
            "False",
            "QuotaReserved",
            "Previously: The workload is deactivated",
        )


@virtual
async def test_a_drained_queue_stops_its_workloads_and_a_held_one_keeps_them(tmp_path: Path) -> None:
    async with queued_cluster(tmp_path) as cluster:
        start_admission(cluster)
        await add_flavor(cluster)
        for name in ("held", "drained"):
            await add_queue(cluster, name)
            await submit(cluster, name, queue=name)
            await until_so(cluster, name)
        await cluster.patch(CLUSTER_QUEUES, "held", {"spec": {"stopPolicy": "Hold"}})
        await cluster.patch(LOCAL_QUEUES, "drained", {"spec": {"stopPolicy": "HoldAndDrain"}})
        await until_so(cluster, "drained", "Evicted")
        assert await said(cluster, "drained", "Evicted") == (
            "True",
            "LocalQueueStopped",
            "The LocalQueue is stopped",
        )
        await cluster.pass_time(3)
        assert await said(cluster, "held", "Evicted") == ("", "", "")
        await stop(cluster, "drained", "LocalQueueStopped", requeued=False)
        await cluster.patch(LOCAL_QUEUES, "drained", {"spec": {"stopPolicy": "None"}})
        await until_so(cluster, "drained")
        assert (await said(cluster, "drained", "Requeued"))[1] == "LocalQueueRestarted"


@virtual
async def test_a_workload_whose_pods_are_not_ready_in_time_is_requeued_and_finally_deactivated(tmp_path: Path) -> None:
    waits = WaitForPodsReady(
        timeout="1m", requeuing_strategy=RequeuingStrategy(backoff_limit_count=1, backoff_base_seconds=60)
    )
    async with queued_cluster(tmp_path) as cluster:
        start_admission(cluster, Configuration(wait_for_pods_ready=waits))
        await add_flavor(cluster)
        await add_queue(cluster)
        await submit(cluster, "a")
        await until_so(cluster, "a")
        await cluster.until(lambda: is_so(cluster, "a", "Evicted"), 90)
        assert await said(cluster, "a", "Evicted") == (
            "True",
            "PodsReadyTimeout",
            "Exceeded the PodsReady timeout default/a",
        )
        assert (await cluster.get(WORKLOADS, "a"))["status"]["requeueState"]["count"] == 1
        await stop(cluster, "a", "PodsReadyTimeout", requeued=False)
        await cluster.pass_time(20)
        assert not await is_so(cluster, "a")
        await cluster.until(lambda: is_so(cluster, "a"), 90)
        assert (await said(cluster, "a", "Requeued"))[1:] == ("BackoffFinished", "The workload backoff was finished")
        await cluster.until(lambda: is_so(cluster, "a", "Evicted"), 90)
        words = "The workload is deactivated due to exceeding the maximum number of re-queuing retries"
        assert (await said(cluster, "a", "Evicted"))[1:] == ("DeactivatedDueToRequeuingLimitExceeded", words)
        assert (await cluster.get(WORKLOADS, "a"))["spec"]["active"] is False


@virtual
async def test_a_workload_that_waits_until_others_are_ready_has_that_reason(tmp_path: Path) -> None:
    waits = WaitForPodsReady(timeout="10m", block_admission=True)
    async with queued_cluster(tmp_path) as cluster:
        slow = StormyApi(cluster.api, cluster.clock, random.Random(1), Weather(slow_s=2.0))
        start_admission(cluster, Configuration(wait_for_pods_ready=waits), api=slow)
        await add_flavor(cluster)
        await add_queue(cluster)
        await submit(cluster, "first")
        await until_so(cluster, "first")
        await submit(cluster, "second")
        # Its job says something of it as well: it is heard of twice before anything is written.
        for word in ("a", "b", "c"):
            await cluster.pass_time(0.1)
            await cluster.patch(WORKLOADS, "second", {"metadata": {"labels": {"x": word}}})
        await cluster.pass_time(6)
        words = "waiting for all admitted workloads to be in PodsReady condition"
        assert await said(cluster, "second", "QuotaReserved") == ("False", "WaitingForPodsReady", words)


async def _is_looked_after(cluster: SmallCluster, check: str) -> None:
    """As its controller says."""
    said = {"type": "Active", "status": "True", "reason": "Active", "message": "m"}
    conditions = [{**said, "lastTransitionTime": cluster.clock.text()}]
    await cluster.patch(ADMISSION_CHECKS, check, {"status": {"conditions": conditions}}, "status")


@virtual
async def test_a_check_without_a_controller_makes_the_queues_that_require_it_inactive(tmp_path: Path) -> None:
    async with queued_cluster(tmp_path) as cluster:
        start_admission(cluster)
        await add_flavor(cluster)
        check = {"metadata": {"name": "chk"}, "spec": {"controllerName": "example.com/check"}}
        await cluster.create(ADMISSION_CHECKS, check)
        await add_queue(cluster, admissionChecksStrategy={"admissionChecks": [{"name": "chk"}]})
        await submit(cluster, "a")
        await cluster.pass_time(3)
        (active,) = (await cluster.get(CLUSTER_QUEUES, "cq"))["status"]["conditions"]
        words = "Can't admit new workloads: references inactive AdmissionCheck(s): chk."
        assert (active["status"], active["reason"], active["message"]) == ("False", "AdmissionCheckInactive", words)
        assert not await is_so(cluster, "a", "QuotaReserved")
        await _is_looked_after(cluster, "chk")
        await until_so(cluster, "a", "QuotaReserved")


@virtual
async def test_a_check_delays_admission_until_it_is_ready_and_a_rejection_deactivates(tmp_path: Path) -> None:
    async with queued_cluster(tmp_path) as cluster:
        start_admission(cluster)
        await add_flavor(cluster)
        check = {"metadata": {"name": "budget"}, "spec": {"controllerName": "example.com/budget"}}
        await cluster.create(ADMISSION_CHECKS, check)
        await add_queue(cluster, admissionChecksStrategy={"admissionChecks": [{"name": "budget"}]})
        await _is_looked_after(cluster, "budget")
        for name in ("yes", "no"):
            await submit(cluster, name)
            await until_so(cluster, name, "QuotaReserved")
            await cluster.pass_time(2)
            assert await said(cluster, name, "Admitted") == (
                "False",
                "UnsatisfiedAdmissionChecks",
                "The workload has not all checks ready",
            )
            (found,) = (await cluster.get(WORKLOADS, name))["status"]["admissionChecks"]
            assert (found["name"], found["state"]) == ("budget", "Pending")
            state = {"yes": "Ready", "no": "Rejected"}[name]
            await cluster.patch(WORKLOADS, name, {"status": {"admissionChecks": [{**found, "state": state}]}}, "status")
        await until_so(cluster, "yes")
        await until_so(cluster, "no", "Evicted")
        words = 'The workload is deactivated due to AdmissionCheck in Rejected state: "budget"'
        assert (await said(cluster, "no", "Evicted"))[1:] == ("DeactivatedDueToAdmissionCheck", words)
