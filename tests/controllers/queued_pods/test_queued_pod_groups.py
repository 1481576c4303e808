"""Pods of one group are one Workload: they are ungated together, and the outcome of each counts."""

from __future__ import annotations

from pathlib import Path

from build.queued_pod_scenarios import QueuedPodScenario, queued_pod_scenario
from build.virtual_time import virtual
from shoal.client.ecosystem_kinds import WORKLOADS
from shoal.client.kind import PODS
from shoal.client.port import Deletion


async def _running(scenario: QueuedPodScenario, *names: str, **more: object) -> None:
    """A group of these pods, admitted and on a node."""
    for name in names:
        await scenario.member(name, "gang", len(names), **more)
    await scenario.cluster.pass_time(1)
    await scenario.admit(await scenario.workload())
    await scenario.bind(*names)
    await scenario.cluster.pass_time(1)


@virtual
async def test_a_group_is_one_workload_once_all_pods_exist(tmp_path: Path) -> None:
    async with queued_pod_scenario(tmp_path) as scenario:
        await scenario.member("a", "gang", 3)
        await scenario.member("b", "gang", 3)
        await scenario.cluster.pass_time(1)
        assert await scenario.workloads() == []
        (event, *_) = await scenario.cluster.events("a")
        assert (event["reason"], event["message"]) == (
            "ErrWorkloadCompose",
            "'gang' group has fewer runnable pods than expected",
        )
        await scenario.member("c", "gang", 3, cpu="8")
        await scenario.cluster.pass_time(1)
        workload = await scenario.workload()
        assert workload["metadata"]["name"] == "gang"
        assert workload["metadata"]["annotations"]["kueue.x-k8s.io/is-group-workload"] == "true"
        assert {owner["name"] for owner in workload["metadata"]["ownerReferences"]} == {"a", "b", "c"}
        assert sorted(one["count"] for one in workload["spec"]["podSets"]) == [1, 2]
        assert len({one["name"] for one in workload["spec"]["podSets"]}) == 2
        assert await scenario.held() == {"a", "b", "c"}


@virtual
async def test_a_fast_group_does_not_wait_for_its_last_pods(tmp_path: Path) -> None:
    fast = {"kueue.x-k8s.io/pod-group-fast-admission": "true"}
    async with queued_pod_scenario(tmp_path) as scenario:
        await scenario.member("a", "gang", 3, notes=fast)
        await scenario.cluster.pass_time(1)
        workload = await scenario.workload()
        assert [one["count"] for one in workload["spec"]["podSets"]] == [3]
        await scenario.admit(workload)
        await scenario.member("b", "gang", 3, notes=fast)
        await scenario.cluster.pass_time(1)
        assert await scenario.held() == set()
        assert len((await scenario.workload())["metadata"]["ownerReferences"]) == 2


@virtual
async def test_all_pods_of_a_group_are_ungated_with_their_roles(tmp_path: Path) -> None:
    async with queued_pod_scenario(tmp_path) as scenario:
        await scenario.member("a", "gang", 2)
        await scenario.member("b", "gang", 2, cpu="8")
        await scenario.cluster.pass_time(1)
        await scenario.admit(await scenario.workload(), "spot")
        assert await scenario.held() == set()
        labels = {}
        for pod in await scenario.cluster.pods():
            labels[pod["metadata"]["name"]] = pod["metadata"]["labels"]["kueue.x-k8s.io/podset"]
            role = pod["metadata"]["annotations"]["kueue.x-k8s.io/role-hash"]
            assert role == labels[pod["metadata"]["name"]]
        assert labels["a"] != labels["b"]
        # What the flavor added makes them no other pods.
        await scenario.cluster.pass_time(30)
        assert len(await scenario.workloads()) == 1


@virtual
async def test_pods_beyond_the_announced_number_are_deleted(tmp_path: Path) -> None:
    async with queued_pod_scenario(tmp_path) as scenario:
        await _running(scenario, "a", "b")
        await scenario.member("late", "gang", 2)
        await scenario.cluster.pass_time(1)
        assert await scenario.names() == {"a", "b"}
        assert "ExcessPodDeleted" in await scenario.reasons("late")


@virtual
async def test_inconsistent_groups_are_reported(tmp_path: Path) -> None:
    async with queued_pod_scenario(tmp_path) as scenario:
        await scenario.member("a", "gang", 2)
        await scenario.member("b", "gang", 3)
        await scenario.cluster.pass_time(1)
        assert await scenario.workloads() == []
        messages = [event["message"] for event in await scenario.cluster.events("a")]
        assert any("has different 'kueue.x-k8s.io/pod-group-total-count' values: 2!=3" in one for one in messages)
        await scenario.member("x", "odd", 0)
        await scenario.cluster.pass_time(1)
        (event,) = await scenario.cluster.events("x")
        assert "group total count should be greater than zero" in event["message"]


@virtual
async def test_a_group_finishes_when_as_many_as_announced_succeeded(tmp_path: Path) -> None:
    async with queued_pod_scenario(tmp_path) as scenario:
        await _running(scenario, "a", "b")
        assert (await scenario.conditions())["PodsReady"] == ("True", "Started")
        await scenario.phase("Succeeded", "a")
        await scenario.cluster.pass_time(1)
        status = (await scenario.workload())["status"]
        assert [one["count"] for one in status["reclaimablePods"]] == [1]
        # A finished pod that somebody deletes is kept: it counts.
        await scenario.cluster.delete(PODS, "a", Deletion(grace_s=0))
        await scenario.cluster.pass_time(1)
        assert "a" in await scenario.names()
        await scenario.phase("Succeeded", "b")
        await scenario.cluster.pass_time(2)
        finished = next(one for one in (await scenario.workload())["status"]["conditions"] if one["type"] == "Finished")
        assert (finished["reason"], finished["message"]) == ("Succeeded", "Pods succeeded: 2/2.")
        assert await scenario.names() == {"b"}


@virtual
async def test_a_failed_pod_is_replaced_by_a_new_one(tmp_path: Path) -> None:
    async with queued_pod_scenario(tmp_path) as scenario:
        await _running(scenario, "a", "b")
        await scenario.phase("Failed", "b")
        await scenario.cluster.pass_time(1)
        conditions = await scenario.conditions()
        assert conditions["WaitingForReplacementPods"] == ("True", "PodsFailed")
        assert conditions["PodsReady"] == ("False", "WaitForRecovery")
        assert "Finished" not in conditions
        await scenario.member("c", "gang", 2)
        await scenario.cluster.pass_time(1)
        assert await scenario.held() == set()
        await scenario.bind("c")
        await scenario.cluster.pass_time(1)
        conditions = await scenario.conditions()
        assert conditions["WaitingForReplacementPods"][0] == "False"
        assert conditions["PodsReady"] == ("True", "Recovered")
        assert "finalizers" not in (await scenario.cluster.get(PODS, "b"))["metadata"]


@virtual
async def test_a_group_that_must_not_be_retried_ends_with_its_last_pod(tmp_path: Path) -> None:
    async with queued_pod_scenario(tmp_path) as scenario:
        await _running(scenario, "a", "b", notes={"kueue.x-k8s.io/retriable-in-group": "false"})
        await scenario.phase("Failed", "a")
        await scenario.cluster.pass_time(1)
        assert "Finished" not in await scenario.conditions()
        await scenario.phase("Succeeded", "b")
        await scenario.cluster.pass_time(1)
        finished = next(one for one in (await scenario.workload())["status"]["conditions"] if one["type"] == "Finished")
        assert finished["message"] == "Pods succeeded: 1/2."


@virtual
async def test_an_evicted_group_releases_its_quota_when_none_of_its_pods_runs(tmp_path: Path) -> None:
    async with queued_pod_scenario(tmp_path) as scenario:
        await _running(scenario, "a", "b")
        await scenario.evict(await scenario.workload())
        assert await scenario.ending() == {"a", "b"}
        await scenario.vanish("a")
        await scenario.cluster.pass_time(1)
        assert (await scenario.conditions())["QuotaReserved"][0] == "True"
        await scenario.vanish("b")
        await scenario.cluster.pass_time(1)
        conditions = await scenario.conditions()
        assert conditions["QuotaReserved"] == ("False", "PendingEvaluation")
        assert conditions["Admitted"] == ("False", "NoReservation")
        assert conditions["WaitingForReplacementPods"] == ("True", "Preempted")
        # Their places are kept for those who come after them.
        assert await scenario.names() == {"a", "b"}
        await scenario.member("c", "gang", 2)
        await scenario.member("d", "gang", 2)
        await scenario.cluster.pass_time(1)
        assert await scenario.names() == {"c", "d"}
        await scenario.admit(await scenario.workload())
        assert await scenario.held() == set()


@virtual
async def test_the_workload_of_a_group_whose_pods_are_all_deleted_is_deleted(tmp_path: Path) -> None:
    async with queued_pod_scenario(tmp_path) as scenario:
        await _running(scenario, "a", "b")
        for name in ("a", "b"):
            await scenario.cluster.delete(PODS, name)
        await scenario.vanish("a", "b")
        await scenario.cluster.pass_time(2)
        assert await scenario.names() == set()
        assert await scenario.workloads() == []


@virtual
async def test_a_pod_with_another_role_causes_another_workload(tmp_path: Path) -> None:
    async with queued_pod_scenario(tmp_path) as scenario:
        await scenario.member("a", "gang", 2)
        await scenario.member("b", "gang", 2)
        await scenario.cluster.pass_time(1)
        before = await scenario.workload()
        await scenario.cluster.delete(PODS, "b")
        await scenario.member("c", "gang", 2, cpu="8")
        await scenario.cluster.pass_time(2)
        after = await scenario.workload()
        assert after["metadata"]["uid"] != before["metadata"]["uid"]
        assert [one["count"] for one in after["spec"]["podSets"]] == [1, 1]


@virtual
async def test_deleting_the_workload_of_a_group_stops_all_pods(tmp_path: Path) -> None:
    async with queued_pod_scenario(tmp_path) as scenario:
        await _running(scenario, "a", "b")
        await scenario.cluster.delete(WORKLOADS, "gang")
        await scenario.cluster.pass_time(1)
        assert await scenario.ending() == {"a", "b"}
        assert await scenario.workloads() == []
        await scenario.vanish("a", "b")
        assert await scenario.names() == set()
