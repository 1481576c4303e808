"""KAI's queues: quota, limit, what is beyond quota, who yields, and what their statuses say."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from build.kai_clusters import (
    GROUP,
    QUEUE_LABEL,
    add_gang,
    add_kai_itself,
    add_kai_queue,
    add_work,
    bound,
    kai_cluster,
    start_kai,
    terminating,
)
from build.kai_owners import QUEUED, add_job, add_owned
from build.live_schedulers import add_node, condition, pod
from build.small_clusters import SmallCluster
from build.virtual_time import virtual
from shoal.client.ecosystem_kinds import KAI_POD_GROUPS, KAI_QUEUES
from shoal.client.item import Item, Obj
from shoal.client.kind import EVENTS, LEASES, PODS, Kind
from shoal.client.port import Deletion
from shoal.client.write_through import WriteThroughApi


@virtual
async def test_a_queue_goes_beyond_its_quota_where_there_is_room_but_never_beyond_its_limit(tmp_path: Path) -> None:
    async with kai_cluster(tmp_path) as cluster:
        start_kai(cluster)
        await add_node(cluster, "n1", gpus=8)
        await add_kai_queue(cluster, "team", 1, limit=3)
        for index in range(5):
            await add_work(cluster, f"w{index}", "team")
        await cluster.pass_time(5)
        assert len(await bound(cluster)) == 3


@virtual
async def test_what_a_queue_without_weight_holds_beyond_its_quota_is_for_those_that_have_one(tmp_path: Path) -> None:
    async with kai_cluster(tmp_path) as cluster:
        start_kai(cluster)
        await add_node(cluster, "n1", gpus=4)
        await add_kai_queue(cluster, "team", 2, weight=0)
        await add_kai_queue(cluster, "other", 0)
        for index in range(4):
            await add_work(cluster, f"w{index}", "team")
        await cluster.until(lambda: _count(cluster, "w", 4))
        for index in range(4):
            await add_work(cluster, f"other{index}", "other")
        await cluster.pass_time(5)
        assert len(await terminating(cluster)) == 2


@virtual
async def test_a_limit_of_the_parent_holds_for_all_below_it(tmp_path: Path) -> None:
    async with kai_cluster(tmp_path) as cluster:
        start_kai(cluster)
        await add_node(cluster, "n1", gpus=8)
        await add_kai_queue(cluster, "department", 4, limit=4)
        for name in ("a", "b"):
            await add_kai_queue(cluster, name, 4, parent="department")
            for index in range(4):
                await add_work(cluster, f"{name}{index}", name)
        await cluster.pass_time(5)
        assert len(await bound(cluster)) == 4


@virtual
async def test_work_that_is_never_ended_stays_within_quota_and_its_event_says_so(tmp_path: Path) -> None:
    async with kai_cluster(tmp_path) as cluster:
        start_kai(cluster)
        await add_node(cluster, "n1", gpus=8)
        await add_kai_queue(cluster, "team", 2)
        for index in range(3):
            await add_work(cluster, f"fixed{index}", "team", priorityClassName="build")
        await cluster.pass_time(5)
        assert len(await bound(cluster)) == 2
        await add_work(cluster, "loose", "team")
        await cluster.pass_time(5)
        assert "loose" in await bound(cluster)
        told = [item.obj() for item in (await cluster.api.list(EVENTS, "")).items]
        assert any(event["message"].startswith("NonPreemptibleOverQuota: ") for event in told)


@virtual
async def test_a_queue_gets_its_quota_back_from_who_went_beyond_theirs(tmp_path: Path) -> None:
    async with kai_cluster(tmp_path) as cluster:
        start_kai(cluster)
        await add_node(cluster, "n1", gpus=4)
        await add_kai_queue(cluster, "a", 2)
        await add_kai_queue(cluster, "b", 2)
        for index in range(4):
            await add_work(cluster, f"a{index}", "a")
        await cluster.until(lambda: _count(cluster, "a", 4))
        for index in range(3):
            await add_work(cluster, f"b{index}", "b")
        await cluster.pass_time(3)
        victims = await terminating(cluster)
        assert len(victims) == 2
        for ended in victims:
            assert (await condition(cluster, ended, "DisruptionTarget"))["reason"] == "PreemptionByScheduler"
            await cluster.delete(PODS, ended, Deletion(grace_s=0))
            await cluster.pass_time(3)
        assert await terminating(cluster) == []
        await cluster.pass_time(5)
        assert len(await bound(cluster, "a")) == 2
        assert len(await bound(cluster, "b")) == 2


async def _count(cluster: SmallCluster, start: str, count: int) -> bool:
    return len(await bound(cluster, start)) == count


@virtual
@pytest.mark.parametrize(("priority", "gets"), [(100, 2), (200, 4)])
async def test_beyond_quotas_queues_of_higher_priority_come_first_and_equals_share(
    tmp_path: Path, priority: int, gets: int
) -> None:
    async with kai_cluster(tmp_path) as cluster:
        start_kai(cluster)
        await add_node(cluster, "n1", gpus=4)
        await add_kai_queue(cluster, "usual", 0)
        await add_kai_queue(cluster, "high", 0, priority=priority)
        for index in range(4):
            await add_work(cluster, f"usual{index}", "usual")
        await cluster.until(lambda: _count(cluster, "usual", 4))
        for index in range(4):
            await add_work(cluster, f"high{index}", "high")
        for _ in range(6):
            await cluster.pass_time(5)
            for name in await terminating(cluster):
                await cluster.delete(PODS, name, Deletion(grace_s=0))
        assert (len(await bound(cluster, "usual")), len(await bound(cluster, "high"))) == (4 - gets, gets)


@virtual
async def test_within_a_queue_lower_priority_yields_and_what_is_never_ended_does_not(tmp_path: Path) -> None:
    async with kai_cluster(tmp_path) as cluster:
        start_kai(cluster)
        await add_node(cluster, "n1", gpus=2)
        await add_kai_queue(cluster, "team", 2)
        await add_work(cluster, "fixed", "team", priorityClassName="build")
        await add_work(cluster, "loose", "team", priorityClassName="train")
        await cluster.until(lambda: _count(cluster, "", 2))
        await add_work(cluster, "important", "team", priorityClassName="inference")
        await cluster.pass_time(3)
        assert await terminating(cluster) == ["loose"]


@virtual
async def test_a_gang_comes_whole_and_what_it_has_beyond_comes_as_far_as_there_is_room(tmp_path: Path) -> None:
    async with kai_cluster(tmp_path) as cluster:
        start_kai(cluster)
        await add_node(cluster, "n1", gpus=4)
        await add_kai_queue(cluster, "team", 4, limit=4)
        await add_gang(cluster, "wide", "team", count=5, least=5)
        await cluster.pass_time(3)
        assert await bound(cluster) == []
        status = (await cluster.get(KAI_POD_GROUPS, "wide"))["status"]
        assert status["schedulingConditions"][0]["type"] == "UnschedulableOnNodePool"
        assert status["schedulingConditions"][0]["reason"] == "OverLimit"
        assert (status["pending"], status["running"]) == (5, 0)
        await add_gang(cluster, "elastic", "team", count=6, least=2)
        await cluster.pass_time(3)
        assert len(await bound(cluster, "elastic")) == 4


@virtual
async def test_queues_say_what_is_held_and_asked_for_below_them(tmp_path: Path) -> None:
    async with kai_cluster(tmp_path) as cluster:
        start_kai(cluster)
        await add_node(cluster, "n1", gpus=2)
        await add_kai_queue(cluster, "department", 2)
        await add_kai_queue(cluster, "team", 2, parent="department")
        for index in range(3):
            await add_work(cluster, f"w{index}", "team", priorityClassName="build")
        await cluster.pass_time(5)
        for name in ("team", "department"):
            status: Obj = (await cluster.get(KAI_QUEUES, name))["status"]
            assert status["allocated"]["nvidia.com/gpu"] == "2"
            assert status["allocatedNonPreemptible"]["nvidia.com/gpu"] == "2"
            assert status["requested"]["nvidia.com/gpu"] == "3"
        assert (await cluster.get(KAI_QUEUES, "department"))["status"]["childQueues"] == ["team"]


class SlowOfLeases(WriteThroughApi):
    async def get(self, kind: Kind, namespace: str, name: str) -> Item:
        if kind == LEASES:
            await asyncio.sleep(5)
        return await super().get(kind, namespace, name)


@virtual
async def test_where_kai_itself_runs_not_even_the_first_round_decides_or_writes(tmp_path: Path) -> None:
    async with kai_cluster(tmp_path) as cluster:
        await add_node(cluster, "n1", gpus=2)
        await add_kai_queue(cluster, "team", 2)
        await add_work(cluster, "w", "team")
        await add_kai_itself(cluster)
        start_kai(cluster, SlowOfLeases(cluster.api, cluster.informers), asks_for_kai=True)
        await cluster.pass_time(30)
        assert "status" not in await cluster.get(KAI_QUEUES, "team")


@virtual
async def test_work_of_a_queue_that_is_not_there_waits_until_somebody_makes_it(tmp_path: Path) -> None:
    async with kai_cluster(tmp_path) as cluster:
        start_kai(cluster)
        await add_node(cluster, "n1", gpus=2)
        await add_kai_queue(cluster, "other", 2)
        await add_gang(cluster, "g", "team", count=2, least=2)
        await cluster.pass_time(3)
        assert await bound(cluster) == []
        conditions = (await cluster.get(KAI_POD_GROUPS, "g"))["status"]["schedulingConditions"]
        assert conditions[0]["reason"] == "QueueDoesNotExist"
        await add_kai_queue(cluster, "team", 2)
        await cluster.pass_time(3)
        assert len(await bound(cluster)) == 2
        assert not (await cluster.get(KAI_POD_GROUPS, "g"))["status"].get("schedulingConditions")


@virtual
async def test_the_successor_knows_what_is_held(tmp_path: Path) -> None:
    async with kai_cluster(tmp_path) as cluster:
        first = start_kai(cluster)
        await add_node(cluster, "n1", gpus=8)
        await add_kai_queue(cluster, "team", 2, limit=3)
        for index in range(3):
            await add_work(cluster, f"w{index}", "team")
        await cluster.until(lambda: _count(cluster, "", 3))
        await first.kill()
        start_kai(cluster)
        await add_work(cluster, "more", "team")
        await cluster.pass_time(5)
        assert len(await bound(cluster)) == 3
        await cluster.delete(PODS, "w0", Deletion(grace_s=0))
        await cluster.pass_time(3)
        assert "more" in await bound(cluster)


@virtual
async def test_pods_that_come_before_their_group_wait_for_it(tmp_path: Path) -> None:
    async with kai_cluster(tmp_path) as cluster:
        start_kai(cluster)
        await add_node(cluster, "n1", gpus=4)
        await add_kai_queue(cluster, "team", 1, limit=1)
        for name, labels in (("named", {QUEUE_LABEL: "team"}), ("unnamed", {})):
            body = pod(name, gpus=1, labels=labels, annotations={GROUP: name})
            await cluster.create(PODS, body)
        await cluster.pass_time(3)
        assert await bound(cluster) == []
        for name in ("named", "unnamed"):
            await cluster.create(
                KAI_POD_GROUPS, {"metadata": {"name": name}, "spec": {"queue": "team", "minMember": 1}}
            )
            await cluster.pass_time(3)
        # The second belongs to the queue as well, though its pod does not say so.
        assert await bound(cluster) == ["named"]


@virtual
async def test_a_gang_that_yields_comes_back_whole(tmp_path: Path) -> None:
    async with kai_cluster(tmp_path) as cluster:
        start_kai(cluster)
        await add_node(cluster, "n1", gpus=4)
        await add_kai_queue(cluster, "a", 2)
        await add_kai_queue(cluster, "b", 2)
        await add_gang(cluster, "gang", "a", count=4, least=4)
        await cluster.until(lambda: _count(cluster, "gang", 4))
        await add_gang(cluster, "mine", "b", count=2, least=2)
        await cluster.pass_time(3)
        assert await terminating(cluster) == [f"gang-{index}" for index in range(4)]
        for index in range(2):
            body = pod(f"gang-new{index}", gpus=1, labels={QUEUE_LABEL: "a"}, annotations={GROUP: "gang"})
            await cluster.create(PODS, body)
        for index in range(4):
            await cluster.delete(PODS, f"gang-{index}", Deletion(grace_s=0))
        await cluster.pass_time(3)
        assert await bound(cluster) == ["mine-0", "mine-1"]


@virtual
@pytest.mark.parametrize(
    ("said", "whose", "spared_s"),
    [
        ({"reclaimMinRuntime": "2m"}, "b", 120),
        ({"preemptMinRuntime": "2m"}, "b", 0),
        ({"preemptMinRuntime": "2m"}, "a", 120),
        ({"reclaimMinRuntime": "2m"}, "a", 0),
    ],
    ids=lambda one: str(one),
)
async def test_work_that_has_just_begun_is_spared_as_long_as_its_queue_says(
    tmp_path: Path, said: dict[str, Any], whose: str, spared_s: int
) -> None:
    async with kai_cluster(tmp_path) as cluster:
        start_kai(cluster)
        await add_node(cluster, "n1", gpus=2)
        await add_kai_queue(cluster, "top", 1, **said)
        await add_kai_queue(cluster, "a", 1, parent="top")
        await add_kai_queue(cluster, "b", 1)
        for index in range(2):
            await add_work(cluster, f"a{index}", "a", priorityClassName="train")
        await cluster.until(lambda: _count(cluster, "a", 2))
        for index in range(2):
            started = {"phase": "Running", "startTime": cluster.clock.text()}
            await cluster.patch(PODS, f"a{index}", {"status": started}, "status")
        await add_work(cluster, "wants", whose, priorityClassName="inference")
        if spared_s:
            await cluster.pass_time(spared_s - 20)
            assert await terminating(cluster) == []
            await cluster.pass_time(25)
        else:
            await cluster.pass_time(10)
        assert len(await terminating(cluster)) == 1


@virtual
async def test_a_gang_by_its_jobs_own_word_goes_through_a_queue_whole(tmp_path: Path) -> None:
    async with kai_cluster(tmp_path) as cluster:
        start_kai(cluster)
        await add_node(cluster, "n1", gpus=4)
        await add_kai_queue(cluster, "team", 4, limit=2)
        made = await add_job(cluster, "train", annotations={"shoal.dev/gang": "true"})
        for index in range(3):
            await add_owned(cluster, made, f"train-{index}", QUEUED, schedulerName="shoal")
        await cluster.pass_time(5)
        assert await bound(cluster) == []
        limits = {"gpu": {"limit": 3}}
        await cluster.patch(KAI_QUEUES, "team", {"spec": {"resources": limits}})
        await cluster.pass_time(5)
        assert len(await bound(cluster)) == 3
