"""A scheduler of one pod at a time: the engine's own decision, and the writes that tests are about.

async with decider(cluster) as first:
    await first.bind("pod")          # decides, prepares, binds
    place = await first.decided("pod")
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from build.small_clusters import SmallCluster
from shoal.api.node import Node
from shoal.api.pod import Pod
from shoal.client.context import Context
from shoal.client.informers import Informers
from shoal.client.kind import NODES, PODS
from shoal.client.port import Api
from shoal.client.recorder import Recorder
from shoal.client.served import Served
from shoal.client.write_through import WriteThroughApi
from shoal.controllers.bind_preparation.writer import Writer
from shoal.engine.cluster import Cluster
from shoal.engine.cycle import cycle
from shoal.engine.events import (
    ClaimGone,
    ClaimSeen,
    DeviceSetSeen,
    DevicesGone,
    DevicesSeen,
    Event,
    NodeSeen,
    PodArrived,
    PodBound,
)
from shoal.engine.from_api import ask_of_pod, node_facts_of
from shoal.engine.intake import Intake
from shoal.engine.placement import Placement
from shoal.engine.plan import Place
from shoal.engine.pod_mix import PodMix
from shoal.engine.profile import DEFAULT_POLICY, profile_named
from shoal.store.watched.devices import WatchedDevices
from shoal.store.watched.pod_views import PodView
from shoal.store.watched.reading import value_of
from shoal.store.watched.volumes import WatchedVolumes

Told = DevicesSeen | DevicesGone | DeviceSetSeen | ClaimSeen | ClaimGone


class Decider:
    """Facts are made anew for each decision, from all that was told: nothing but the objects is remembered."""

    def __init__(self, cluster: SmallCluster, api: Api | None = None) -> None:
        self.informers = Informers(api or cluster.api, cluster.clock, cluster.draw)
        learning = WriteThroughApi(api or cluster.api, self.informers)
        recorder = Recorder(cluster.api, cluster.clock, "test")
        self.context = Context("test", learning, self.informers, cluster.clock, cluster.draw, recorder)
        self.served = Served(self.context)
        self.devices = WatchedDevices(self.context, self.served, lambda: None)
        self.volumes = WatchedVolumes(self.context, lambda: None)
        self.writer = Writer(self.context, self.devices, self.volumes)
        self._told: list[Event] = []

    async def synced(self) -> None:
        await self.served.look()
        await self.devices.synced()
        await self.volumes.synced()

    def facts(self) -> Cluster:
        """All there is, as the engine knows it."""
        cluster = Cluster()
        intake = Intake(cluster)
        for item in self.informers.of(NODES):
            intake.apply(NodeSeen(node_facts_of(value_of(NODES, item, Node))))
        events = [self.event(value_of(PODS, item, Pod)) for item in self.informers.of(PODS)]
        self._told += self.devices.drain()
        bound = [event for event in events if isinstance(event, PodBound)]
        for event in (*self._told, *sorted(bound, key=lambda one: not one.positions)):
            intake.apply(event)
        return cluster

    def event(self, pod: Pod) -> PodArrived | PodBound | str:
        """What the engine is told of the pod; as text, why it waits for its volumes."""
        refs, asking = self.devices.refs(pod)
        if pod.spec.node_name:
            positions = self.devices.positions(pod.metadata.annotations, pod.spec.node_name)
            return PodBound(pod.metadata.key, ask_of_pod(asking, None, refs), pod.spec.node_name, positions=positions)
        rule = self.volumes.rule(pod)
        return rule if isinstance(rule, str) else PodArrived(pod.metadata.key, ask_of_pod(asking, rule, refs))

    def decided(self, name: str) -> tuple[PodView, Place] | str:
        """Where the pod is to go, or why nowhere."""
        item = self.informers.of(PODS).get("default", name)
        assert item is not None
        arrived = self.event(value_of(PODS, item, Pod))
        if isinstance(arrived, str):
            return arrived
        assert isinstance(arrived, PodArrived)
        cluster = self.facts()
        Intake(cluster).apply(arrived)
        placement = Placement(cluster, profile_named(DEFAULT_POLICY, cluster, PodMix()))
        placed = cycle(cluster, placement, now_s=0.0, seed=0).placed
        if not placed:
            return "fits nowhere"
        sight = PodView(arrived.key, "default", name, item.uid, item.version, "shoal", arrived)
        return sight, placed[0]

    async def bind(self, name: str) -> Place:
        decided = self.decided(name)
        assert not isinstance(decided, str), decided
        sight, place = decided
        annotations = await self.writer.prepare(sight, place)
        meta = {"name": name, "namespace": "default", "uid": sight.uid, "annotations": annotations}
        target = {"kind": "Node", "name": place.node}
        body = {"apiVersion": "v1", "kind": "Binding", "metadata": meta, "target": target}
        await self.context.api.post(PODS, "default", name, "binding", body)
        return place


@asynccontextmanager
async def decider(cluster: SmallCluster, api: Api | None = None) -> AsyncIterator[Decider]:
    made = Decider(cluster, api)
    following = asyncio.ensure_future(made.informers.run())
    try:
        await made.synced()
        yield made
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
