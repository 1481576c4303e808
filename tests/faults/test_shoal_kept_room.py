"""The room of admitted work, against everybody who would have it while a pod of that work is on its way: what storms
found (9005 and those after it), each told as short as it can be."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from build.live_schedulers import add_node, is_bound, places, pod
from build.queue_admission import (
    POD_SET_LABEL,
    WORKLOAD_ANNOTATION,
    RunningAdmission,
    add_flavor,
    add_queue,
    queued_cluster,
    start_admission,
    start_pods,
    submit,
    until_so,
)
from build.small_clusters import SmallCluster
from build.virtual_time import virtual
from shoal.client.ecosystem_kinds import WORKLOADS
from shoal.client.item import Obj
from shoal.client.kind import NODES, PODS, PRIORITY_CLASSES
from shoal.client.port import Deletion
from shoal.engine.events import PodRejected
from shoal.engine.pods import PodState

_AT_ONCE = Deletion(grace_s=0)
_GROUP = "kueue.x-k8s.io/pod-group-name"


@asynccontextmanager
async def _admitted(folder: Path, nodes: int = 1, **work: Any) -> AsyncIterator[tuple[SmallCluster, RunningAdmission]]:
    """`work`, two pods of two cores each, is admitted on nodes of four."""
    async with queued_cluster(folder) as cluster:
        await cluster.create(PRIORITY_CLASSES, {"metadata": {"name": "high"}, "value": 1000})
        process = start_admission(cluster)
        for number in range(nodes):
            await add_node(cluster, f"n{number}", cpu="4")
        await add_flavor(cluster)
        await add_queue(cluster)
        await submit(cluster, "work", cpu="2", count=2, **work)
        await until_so(cluster, "work")
        yield cluster, process


def _thief(name: str = "thief") -> Obj:
    """Comes before everybody, and wants what `work` has."""
    return pod(name, cpu="2", priorityClassName="high")


def _member(name: str) -> Obj:
    """Of `work` as a group: the API server adds tolerations that its template did not have."""
    one = pod(name, cpu="2", labels={POD_SET_LABEL: "main", _GROUP: "work"})
    one["metadata"]["annotations"] = {WORKLOAD_ANNOTATION: "work", "kueue.x-k8s.io/pod-group-total-count": "2"}
    return one


async def _runs(cluster: SmallCluster) -> None:
    await start_pods(cluster, "work", 2, cpu="2")
    await cluster.until(lambda: is_bound(cluster, "work-0", "work-1"))


@virtual
async def test_a_gang_takes_its_places_though_others_come_before_it_in_line(tmp_path: Path) -> None:
    """Its pods never asked for exactly what their template did, and were put in line behind all of higher priority."""
    async with _admitted(tmp_path) as (cluster, _):
        await cluster.create(PODS, _thief())
        await cluster.pass_time(5)
        for name in ("work-0", "work-1"):
            await cluster.create(PODS, _member(name))
        await cluster.until(lambda: is_bound(cluster, "work-0", "work-1"))
        assert not await is_bound(cluster, "thief")


@virtual
async def test_the_room_of_a_lost_pod_is_its_successors(tmp_path: Path) -> None:
    async with _admitted(tmp_path) as (cluster, _):
        await _runs(cluster)
        await cluster.create(PODS, _thief())
        await cluster.delete(PODS, "work-0", _AT_ONCE)
        await cluster.pass_time(20)
        assert not await is_bound(cluster, "thief")
        await start_pods(cluster, "work", 1, first=2, cpu="2")
        await cluster.until(lambda: is_bound(cluster, "work-2"), 5)


@virtual
async def test_who_succeeds_a_pod_that_is_still_ending_gets_its_room(tmp_path: Path) -> None:
    async with _admitted(tmp_path) as (cluster, _):
        await _runs(cluster)
        await cluster.create(PODS, _thief())
        await cluster.delete(PODS, "work-0", Deletion(grace_s=30))
        await start_pods(cluster, "work", 1, first=2, cpu="2")
        await cluster.pass_time(10)
        await cluster.delete(PODS, "work-0", _AT_ONCE)
        await cluster.until(lambda: is_bound(cluster, "work-2"), 5)
        assert not await is_bound(cluster, "thief")


@virtual
async def test_a_successor_of_this_process_keeps_the_room_of_a_lost_pod_too(tmp_path: Path) -> None:
    async with _admitted(tmp_path) as (cluster, process):
        await _runs(cluster)
        await cluster.pass_time(1000)
        await cluster.create(PODS, _thief())
        await process.kill()
        await cluster.delete(PODS, "work-0", _AT_ONCE)
        await _say_pods_are_missing(cluster)
        start_admission(cluster)
        await cluster.pass_time(100)
        assert not await is_bound(cluster, "thief")
        await start_pods(cluster, "work", 1, first=2, cpu="2")
        await cluster.until(lambda: is_bound(cluster, "work-2"), 5)


async def _say_pods_are_missing(cluster: SmallCluster) -> None:
    """As whoever looks after its job does."""
    status = (await cluster.get(WORKLOADS, "work"))["status"]
    said = {"type": "PodsReady", "status": "False", "reason": "WaitForRecovery", "message": "m"}
    conditions = [*status["conditions"], {**said, "lastTransitionTime": cluster.clock.text()}]
    await cluster.patch(WORKLOADS, "work", {"status": {"conditions": conditions}}, "status")


@virtual
async def test_room_that_no_successor_takes_is_everybodys_after_a_while(tmp_path: Path) -> None:
    async with _admitted(tmp_path) as (cluster, _):
        await _runs(cluster)
        await cluster.pass_time(1000)
        await cluster.create(PODS, _thief())
        await cluster.delete(PODS, "work-0", _AT_ONCE)
        await cluster.pass_time(290)
        assert not await is_bound(cluster, "thief")
        await cluster.until(lambda: is_bound(cluster, "thief"), 20)


@virtual
async def test_room_of_a_pod_that_did_its_part_is_kept_for_a_moment_only(tmp_path: Path) -> None:
    async with _admitted(tmp_path) as (cluster, _):
        await _runs(cluster)
        await cluster.pass_time(1000)
        await cluster.create(PODS, _thief())
        await cluster.patch(PODS, "work-0", {"status": {"phase": "Succeeded"}}, "status")
        await cluster.pass_time(5)
        assert not await is_bound(cluster, "thief")
        await cluster.until(lambda: is_bound(cluster, "thief"), 15)


@virtual
async def test_what_the_workload_says_it_needs_no_more_is_not_kept(tmp_path: Path) -> None:
    async with _admitted(tmp_path) as (cluster, _):
        await _runs(cluster)
        await cluster.create(PODS, _thief())
        await cluster.delete(PODS, "work-0", _AT_ONCE)
        await cluster.pass_time(2)
        freed = {"status": {"reclaimablePods": [{"name": "main", "count": 1}]}}
        await cluster.patch(WORKLOADS, "work", freed, "status")
        await cluster.until(lambda: is_bound(cluster, "thief"), 5)


@virtual
async def test_places_on_a_node_that_takes_nobody_any_more_move(tmp_path: Path) -> None:
    async with _admitted(tmp_path, nodes=2) as (cluster, process):
        (kept,) = {
            process.loop.loop.cluster.names[_row(process, placeholder)]
            for placeholder in process.admission.placeholders.keys("default/work")
        }
        await cluster.patch(NODES, kept, {"spec": {"unschedulable": True}})
        await cluster.create(PODS, pod("late", cpu="4"))
        await _runs(cluster)
        assert kept not in (await places(cluster)).values()


def _row(process: RunningAdmission, placeholder: str) -> int:
    holding = process.admission.placeholders.allocation(placeholder)
    assert holding is not None
    return holding.row


@virtual
async def test_the_next_room_is_that_of_lost_pods_whose_node_takes_nobody_any_more(tmp_path: Path) -> None:
    """Once its pods were created again they waited behind all of higher priority."""
    async with _admitted(tmp_path) as (cluster, _):
        await _runs(cluster)
        await cluster.patch(NODES, "n0", {"spec": {"unschedulable": True}})
        for name in ("work-0", "work-1"):
            await cluster.delete(PODS, name, _AT_ONCE)
        await start_pods(cluster, "work", 2, first=2, cpu="2")
        await cluster.pass_time(20)
        await cluster.create(PODS, _thief())
        await cluster.patch(NODES, "n0", {"spec": {"unschedulable": None}})
        await cluster.until(lambda: is_bound(cluster, "work-2", "work-3"), 5)
        assert not await is_bound(cluster, "thief")


@virtual
async def test_a_pod_that_could_not_be_bound_comes_back_to_its_place_once(tmp_path: Path) -> None:
    async with _admitted(tmp_path) as (cluster, process):
        await _runs(cluster)
        await cluster.create(PODS, _thief())
        await cluster.pass_time(1)
        live = process.loop.loop
        for is_kept in (True, False):
            live.cluster.pods["default/work-0"].state = PodState.ASSUMED
            live.discipline.hear(PodRejected("default/work-0"))  # type: ignore[union-attr]
            live.intake.apply(PodRejected("default/work-0"))
            live.round()
            assert ("default/work-0" in live.cluster.pods) is is_kept


@virtual
async def test_who_waits_for_the_others_of_its_gang_costs_no_rounds(tmp_path: Path) -> None:
    """A round came every ten milliseconds."""
    async with _admitted(tmp_path) as (cluster, process):
        await cluster.create(PODS, _member("work-0"))
        await cluster.pass_time(5)
        before = process.loop.loop.rounds
        await cluster.pass_time(20)
        assert process.loop.loop.rounds - before < 5


@virtual
async def test_nobody_is_told_to_yield_who_does_not(tmp_path: Path) -> None:
    """Pods of queued work were chosen as victims in every round, and others were promised their room."""
    async with _admitted(tmp_path) as (cluster, process):
        await _runs(cluster)
        await cluster.create(PODS, _thief())
        await cluster.pass_time(5)
        before = process.loop.loop.rounds
        await cluster.pass_time(60)
        assert process.loop.loop.rounds - before < 5
        assert "nominatedNodeName" not in (await cluster.get(PODS, "thief"))["status"]
