"""What is told of queues and workloads as objects change: only what changed, and what is wrong with one on itself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from build.queue_admission import add_flavor, add_queue, finish, queued_cluster, submit
from build.small_clusters import SmallCluster
from build.virtual_time import virtual
from shoal.client.ecosystem_kinds import RESOURCE_FLAVORS, WORKLOADS
from shoal.client.kind import CONFIG_MAPS, NAMESPACES
from shoal.client.served import Served
from shoal.engine.queues.facts import ClusterQueueFacts, FlavorFacts, LocalQueueFacts
from shoal.store.watched.queues import WatchedQueues


@asynccontextmanager
async def watched_queues(cluster: SmallCluster) -> AsyncIterator[WatchedQueues]:
    context = cluster.context()
    watched = WatchedQueues(context, Served(context), lambda: None)
    running = asyncio.ensure_future(watched.run())
    await watched.synced()
    yield watched
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


@virtual
async def test_queues_and_workloads_are_told_once_and_then_only_when_they_change(tmp_path: Path) -> None:
    async with queued_cluster(tmp_path) as cluster:
        await add_flavor(cluster, nodeLabels={"pool": "a"})
        await add_queue(cluster)
        for name in ("a", "b"):
            await submit(cluster, name, cpu="500m", count=2)
        async with watched_queues(cluster) as watched:
            news = watched.drain()
            told = {type(fact) for fact in news.facts}
            assert {FlavorFacts, ClusterQueueFacts, LocalQueueFacts} <= told
            assert [view.key for view in news.workloads] == ["default/a", "default/b"]
            facts = news.workloads[0].facts
            assert facts is not None
            assert facts.pod_sets[0].requests == {"cpu": 500}
            assert not watched.drain()
            await cluster.patch(WORKLOADS, "b", {"spec": {"priority": 7}})
            await cluster.pass_time(1)
            news = watched.drain()
            assert [view.facts.priority for view in news.workloads if view.facts is not None] == [7]
            assert not news.facts


@virtual
async def test_what_ends_and_what_is_deleted_is_told_as_such(tmp_path: Path) -> None:
    async with queued_cluster(tmp_path) as cluster, watched_queues(cluster) as watched:
        await add_flavor(cluster)
        await submit(cluster, "a")
        await submit(cluster, "b")
        await cluster.pass_time(1)
        watched.drain()
        await finish(cluster, "a")
        await cluster.delete(WORKLOADS, "b")
        await cluster.delete(RESOURCE_FLAVORS, "default")
        await cluster.pass_time(1)
        news = watched.drain()
        assert [view.key for view in news.workloads if view.is_finished] == ["default/a"]
        assert news.gone == ["default/b"]
        assert news.dropped == [(FlavorFacts, "default")]


@virtual
async def test_the_configuration_of_the_cluster_is_followed(tmp_path: Path) -> None:
    text = "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\nfairSharing: {}\n"
    async with queued_cluster(tmp_path) as cluster:
        await submit(cluster, "a")
        async with watched_queues(cluster) as watched:
            watched.drain()
            assert not watched.settings.fair_sharing
            meta = {"name": "kueue-manager-config", "namespace": "kueue-system"}
            await cluster.create(NAMESPACES, {"metadata": {"name": "kueue-system"}})
            await cluster.create(CONFIG_MAPS, {"metadata": meta, "data": {"controller_manager_config.yaml": text}})
            await cluster.pass_time(2)
            news = watched.drain()
            assert news.settings is not None
            assert news.settings.fair_sharing
            assert [view.key for view in news.workloads] == ["default/a"]


@virtual
async def test_a_field_that_nobody_knows_is_told_and_the_rest_counts(tmp_path: Path) -> None:
    text = "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\nfairSharing: {}\nwaitForPodsReadyy: {}\n"
    async with queued_cluster(tmp_path) as cluster, watched_queues(cluster) as watched:
        watched.drain()
        meta = {"name": "kueue-manager-config", "namespace": "kueue-system"}
        await cluster.create(NAMESPACES, {"metadata": {"name": "kueue-system"}})
        await cluster.create(CONFIG_MAPS, {"metadata": meta, "data": {"controller_manager_config.yaml": text}})
        await cluster.pass_time(2)
        news = watched.drain()
        assert news.settings is not None
        assert news.settings.fair_sharing
        (trouble,) = watched.troubles.take()
        assert trouble.kind == CONFIG_MAPS
        assert trouble.message == "waitForPodsReadyy: unknown field; did you mean waitForPodsReady?; the rest counts"


@virtual
async def test_a_workload_that_cannot_be_read_is_told_and_keeps_nobody_else_from_it(tmp_path: Path) -> None:
    async with queued_cluster(tmp_path) as cluster:
        bad = {"kind": "WorkloadPriorityClass", "group": "kueue.x-k8s.io", "name": "nobody"}
        await submit(cluster, "bad", priorityClassRef=bad)
        await submit(cluster, "good")
        async with watched_queues(cluster) as watched:
            found = {view.key: view for view in watched.drain().workloads}
            assert "nobody" in found["default/bad"].fault
            assert found["default/good"].facts is not None
            (trouble,) = watched.troubles.take()
            assert trouble.key == "default/bad"
