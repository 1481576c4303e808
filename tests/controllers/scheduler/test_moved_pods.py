"""Pods that move so that others fit: the places of their successors are kept until these are there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from build.live_schedulers import LiveScheduler, add_node, is_bound, places, pod, start_scheduler
from build.small_clusters import SmallCluster, small_cluster
from build.virtual_time import virtual
from shoal.client.item import Obj
from shoal.client.kind import PODS
from shoal.client.port import Deletion
from shoal.controllers.scheduler.move_reservations import KEPT_S, MoveReservations
from shoal.engine.asks import Ask
from shoal.engine.cluster import Cluster
from shoal.engine.device_demand import WholeGpus
from shoal.engine.devices.kinds import grant_there
from shoal.engine.events import Event, NodeFacts, NodeSeen, PodArrived, PodBound, PodGone, PodStays
from shoal.engine.intake import Intake
from shoal.engine.ledger import Ledger
from shoal.engine.plan import Move, Plan
from shoal.engine.pod_identity import PodIdentity
from shoal.store.watched.pod_views import PodView

JOB = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "u", "controller": True}


def keeps(live: LiveScheduler) -> None:
    made = MoveReservations(live.loop, live.loop.intake.apply)
    live.loop.discipline = made
    live.loop.executors = (*live.loop.executors, made)


def owned(name: str, **more: Any) -> Obj:
    made = pod(name, **{"gpus": 1, **more})
    made["metadata"]["ownerReferences"] = [JOB]
    return made


async def moving(cluster: SmallCluster) -> tuple[str, str, str]:
    """One GPU is free on each of two nodes, and somebody wants two: who moves, from where, and where to."""
    for name, node in (("a", "n1"), ("b", "n2")):
        await add_node(cluster, node, gpus=2)
        await cluster.create(PODS, owned(name, nodeName=node))
        status = {"phase": "Running", "startTime": "2026-01-01T00:00:00Z"}
        await cluster.patch(PODS, name, {"status": status}, subresource="status")
    await cluster.create(PODS, pod("big", gpus=2))
    await cluster.pass_time(2)
    (moved,) = [one["metadata"]["name"] for one in await cluster.pods() if "deletionTimestamp" in one["metadata"]]
    return (moved, "n1", "n2") if moved == "a" else (moved, "n2", "n1")


async def end(cluster: SmallCluster, name: str) -> None:
    await cluster.delete(PODS, name, Deletion(grace_s=0))


@virtual
async def test_the_place_of_a_successor_is_given_to_nobody_else(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        live = start_scheduler(cluster, prepare=keeps)
        moved, source, target = await moving(cluster)
        await cluster.create(PODS, pod("thief", gpus=1))
        await cluster.pass_time(5)
        await end(cluster, moved)
        await cluster.pass_time(15)
        assert (await places(cluster))["big"] == source
        assert not await is_bound(cluster, "thief")
        await cluster.create(PODS, owned("successor"))
        await cluster.until(lambda: is_bound(cluster, "successor"), 2)
        assert (await places(cluster))["successor"] == target
        assert not await is_bound(cluster, "thief")
        left = {*live.loop.cluster.pods, *live.loop.cluster.pending.in_order()}
        assert not [key for key in left if "#" in key]


@virtual
async def test_a_successor_of_the_same_name_has_the_place_as_well(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        start_scheduler(cluster, prepare=keeps)
        moved, _, target = await moving(cluster)
        await end(cluster, moved)
        await cluster.create(PODS, pod("thief", gpus=1))
        await cluster.create(PODS, owned(moved))
        await cluster.until(lambda: is_bound(cluster, moved), 2)
        assert (await places(cluster))[moved] == target
        assert not await is_bound(cluster, "thief")


@virtual
async def test_a_place_for_which_nobody_comes_is_given_away(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        start_scheduler(cluster, prepare=keeps)
        moved, _, target = await moving(cluster)
        await end(cluster, moved)
        await cluster.create(PODS, pod("thief", gpus=1))
        await cluster.pass_time(KEPT_S - 5)
        assert not await is_bound(cluster, "thief")
        await cluster.until(lambda: is_bound(cluster, "thief"), 10)
        assert (await places(cluster))["thief"] == target


@virtual
async def test_a_successor_that_asks_for_something_else_is_not_held_up(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        live = start_scheduler(cluster, prepare=keeps)
        moved, _, target = await moving(cluster)
        await end(cluster, moved)
        await cluster.create(PODS, owned("successor", cpu="1"))
        await cluster.until(lambda: is_bound(cluster, "successor"), 2)
        assert (await places(cluster))["successor"] == target
        assert not [key for key in live.loop.cluster.pods if "#" in key]


@virtual
async def test_pods_of_others_do_not_take_a_successors_place(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        start_scheduler(cluster, prepare=keeps)
        moved, _, _ = await moving(cluster)
        await end(cluster, moved)
        other = owned("other")
        other["metadata"]["ownerReferences"] = [{**JOB, "name": "k", "uid": "v"}]
        await cluster.create(PODS, other)
        await cluster.pass_time(5)
        assert not await is_bound(cluster, "other")
        await cluster.create(PODS, owned("successor"))
        await cluster.until(lambda: is_bound(cluster, "successor"), 2)


class _Scheduler:
    """Two nodes with a GPU each, and pods of one owner."""

    def __init__(self) -> None:
        self.cluster = Cluster()
        self.intake = Intake(self.cluster)
        self.watched = self
        self.onward: list[Event] = []
        for name in ("n1", "n2"):
            self.intake.apply(NodeSeen(NodeFacts(name, {"cpu": 8000, "pods": 110}, gpus=1)))

    def wake(self) -> None:
        """There is no loop to wake."""

    def view(self, key: str) -> PodView:
        return PodView(key, "default", key, key, 1, "shoal")

    def owner(self, key: str) -> tuple[str, str, str]:
        return ("default", "Job", key[0])

    def seat(self, key: str, row: int) -> None:
        """The engine gave it the place."""
        ledger = Ledger(self.cluster)
        ledger.place(key, row, grant_there(self.cluster.devices, row, WholeGpus(1)))
        ledger.commit()


ASK = Ask(devices=WholeGpus(1))


def moved_gang() -> tuple[_Scheduler, MoveReservations]:
    """Two members of a gang that are told to move, and whose new places are free."""
    live = _Scheduler()
    kept = MoveReservations(live, live.onward.append)
    for name, node in (("g0", "n1"), ("g1", "n2")):
        live.intake.apply(PodBound(name, ASK, node, who=PodIdentity(group="default/g")))
    moves = [Move(name, "n1", "n2", None, "default/big") for name in ("g0", "g1")]
    kept.carry_out(Plan(0.0, 1, tuple(moves)))
    for row, name in enumerate(("g0", "g1")):
        kept.hear(PodGone(name))
        live.intake.apply(PodGone(name))
        live.seat(f"{name}#moved", row)
    return live, kept


def test_members_of_a_gang_take_their_places_together() -> None:
    live, kept = moved_gang()
    first, second = (PodArrived(name, ASK, who=PodIdentity(group="default/g")) for name in ("g2", "g3"))
    assert kept.hear(first)
    assert list(kept.round(1.0)) == []
    assert kept.hear(second)
    assert {place.pod for place in kept.round(2.0)} == {"g2", "g3"}
    assert set(live.cluster.pods) == {"g2", "g3"}
    assert kept.next_s() is None


def test_a_member_that_waits_in_vain_for_the_others_stands_in_line() -> None:
    live, kept = moved_gang()
    assert kept.hear(PodArrived("g2", ASK, who=PodIdentity(group="default/g")))
    kept.round(1.0)
    assert kept.next_s() == 11.0
    assert list(kept.round(11.0)) == []
    assert [event.key for event in live.onward if isinstance(event, PodArrived)] == ["g2"]


def test_whoever_stays_after_all_needs_no_other_place() -> None:
    live, kept = moved_gang()
    kept.hear(PodStays("g0"))
    assert set(live.cluster.pods) == {"g1#moved"}
    assert not kept.hear(PodArrived("other", ASK, who=PodIdentity(group="default/other")))
