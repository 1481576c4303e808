"""Pods that yield: marked, ended with their grace, and what becomes of those for whom they yield."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from build.live_schedulers import add_node, condition, is_bound, places, pod, start_scheduler
from build.small_clusters import SmallCluster, small_cluster
from build.virtual_time import virtual
from shoal.client.item import Item, Obj
from shoal.client.kind import DISRUPTION_BUDGETS, PODS, PRIORITY_CLASSES, Kind
from shoal.client.port import GENTLY, Deletion
from shoal.client.refusals import BusyError, ForbiddenError
from shoal.client.write_through import WriteThroughApi
from shoal.embedded.controllers.disruption.controller import disruption_controller
from shoal.store.watched.cluster import WatchSettings

START = "2026-01-01T00:00:00Z"


async def classes(cluster: SmallCluster) -> None:
    await cluster.create(PRIORITY_CLASSES, {"metadata": {"name": "high"}, "value": 100})
    await cluster.create(PRIORITY_CLASSES, {"metadata": {"name": "higher"}, "value": 200})


async def runs(cluster: SmallCluster, *names: str, since: str = START, ready: bool = True) -> None:
    conditions = [{"type": "Ready", "status": "True", "lastTransitionTime": since}] if ready else []
    status = {"phase": "Running", "startTime": since, "conditions": conditions}
    for name in names:
        await cluster.until(lambda name=name: is_bound(cluster, name), 5)  # type: ignore[misc]
        await cluster.patch(PODS, name, {"status": status}, subresource="status")


async def ending(cluster: SmallCluster) -> list[str]:
    pods = await cluster.pods()
    return sorted(one["metadata"]["name"] for one in pods if "deletionTimestamp" in one["metadata"])


async def end(cluster: SmallCluster, name: str) -> None:
    await cluster.delete(PODS, name, Deletion(grace_s=0))


@virtual
async def test_the_more_important_pod_takes_the_place_of_the_less_important(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await classes(cluster)
        await add_node(cluster, "n1", gpus=1)
        start_scheduler(cluster)
        await cluster.create(PODS, pod("low", gpus=1, terminationGracePeriodSeconds=77))
        await runs(cluster, "low")
        await cluster.create(PODS, pod("urgent", gpus=1, priorityClassName="high"))
        await cluster.pass_time(1)
        target = await condition(cluster, "low", "DisruptionTarget")
        assert (target["status"], target["reason"]) == ("True", "PreemptionByScheduler")
        assert target["message"] == "shoal: preempting to accommodate a higher priority pod"
        low = await cluster.get(PODS, "low")
        assert low["metadata"]["deletionGracePeriodSeconds"] == 77
        urgent = await cluster.get(PODS, "urgent")
        assert urgent["status"]["nominatedNodeName"] == "n1"
        assert (await condition(cluster, "urgent"))["message"].startswith(
            "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."
        )
        said = [one["message"] for one in await cluster.events("low") if one["reason"] == "Preempted"]
        assert said == [f"Preempted by pod {urgent['metadata']['uid']} on node n1"]
        about = {one["reason"]: one for name in ("low", "urgent") for one in await cluster.events(name)}
        preempted, bound = about["Preempted"], about["Scheduled"]
        assert (preempted["action"], preempted["related"]["uid"]) == ("Preempting", urgent["metadata"]["uid"])
        assert (bound["action"], bound["reportingComponent"]) == ("Binding", "shoal")
        assert about["FailedScheduling"]["action"] == "Scheduling"
        await end(cluster, "low")
        await cluster.until(lambda: is_bound(cluster, "urgent"), 5)
        assert "nominatedNodeName" not in (await cluster.get(PODS, "urgent"))["status"]


@virtual
async def test_a_nomination_outlives_the_scheduler_that_made_it(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await classes(cluster)
        for name in ("n1", "n2"):
            await add_node(cluster, name, gpus=1)
        first = start_scheduler(cluster)
        for name in ("a", "b"):
            await cluster.create(PODS, pod(name, gpus=1))
        await runs(cluster, "a", "b")
        await cluster.create(PODS, pod("urgent", gpus=1, priorityClassName="high"))
        await cluster.pass_time(1)
        await first.kill()
        left = await ending(cluster)
        assert len(left) == 1
        nominated = (await cluster.get(PODS, "urgent"))["status"]["nominatedNodeName"]
        start_scheduler(cluster)
        await cluster.pass_time(60)
        assert await ending(cluster) == left
        await end(cluster, left[0])
        await cluster.until(lambda: is_bound(cluster, "urgent"), 5)
        assert (await places(cluster))["urgent"] == nominated


@virtual
async def test_a_promise_is_taken_back_when_somebody_more_important_takes_the_room(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await classes(cluster)
        await add_node(cluster, "n1", gpus=1)
        start_scheduler(cluster)
        await cluster.create(PODS, pod("low", gpus=1))
        await runs(cluster, "low")
        await cluster.create(PODS, pod("urgent", gpus=1, priorityClassName="high"))
        await cluster.pass_time(1)
        await cluster.create(PODS, pod("first", gpus=1, priorityClassName="higher"))
        await cluster.pass_time(1)
        assert (await cluster.get(PODS, "first"))["status"]["nominatedNodeName"] == "n1"
        assert "nominatedNodeName" not in (await cluster.get(PODS, "urgent"))["status"]
        await end(cluster, "low")
        await cluster.until(lambda: is_bound(cluster, "first"), 5)
        await cluster.pass_time(10)
        assert not await is_bound(cluster, "urgent")


@virtual
async def test_pods_under_a_budget_that_allows_nothing_stay_and_others_yield(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [disruption_controller]) as cluster:
        await classes(cluster)
        await add_node(cluster, "n1", gpus=1)
        start_scheduler(cluster)
        await cluster.create(PODS, pod("kept", gpus=1, labels={"app": "kept"}))
        await runs(cluster, "kept")
        selector = {"matchLabels": {"app": "kept"}}
        await cluster.create(
            DISRUPTION_BUDGETS, {"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "selector": selector}}
        )
        await cluster.pass_time(5)
        await cluster.create(PODS, pod("urgent", gpus=1, priorityClassName="high"))
        await cluster.pass_time(30)
        assert not await ending(cluster)
        await cluster.patch(DISRUPTION_BUDGETS, "b", {"spec": {"minAvailable": 0}})
        await cluster.pass_time(40)
        assert await ending(cluster) == ["kept"]
        target = await condition(cluster, "kept", "DisruptionTarget")
        assert target["reason"] == "PreemptionByScheduler"


class NoEnds(WriteThroughApi):
    """Somebody forbids that pods are deleted."""

    tried = 0

    async def delete(self, kind: Kind, namespace: str, name: str, how: Deletion = GENTLY) -> Item | None:
        self.tried += 1
        raise ForbiddenError("not this one")


@virtual
async def test_ends_that_are_refused_are_tried_more_and_more_seldom(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await classes(cluster)
        await add_node(cluster, "n1", gpus=1)
        api = NoEnds(cluster.api, cluster.informers)
        live = start_scheduler(cluster, api)
        await cluster.create(PODS, pod("low", gpus=1))
        await runs(cluster, "low")
        await cluster.create(PODS, pod("urgent", gpus=1, priorityClassName="high"))
        await cluster.pass_time(300)
        assert 4 <= api.tried <= 16
        assert live.loop.rounds < 200
        said = {one["reason"]: one["message"] for one in await cluster.events("low")}
        assert said["PreemptionFailed"] == "Cannot be ended: not this one"


@virtual
async def test_of_equals_the_one_that_loses_least_yields(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await classes(cluster)
        for name in ("n1", "n2", "n3"):
            await add_node(cluster, name, gpus=1)
        start_scheduler(cluster)
        await cluster.pass_time(10_000)
        for name, annotations in (
            ("plain", {}),
            ("saves", {"shoal.dev/checkpoint-every": "10m"}),
            ("saved", {"shoal.dev/last-checkpoint": "2026-01-01T02:30:00Z"}),
        ):
            await cluster.create(PODS, pod(name, gpus=1, annotations=annotations))
        # The last save of one is 6 m 40 s ago, of the other 16 m 40 s.
        await runs(cluster, "plain", "saves", "saved")
        for number, loser in enumerate(("saves", "saved", "plain")):
            await cluster.create(PODS, pod(f"urgent-{number}", gpus=1, priorityClassName="high"))
            await cluster.pass_time(1)
            assert await ending(cluster) == [loser]
            await end(cluster, loser)
            await cluster.until(lambda number=number: is_bound(cluster, f"urgent-{number}"), 5)  # type: ignore[misc]


@virtual
async def test_whoever_says_so_never_yields(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await classes(cluster)
        await add_node(cluster, "n1", gpus=1)
        start_scheduler(cluster)
        await cluster.create(PODS, pod("low", gpus=1, annotations={"shoal.dev/preemptible": "false"}))
        await runs(cluster, "low")
        await cluster.create(PODS, pod("urgent", gpus=1, priorityClassName="high"))
        await cluster.pass_time(60)
        assert not await ending(cluster)
        assert not await is_bound(cluster, "urgent")


@virtual
async def test_a_gang_yields_whole_and_the_gang_that_preempts_gets_the_room(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await classes(cluster)
        for name in ("n1", "n2"):
            await add_node(cluster, name, gpus=2)
        start_scheduler(cluster)
        for name in ("a", "b"):
            await cluster.create(PODS, gang_pod("low", name, 2))
        await runs(cluster, "low-a", "low-b")
        for name in ("a", "b"):
            await cluster.create(PODS, gang_pod("urgent", name, 2, priorityClassName="high"))
        await cluster.pass_time(1)
        assert await ending(cluster) == ["low-a", "low-b"]
        said = [one["message"] for one in await cluster.events("low-a") if one["reason"] == "Preempted"]
        assert said[0].startswith("Preempted by pod group default/urgent on node n")
        for name in ("low-a", "low-b"):
            await end(cluster, name)
            await cluster.pass_time(5)
        await cluster.until(lambda: is_bound(cluster, "urgent-a", "urgent-b"), 5)


@virtual
async def test_a_member_with_a_place_is_not_told_that_others_make_room_for_it(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await classes(cluster)
        await add_node(cluster, "n1", gpus=2)
        start_scheduler(cluster)
        await cluster.create(PODS, pod("low", gpus=2))
        await runs(cluster, "low")
        await add_node(cluster, "n2", gpus=2)
        for name in ("a", "b"):
            await cluster.create(PODS, gang_pod("urgent", name, 2, priorityClassName="high"))
        await cluster.pass_time(3)
        words = {
            (await condition(cluster, f"urgent-{name}"))["message"].partition(" nvidia.com/gpu. ")[2] for name in "ab"
        }
        kept = "It is nominated to n2 until the other pods of its gang fit."
        assert words == {"It is nominated to n1, where pods are being preempted for it.", kept}


@virtual
async def test_a_victim_is_told_by_whose_scheduler_it_had_to_go(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await classes(cluster)
        await add_node(cluster, "n1", gpus=1)
        start_scheduler(cluster, watch=WatchSettings(schedulers=frozenset({"shoal", "default-scheduler"})))
        await cluster.create(PODS, pod("low", gpus=1))
        await runs(cluster, "low")
        urgent = pod("urgent", gpus=1, priorityClassName="high")
        urgent["spec"]["schedulerName"] = "default-scheduler"
        await cluster.create(PODS, urgent)
        await cluster.pass_time(1)
        target = await condition(cluster, "low", "DisruptionTarget")
        assert target["message"] == "default-scheduler: preempting to accommodate a higher priority pod"


def gang_pod(group: str, name: str, size: int, **more: Any) -> Obj:
    labels = {"pod-group.scheduling.sigs.k8s.io/name": group}
    labels["pod-group.scheduling.sigs.k8s.io/min-available"] = str(size)
    return pod(f"{group}-{name}", gpus=2, labels=labels, **more)


@virtual
async def test_pods_of_a_queued_workload_are_not_ended_from_here(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await classes(cluster)
        await add_node(cluster, "n1", gpus=1)
        live = start_scheduler(cluster)
        queued = pod("low", gpus=1, annotations={"kueue.x-k8s.io/workload": "job-low"})
        await cluster.create(PODS, queued)
        await runs(cluster, "low")
        await cluster.create(PODS, pod("urgent", gpus=1, priorityClassName="high"))
        await cluster.pass_time(120)
        assert not await ending(cluster)
        assert live.loop.rounds < 100


@virtual
async def test_a_pod_that_comes_back_moves_so_that_a_larger_one_fits(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "u", "controller": True}
        for name, node in (("a", "n1"), ("b", "n2")):
            await add_node(cluster, node, gpus=2)
            one = pod(name, gpus=1, nodeName=node)
            one["metadata"]["ownerReferences"] = [owner]
            await cluster.create(PODS, one)
        await runs(cluster, "a", "b")
        start_scheduler(cluster)
        await cluster.create(PODS, pod("big", gpus=2))
        await cluster.pass_time(2)
        (moved,) = await ending(cluster)
        other, source = ("b", "n1") if moved == "a" else ("a", "n2")
        target = {"n1": "n2", "n2": "n1"}[source]
        assert (await cluster.get(PODS, "big"))["status"]["nominatedNodeName"] == source
        (said,) = [one["message"] for one in await cluster.events(moved) if one["reason"] == "Moved"]
        assert said == (
            f"Moved away from node {source} to make room for default/big; there is room for its successor on {target}"
        )
        await end(cluster, moved)
        await cluster.create(PODS, pod("successor", gpus=1))
        await cluster.until(lambda: is_bound(cluster, "big", "successor"), 5)
        assert await places(cluster) == {"big": source, "successor": target, other: target}


class ClosedDoor(WriteThroughApi):
    """Somebody else has used up what the budgets allowed, and the caches do not know it yet."""

    tried = 0

    async def post(self, kind: Kind, namespace: str, name: str, subresource: str, obj: Obj) -> Obj:
        if subresource != "eviction":
            return await super().post(kind, namespace, name, subresource, obj)
        self.tried += 1
        causes = [{"reason": "DisruptionBudget", "message": "The disruption budget b needs 0 healthy pods"}]
        words = "Cannot evict pod as it would violate the pod's disruption budget."
        raise BusyError(words, 0.0, code=429, reason="TooManyRequests", details={"causes": causes})


@virtual
async def test_an_end_that_a_budget_refuses_at_the_door_is_no_end(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [disruption_controller]) as cluster:
        await classes(cluster)
        await add_node(cluster, "n1", gpus=1)
        api = ClosedDoor(cluster.api, cluster.informers)
        start_scheduler(cluster, api)
        await cluster.create(PODS, pod("kept", gpus=1, labels={"app": "kept"}))
        await runs(cluster, "kept")
        spec = {"minAvailable": 0, "selector": {"matchLabels": {"app": "kept"}}}
        await cluster.create(DISRUPTION_BUDGETS, {"metadata": {"name": "b"}, "spec": spec})
        await cluster.pass_time(5)
        await cluster.create(PODS, pod("urgent", gpus=1, priorityClassName="high"))
        await cluster.pass_time(60)
        assert 2 <= api.tried <= 10
        assert not await ending(cluster)
        assert not await condition(cluster, "kept", "DisruptionTarget")


class Slow(WriteThroughApi):
    """Bindings take a while; of some it is not known what became of them."""

    def __init__(self, cluster: SmallCluster, *, fails: bool) -> None:
        super().__init__(cluster.api, cluster.informers)
        self._cluster, self._fails = cluster, fails

    async def post(self, kind: Kind, namespace: str, name: str, subresource: str, obj: Obj) -> Obj:
        if name == "low":
            await self._cluster.pass_time(5)
            if self._fails:
                raise BusyError("lost", 1.0)
        return await super().post(kind, namespace, name, subresource, obj)


@pytest.mark.parametrize("fails", [False, True])
@virtual
async def test_a_pod_that_has_not_begun_is_not_ended_but_waits_again(fails: bool, tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await classes(cluster)
        await add_node(cluster, "n1", gpus=1)
        start_scheduler(cluster, Slow(cluster, fails=fails))
        await cluster.create(PODS, pod("low", gpus=1))
        await cluster.pass_time(2)
        await cluster.create(PODS, pod("urgent", gpus=1, priorityClassName="high"))
        await cluster.pass_time(2)
        assert not await ending(cluster)
        await cluster.pass_time(20)
        if fails:
            assert await places(cluster) == {"low": "", "urgent": "n1"}
            assert not await ending(cluster)
        else:
            # The answer was on its way: it runs, and has to yield as others do.
            assert await ending(cluster) == ["low"]
            said = [one["message"] for one in await cluster.events("low") if one["reason"] == "Preempted"]
            assert said[0].endswith("on node n1")
