"""Gangs of KAI of which pods end: successors come together, and what is left too long below the minimum is ended."""

from __future__ import annotations

from pathlib import Path

from build.kai_clusters import (
    GROUP,
    QUEUE_LABEL,
    KaiCluster,
    add_gang,
    add_kai_queue,
    bound,
    kai_cluster,
    start_kai,
    terminating,
)
from build.live_schedulers import add_node, condition, pod
from build.small_clusters import SmallCluster
from build.virtual_time import virtual
from shoal.api.groups.kai import STALE_ANNOTATION
from shoal.client.ecosystem_kinds import KAI_POD_GROUPS
from shoal.client.kind import PODS
from shoal.client.port import Deletion


async def _start(cluster: SmallCluster, count: int = 4) -> KaiCluster:
    first = start_kai(cluster)
    await add_node(cluster, "n1", gpus=4)
    await add_kai_queue(cluster, "a", 4)
    await add_gang(cluster, "gang", "a", count=count, least=4)
    await cluster.pass_time(5)
    assert len(await bound(cluster, "gang")) == 4
    return first


async def _add(cluster: SmallCluster, *names: str) -> None:
    for name in names:
        body = pod(name, gpus=1, labels={QUEUE_LABEL: "a"}, annotations={GROUP: "gang"})
        await cluster.create(PODS, body)


@virtual
async def test_successors_of_several_pods_start_together_while_the_others_run(tmp_path: Path) -> None:
    async with kai_cluster(tmp_path) as cluster:
        await _start(cluster)
        for name in ("gang-0", "gang-1"):
            await cluster.delete(PODS, name, Deletion(grace_s=0))
        await _add(cluster, "gang-new0")
        await cluster.pass_time(5)
        assert "gang-new0" not in await bound(cluster)
        await _add(cluster, "gang-new1")
        await cluster.pass_time(5)
        assert await bound(cluster) == ["gang-2", "gang-3", "gang-new0", "gang-new1"]
        await cluster.pass_time(90)
        assert await terminating(cluster) == []


@virtual
async def test_who_waited_beyond_the_minimum_is_needed_when_others_end(tmp_path: Path) -> None:
    async with kai_cluster(tmp_path) as cluster:
        await _start(cluster, count=6)
        started = await bound(cluster)
        for name in started[:2]:
            await cluster.delete(PODS, name, Deletion(grace_s=0))
        await cluster.pass_time(5)
        assert len(await bound(cluster)) == 4


@virtual
async def test_a_gang_that_stays_below_its_minimum_for_a_minute_is_ended(tmp_path: Path) -> None:
    async with kai_cluster(tmp_path) as cluster:
        await _start(cluster)
        await cluster.delete(PODS, "gang-0", Deletion(grace_s=0))
        await cluster.pass_time(50)
        assert await terminating(cluster) == []
        await cluster.pass_time(20)
        assert await terminating(cluster) == ["gang-1", "gang-2", "gang-3"]
        why = await condition(cluster, "gang-1", "DisruptionTarget")
        assert why["message"].endswith("too few pods of its group default/gang are left")
        assert any(one["reason"] == "StaleJob" for one in await cluster.events("gang-1"))
        # It comes back whole.
        await _add(cluster, *(f"gang-new{index}" for index in range(4)))
        for name in ("gang-1", "gang-2", "gang-3"):
            await cluster.delete(PODS, name, Deletion(grace_s=0))
        await cluster.pass_time(5)
        assert await bound(cluster) == [f"gang-new{index}" for index in range(4)]


@virtual
async def test_the_minute_of_a_gang_below_its_minimum_goes_on_after_a_restart(tmp_path: Path) -> None:
    async with kai_cluster(tmp_path) as cluster:
        first = await _start(cluster)
        await cluster.delete(PODS, "gang-0", Deletion(grace_s=0))
        await cluster.pass_time(40)
        since = (await cluster.get(KAI_POD_GROUPS, "gang"))["metadata"]["annotations"][STALE_ANNOTATION]
        assert since.endswith("Z")
        await first.kill()
        start_kai(cluster)
        await cluster.pass_time(15)
        assert await terminating(cluster) == []
        await cluster.pass_time(10)
        assert len(await terminating(cluster)) == 3


@virtual
async def test_a_gang_that_was_below_its_minimum_once_begins_its_minute_anew(tmp_path: Path) -> None:
    async with kai_cluster(tmp_path) as cluster:
        await _start(cluster)
        for index in range(2):
            await cluster.delete(PODS, f"gang-{index}", Deletion(grace_s=0))
            await cluster.pass_time(50)
            assert await terminating(cluster) == []
            await _add(cluster, f"gang-new{index}")
            await cluster.pass_time(5)
        assert len(await bound(cluster, "gang")) == 4
        assert STALE_ANNOTATION not in (
            (await cluster.get(KAI_POD_GROUPS, "gang"))["metadata"].get("annotations") or {}
        )


@virtual
async def test_a_gang_of_which_a_pod_has_succeeded_is_left_alone(tmp_path: Path) -> None:
    async with kai_cluster(tmp_path) as cluster:
        await _start(cluster)
        await cluster.patch(PODS, "gang-0", {"status": {"phase": "Succeeded"}}, "status")
        await cluster.pass_time(90)
        assert await terminating(cluster) == []


@virtual
async def test_the_last_pods_of_a_job_do_not_wait_for_those_that_have_succeeded(tmp_path: Path) -> None:
    async with kai_cluster(tmp_path) as cluster:
        await _start(cluster)
        for index in range(4):
            await cluster.patch(PODS, f"gang-{index}", {"status": {"phase": "Succeeded"}}, "status")
        await cluster.pass_time(5)
        await _add(cluster, "gang-new0", "gang-new1")
        await cluster.pass_time(5)
        assert len(await bound(cluster, "gang-new")) == 2


@virtual
async def test_a_gang_that_yields_leaves_nothing_behind_that_is_too_little(tmp_path: Path) -> None:
    async with kai_cluster(tmp_path) as cluster:
        start_kai(cluster)
        await add_node(cluster, "n1", gpus=3)
        await add_kai_queue(cluster, "a", 1)
        await add_kai_queue(cluster, "b", 2)
        await add_gang(cluster, "gang", "a", count=3, least=2)
        await cluster.pass_time(5)
        assert len(await bound(cluster, "gang")) == 3
        # Two of them would be enough.
        await add_gang(cluster, "mine", "b", count=2, least=2)
        await cluster.pass_time(5)
        assert len(await terminating(cluster)) == 3
