"""A reader that breaks, once or on one object only: nothing is lost of the others, and what broke is read again."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

import pytest

from build.foreign_kinds import foreign_cluster
from build.manifests import node, pod, volcano_group
from build.odd_faults import OddError, odd
from build.small_clusters import SmallCluster, small_cluster
from build.virtual_time import in_virtual_time, virtual
from shoal.client.ecosystem_kinds import VOLCANO_POD_GROUPS
from shoal.client.item import Obj
from shoal.client.kind import DISRUPTION_BUDGETS, NODES, PODS
from shoal.client.port import Deletion
from shoal.client.served import Served
from shoal.engine.events import Event, GroupSeen, NodeSeen, PodArrived, PodBound, PodGone
from shoal.store.watched.cluster import WatchedCluster, WatchSettings

E = TypeVar("E")
TRAIN = {"scheduling.k8s.io/group-name": "train"}


def waiting(name: str, **more: Any) -> Obj:
    made = pod(name, schedulerName="shoal", **more)
    made["spec"]["containers"][0]["image"] = "registry.example/train:1"
    return made


class Listener:
    """A world, and all that it has said; it is drained whenever it wakes."""

    def __init__(self, cluster: SmallCluster) -> None:
        context = cluster.context("shoal")
        self.heard: list[Event] = []
        self.broke = 0
        self.wakes = 0
        self.world = WatchedCluster(context, Served(context), WatchSettings(), self._wake)

    def _wake(self) -> None:
        self.wakes += 1

    def drain(self) -> None:
        self.wakes = 0
        try:
            self.heard += self.world.drain()
        except OddError:
            self.broke += 1

    def of(self, what: type[E]) -> list[E]:
        return [event for event in self.heard if isinstance(event, what)]

    @property
    def arrived(self) -> list[str]:
        return sorted(event.key for event in self.of(PodArrived))


@pytest.mark.parametrize(
    ("part", "method"),
    [
        ("devices", "stirred"),
        ("_surroundings", "new_priorities"),
        ("_nodes", "renew_tree"),
        ("_surroundings", "renew_topologies"),
        ("_nodes", "drain"),
        ("_surroundings", "daemon_sets"),
        ("devices", "drain"),
        ("gangs", "drain"),
        ("_budgets", "drain"),
        ("", "_pod_news"),
    ],
)
def test_whichever_part_breaks_the_others_news_are_said_next_time(part: str, method: str, tmp_path: Path) -> None:
    async def story() -> None:
        async with small_cluster(tmp_path) as cluster:
            await cluster.create(NODES, node("n1"))
            await cluster.create(PODS, waiting("old"))
            listener = Listener(cluster)
            await listener.world.synced()
            listener.drain()
            odd(getattr(listener.world, part) if part else listener.world, method)
            await cluster.delete(PODS, "old", Deletion(grace_s=0))
            await cluster.create(PODS, waiting("new"))
            await cluster.pass_time(1)
            listener.drain()
            assert listener.broke == 1
            listener.drain()
            assert [event.key for event in listener.of(PodGone)] == ["default/old"]
            assert listener.arrived == ["default/new", "default/old"]

    in_virtual_time(story())


async def _settled(cluster: SmallCluster, listener: Listener) -> None:
    """All that is to be said is said, and what broke has been read again."""
    for _ in range(3):
        await cluster.pass_time(1.5)
        if listener.wakes:
            listener.drain()


@virtual
async def test_a_pod_that_cannot_be_read_once_is_read_before_anything_is_decided(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await cluster.create(NODES, node("n1"))
        listener = Listener(cluster)
        await listener.world.synced()
        listener.drain()
        fault = odd(listener.world._asks, "who", at=(0, 1))
        await cluster.create(PODS, waiting("a"))
        binding = {"metadata": {"name": "a"}, "target": {"kind": "Node", "name": "n1"}}
        await cluster.api.post(PODS, "default", "a", "binding", binding)
        await cluster.pass_time(1)
        listener.drain()
        assert fault.calls > 2
        assert [event.key for event in listener.of(PodBound)] == ["default/a"]


@virtual
async def test_a_gang_that_cannot_be_read_keeps_no_other_pod_and_none_of_its_own_comes_alone(tmp_path: Path) -> None:
    async with foreign_cluster(tmp_path) as cluster:
        listener = Listener(cluster)
        await listener.world.synced()
        listener.drain()
        # White box: nothing that people can write makes this reader break.
        fault = odd(listener.world.gangs._reader, "read", at=(0, 1))
        await cluster.create(VOLCANO_POD_GROUPS, volcano_group("train", 2))
        for name in ("a", "b"):
            await cluster.create(PODS, waiting(name, annotations=TRAIN))
        await cluster.create(PODS, waiting("alone"))
        await cluster.pass_time(0.5)
        listener.drain()
        assert fault.calls == 1
        assert listener.arrived == ["default/alone"]
        await _settled(cluster, listener)
        assert listener.arrived == ["default/a", "default/alone", "default/b"]
        assert [event.group.minimum for event in listener.of(GroupSeen)] == [2]
        assert {event.who.group for event in listener.of(PodArrived)} == {"", "default/train"}
        assert not listener.wakes


@pytest.mark.parametrize(("part", "method"), [("_nodes", "_seen"), ("gangs", "who"), ("_budgets", "_facts")])
def test_what_broke_on_one_object_is_said_a_moment_later(part: str, method: str, tmp_path: Path) -> None:
    async def story() -> None:
        async with small_cluster(tmp_path) as cluster:
            listener = Listener(cluster)
            await listener.world.synced()
            listener.drain()
            fault = odd(getattr(listener.world, part), method)
            budget = {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "a"}}}
            await cluster.create(DISRUPTION_BUDGETS, {"metadata": {"name": "few"}, "spec": budget})
            for name in ("n1", "n2"):
                await cluster.create(NODES, node(name))
            for name in ("a", "b"):
                await cluster.create(PODS, waiting(name, labels={"app": "a"}))
            await cluster.pass_time(0.5)
            listener.drain()
            assert fault.calls
            await _settled(cluster, listener)
            assert listener.arrived == ["default/a", "default/b"]
            assert sorted(event.node.name for event in listener.of(NodeSeen)) == ["n1", "n2"]
            assert not listener.broke
            assert not listener.wakes

    in_virtual_time(story())
