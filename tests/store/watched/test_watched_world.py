"""The watched world beside a server: kinds that may be absent, and what is heard over real watches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from build.foreign_kinds import established, foreign_cluster
from build.manifests import node, pod, volcano_group
from build.small_clusters import SmallCluster, small_cluster
from build.virtual_time import virtual
from shoal.client.ecosystem_kinds import VOLCANO_POD_GROUPS
from shoal.client.item import Obj
from shoal.client.kind import NODES, PODS
from shoal.client.served import Served
from shoal.engine.events import Event, GroupSeen, NodeSeen, PodArrived, PodBound
from shoal.store.watched.cluster import WatchedCluster, WatchSettings
from shoal.wiring.foreign_kinds import provide_foreign


def watched(cluster: SmallCluster, **settings: Any) -> tuple[WatchedCluster, Served]:
    context = cluster.context("shoal")
    served = Served(context)
    return WatchedCluster(context, served, WatchSettings(**settings), lambda: None), served


def waiting(name: str, **more: Any) -> Obj:
    made = pod(name, schedulerName="shoal", **more)
    made["spec"]["containers"][0]["image"] = "registry.example/train:1"
    return made


def of(kind: type, events: list[Event]) -> list[Any]:
    return [event for event in events if isinstance(event, kind)]


@virtual
async def test_a_plain_cluster_is_known_without_the_kinds_of_others(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await cluster.create(NODES, node("n1"))
        await cluster.create(PODS, waiting("a"))
        world, _ = watched(cluster)
        await world.synced()
        events = world.drain()
        assert [event.node.name for event in of(NodeSeen, events)] == ["n1"]
        assert [event.key for event in of(PodArrived, events)] == ["default/a"]


@virtual
async def test_a_binding_is_heard_and_the_sight_says_where_and_when(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await cluster.create(NODES, node("n1"))
        await cluster.create(PODS, waiting("a"))
        world, _ = watched(cluster)
        await world.synced()
        world.drain()
        binding = {"metadata": {"name": "a"}, "target": {"kind": "Node", "name": "n1"}}
        await cluster.api.post(PODS, "default", "a", "binding", binding)
        await cluster.pass_time(1)
        assert [event.node for event in of(PodBound, world.drain())] == ["n1"]
        view, item = world.view("default/a"), await cluster.get(PODS, "a")
        assert view is not None
        assert (view.node, view.uid) == ("n1", item["metadata"]["uid"])
        assert str(view.version) == item["metadata"]["resourceVersion"]
        assert view.bound_s >= view.created_s > 0


@virtual
async def test_kinds_of_others_are_read_where_they_are(tmp_path: Path) -> None:
    async with foreign_cluster(tmp_path) as cluster:
        await cluster.create(VOLCANO_POD_GROUPS, volcano_group("train", 2))
        words = {"scheduling.k8s.io/group-name": "train"}
        await cluster.create(PODS, waiting("a", annotations=words))
        world, _ = watched(cluster)
        await world.synced()
        assert [event.group.minimum for event in of(GroupSeen, world.drain())] == [2]


@virtual
async def test_kinds_that_are_installed_later_are_read_then(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        world, served = watched(cluster)
        await world.synced()
        world.drain()
        await provide_foreign(cluster.api)
        await established(cluster)
        await cluster.create(VOLCANO_POD_GROUPS, volcano_group("train", 2))
        await served.look()
        await cluster.pass_time(1)
        assert [event.group.minimum for event in of(GroupSeen, world.drain())] == [2]
