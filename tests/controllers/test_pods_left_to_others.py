"""Pods of Volcano's and KAI's schedulers: ours where neither is, theirs where they are, and what happens in between."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from build.kai_clusters import add_kai_itself, add_kai_queue, kai_cluster
from build.kai_owners import QUEUED, kai_pod
from build.live_schedulers import LiveScheduler, add_node, is_bound, places, pod
from build.small_clusters import small_cluster
from build.virtual_time import virtual
from shoal.api.run_configuration import RunConfiguration
from shoal.client.kind import PODS
from shoal.client.port import Deletion
from shoal.client.presence import KUEUE, Presence
from shoal.controllers.scheduling_loop.disciplines import Disciplines
from shoal.controllers.scheduling_loop.foreign_scheduler import ForeignSchedulerGuard
from shoal.engine.profile import DEFAULT_POLICY, profile_named
from shoal.store.watched.cluster import WatchSettings
from shoal.wiring.disciplines import add_disciplines
from shoal.wiring.run_choice import RunChoice


@virtual
async def test_pods_of_another_projects_scheduler_are_placed_while_it_is_not_here(tmp_path: Path) -> None:
    is_there = False

    def prepare(live: LiveScheduler) -> None:
        disciplines = Disciplines(live.loop.intake, live.loop.clock)
        disciplines.add(lambda onward: ForeignSchedulerGuard(live.loop, "volcano", lambda: is_there, onward))
        live.loop.discipline = disciplines

    async with small_cluster(tmp_path) as cluster:
        live = LiveScheduler(cluster, watch=WatchSettings(frozenset({"shoal", "volcano"})))
        prepare(live)
        live.start()
        await add_node(cluster, "n1", gpus=2)
        await cluster.create(PODS, pod("before", gpus=1, schedulerName="volcano"))
        await cluster.until(lambda: is_bound(cluster, "before"))
        # It waits in the facts when the other one comes.
        await cluster.create(PODS, pod("large", gpus=2, schedulerName="volcano"))
        await cluster.pass_time(5)
        is_there = True
        live.loop.wake()
        await cluster.create(PODS, pod("theirs", gpus=1, schedulerName="volcano"))
        await cluster.create(PODS, pod("ours", cpu="1"))
        await cluster.until(lambda: is_bound(cluster, "ours"))
        await cluster.delete(PODS, "before", Deletion(grace_s=0))
        await cluster.pass_time(60)
        assert await places(cluster) == {"large": "", "theirs": "", "ours": "n1"}
        # Pods that go meanwhile are not taken up later.
        await cluster.delete(PODS, "theirs")
        is_there = False
        live.loop.wake()
        await cluster.until(lambda: is_bound(cluster, "large"))
        assert not live.loop.cluster.pending


@virtual
async def test_work_that_waits_for_quota_is_left_when_its_own_scheduler_comes(tmp_path: Path) -> None:
    async with kai_cluster(tmp_path) as cluster:
        live = LiveScheduler(cluster, watch=WatchSettings(frozenset({"shoal", "kai-scheduler"})))
        choice = RunChoice(RunConfiguration(), partial(profile_named, DEFAULT_POLICY), (), ("kai",))
        away = Presence(live.context, KUEUE)
        add_disciplines(live.loop, lambda _: live.context, live.served, choice, away, None)
        live.start()
        await add_node(cluster, "n1", gpus=4)
        await add_kai_queue(cluster, "team", 1, limit=1)
        for name in ("first", "second"):
            await cluster.create(PODS, kai_pod(name, QUEUED))
            await cluster.pass_time(5)
        assert await places(cluster) == {"first": "n1", "second": ""}
        await add_kai_itself(cluster)
        await cluster.pass_time(30)
        await cluster.delete(PODS, "first", Deletion(grace_s=0))
        await cluster.pass_time(30)
        assert await places(cluster) == {"second": ""}
        assert not live.loop.cluster.pending


def test_manifests_of_volcano_and_kai_are_served_by_name_where_their_parts_run() -> None:
    def served(*controllers: str, names: tuple[str, ...] = ("shoal",)) -> tuple[str, ...]:
        own = RunConfiguration(scheduler_names=names)
        return RunChoice(own, partial(profile_named, DEFAULT_POLICY), (), controllers).scheduler_names

    assert served("scheduler") == ("shoal",)
    assert served("scheduler", "volcano", "kai") == ("shoal", "volcano", "kai-scheduler")
    assert served("volcano", names=("volcano", "batch")) == ("volcano", "batch")
