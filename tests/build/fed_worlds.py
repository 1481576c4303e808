"""A watched world without a server: objects are put into its caches as a watch would bring them.

    world = FedWorld()
    world.put(node("n1", cpu=4))
    world.put(pod("a"))
    assert [event.key for event in world.heard(PodArrived)] == ["default/a"]

What it was told so far adds up in `facts`, to be compared with those of manifests.
"""

from __future__ import annotations

import asyncio
import copy
import json
import random
from collections.abc import Iterable
from typing import Any, TypeVar

import msgspec
from msgspec import structs

from shoal.api.decode import read
from shoal.client import ecosystem_kinds
from shoal.client import kind as kinds
from shoal.client.clock import Clock, WallClock
from shoal.client.context import Context
from shoal.client.informers import Informers
from shoal.client.item import Item, Obj
from shoal.client.kind import Kind
from shoal.client.port import Api, ServedKind
from shoal.client.recorder import Recorder
from shoal.client.served import Served
from shoal.engine.events import (
    BudgetGone,
    BudgetSeen,
    DaemonSetGone,
    DaemonSetSeen,
    Event,
    GroupGone,
    GroupSeen,
    NamespaceSeen,
    NodeGone,
    NodeSeen,
    OthersSeen,
    PodArrived,
    PodBound,
    PodGone,
    TopologyGone,
    TopologySeen,
)
from shoal.store.manifest_cluster import manifest_cluster_of
from shoal.store.watched.cluster import WatchedCluster, WatchSettings

E = TypeVar("E")
OURS = "default-scheduler"
"""Manifests that name no scheduler name this one."""
Facts = dict[tuple[str, ...], Any]
_KINDS = {
    (kind.api_version, kind.name): kind
    for module in (kinds, ecosystem_kinds)
    for kind in vars(module).values()
    if isinstance(kind, Kind)
}
_KINDS["kueue.x-k8s.io/v1beta1", "Topology"] = ecosystem_kinds.KUEUE_TOPOLOGIES


class _NoApi:
    """Serves every kind of the ecosystem, and nothing of it."""

    async def served(self) -> tuple[ServedKind, ...]:
        return tuple(ServedKind(kind, frozenset(), (kind.version,)) for kind in _KINDS.values())


class FedWorld:
    def __init__(self, settings: WatchSettings | None = None) -> None:
        api: Api = _NoApi()  # type: ignore[assignment]  # nothing else is asked of it
        clock: Clock = WallClock()
        self._informers = Informers(api, clock, random.Random(1))
        context = Context("test", api, self._informers, clock, random.Random(1), Recorder(api, clock, "test"))
        served = Served(context)
        self.wakes = 0
        watched = settings or WatchSettings(schedulers=frozenset({OURS}))
        self.world = WatchedCluster(context, served, watched, self._wake)
        asyncio.run(served.look())
        self.objects: dict[tuple[str, str, str], Obj] = {}
        self._version = 0
        self.facts: Facts = {}

    def _wake(self) -> None:
        self.wakes += 1

    # -- the server's side ------------------------------------------------------------------------------------------

    def put(self, *objects: Obj) -> None:
        """They come, or are changed into these."""
        for obj in objects:
            self._put(copy.deepcopy(obj))

    def _put(self, obj: Obj) -> None:
        kind, meta = _KINDS[obj["apiVersion"], obj["kind"]], obj["metadata"]
        self._version += 1
        if kind.is_namespaced:
            meta.setdefault("namespace", "default")
        at = kind.name + kind.group, meta.get("namespace", ""), meta["name"]
        known = self.objects.get(at)
        meta["uid"] = known["metadata"]["uid"] if known is not None else f"uid-{self._version}"
        meta["resourceVersion"] = str(self._version)
        if kind.name == "Pod":
            meta.setdefault("creationTimestamp", _moment(self._version if known is None else 0))
            if known is not None:
                meta["creationTimestamp"] = known["metadata"]["creationTimestamp"]
        self.objects[at] = obj
        item = Item(at[1], at[2], meta["uid"], self._version, msgspec.json.encode(obj))
        self._informers.of(kind).learn(item)

    def drop(self, obj: Obj) -> None:
        kind, meta = _KINDS[obj["apiVersion"], obj["kind"]], obj["metadata"]
        key = meta.get("namespace", "default" if kind.is_namespaced else ""), meta["name"]
        gone = self.objects.pop((kind.name + kind.group, *key), None)
        if gone is not None:
            self._informers.of(kind).learn_gone(key, gone["metadata"]["uid"])

    # -- the engine's side ------------------------------------------------------------------------------------------

    def drain(self) -> list[Event]:
        events = self.world.drain()
        add_up(self.facts, events)
        return events

    def heard(self, what: type[E]) -> list[E]:
        """What it has to say now, of one kind of event."""
        return [event for event in self.drain() if isinstance(event, what)]


def add_up(facts: Facts, events: Iterable[Event]) -> None:
    """What one knows who has heard these events."""
    for event in events:
        if isinstance(event, OthersSeen):
            # Manifests do not know the names of our schedulers.
            continue
        key, value = _fact(event)
        if value is None:
            facts.pop(key, None)
        else:
            facts[key] = value


def _fact(event: Event) -> tuple[tuple[str, ...], Any]:
    match event:
        case NodeSeen(node):
            return ("node", node.name), node
        case NodeGone(name):
            return ("node", name), None
        case PodArrived() | PodBound():
            return ("pod", event.key), _as_first(event)
        case PodGone(key):
            return ("pod", key), None
        case GroupSeen(group):
            return ("group", group.name), group
        case GroupGone(name):
            return ("group", name), None
        case TopologySeen(topology):
            return ("topology", topology.name), topology
        case TopologyGone(name):
            return ("topology", name), None
        case BudgetSeen(budget):
            return ("budget", budget.namespace, budget.name), budget
        case BudgetGone(name, namespace):
            return ("budget", namespace, name), None
        case DaemonSetSeen(name, ask):
            return ("daemon set", name), ask
        case DaemonSetGone(name):
            return ("daemon set", name), None
        case NamespaceSeen(name, labels):
            return ("namespace", name), dict(labels)
        case _:
            return ("other", str(event)), event


def _as_first(event: PodArrived | PodBound) -> PodArrived | PodBound:
    """As if it was told for the first time."""
    who = structs.replace(event.who, order=0)
    if isinstance(event, PodBound):
        return structs.replace(event, who=who, anew=False)
    return structs.replace(event, who=who)


def manifest_events(objects: Iterable[Obj]) -> list[Event]:
    """What manifests of the same objects say. Makers that no pod names are left out: pods would be made for them."""
    kept = list(objects)
    owners = {
        (obj["metadata"].get("namespace", ""), owner["kind"], owner["name"])
        for obj in kept
        for owner in obj["metadata"].get("ownerReferences", ())
    }
    items = [
        obj
        for obj in kept
        if obj["kind"] not in {"Job", "ReplicaSet", "Deployment", "StatefulSet"}
        or (obj["metadata"]["namespace"], obj["kind"], obj["metadata"]["name"]) in owners
    ]
    return manifest_cluster_of(read(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}), "w.json")).events


def manifest_facts(objects: Iterable[Obj]) -> Facts:
    facts: Facts = {}
    add_up(facts, manifest_events(objects))
    return facts


def _moment(second: int) -> str:
    return f"2026-01-01T{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}Z"
