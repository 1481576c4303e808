"""What one viewer may see, and the facts that remain of all facts for this viewer.

Guarantees: of a namespace that the viewer may not list, only sums remain: how many GPUs of a node are held by others,
and how many pods run or wait in all. No name of an object in it is left.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

import msgspec
from msgspec import structs

from shoal.views.dashboard.facts import (
    DashboardFacts,
    DashboardNode,
    DashboardPod,
    Detail,
    Fleet,
    GangDetail,
    GangFacts,
    GpuSlot,
    JobDetail,
    NodeDetail,
    PodDetail,
    QueueDetail,
    Tile,
    WorkloadFacts,
)
from shoal.views.queue_tree import Tree, TreeNode

T = TypeVar("T")
OTHERS = "other namespaces"
"""The owner of what namespaces hold that the viewer may not list; no namespace has a blank in its name."""
EVENTS_OF_NODES = "default"
_MOST_CACHED = 20_000


class Viewer(msgspec.Struct, frozen=True):
    namespaces: frozenset[str] | None = None
    """Those whose pods the viewer may list; None for all."""
    lists_nodes: bool = True
    lists_queues: bool = True
    events_in: frozenset[str] | None = None
    """Of the namespaces above, those whose Events the viewer may list; None for all of them."""
    workloads_in: frozenset[str] | None = None
    """Those whose Workloads of Kueue the viewer may list; None for all of them."""

    def sees(self, namespace: str) -> bool:
        return self.namespaces is None or namespace in self.namespaces

    def sees_events(self, namespace: str) -> bool:
        """Events of nodes are in the namespace `default`."""
        if not namespace:
            return self.lists_nodes and (self.events_in is None or EVENTS_OF_NODES in self.events_in)
        return self.sees(namespace) and (self.events_in is None or namespace in self.events_in)

    def sees_workloads(self, namespace: str) -> bool:
        return self.sees(namespace) and (self.workloads_in is None or namespace in self.workloads_in)


ALL = Viewer()
"""A viewer that sees what the server sees."""


def namespaces_of(facts: DashboardFacts) -> set[str]:
    """Those of everything that is listed."""
    found = set(facts.fleet.sums)
    found |= {one.namespace for one in facts.waiting}
    found |= {one.namespace for one in facts.workloads}
    found |= {one.namespace for one in facts.events}
    found |= {_namespace(gang.name) for gang in facts.gangs}
    if isinstance(facts.detail, QueueDetail):
        found |= {one.namespace for one in (*facts.detail.pending, *facts.detail.admitted)}
        found |= {_namespace(gang.name) for gang in facts.detail.gangs}
    if isinstance(facts.detail, PodDetail):
        found.add(facts.detail.pod.namespace)
    if isinstance(facts.detail, GangDetail):
        found |= {_namespace(facts.detail.gang.name), *(pod.namespace for pod in facts.detail.pods)}
    if isinstance(facts.detail, JobDetail):
        found.add(facts.detail.namespace)
    return found - {""}


class PermittedFacts:
    """Reduces facts to those of a viewer. A tile is reduced again only when it has changed."""

    def __init__(self) -> None:
        self._tiles: dict[tuple[int, Viewer], tuple[Tile, Tile]] = {}

    def of(self, facts: DashboardFacts, viewer: Viewer) -> DashboardFacts:
        if viewer == ALL:
            return facts
        sees = viewer.sees
        tiles = [self._tile(tile, viewer) for tile in facts.tiles]
        if not viewer.lists_nodes:
            tiles = [_of_own_pods(tile) for tile in tiles if any(slot.pod for gpu in tile.parts for slot in gpu)]
        return structs.replace(
            facts,
            tiles=tiles,
            fleet=_fleet(facts.fleet, viewer),
            waiting=[_waiting(one, viewer) for one in facts.waiting if sees(one.namespace)],
            workloads=_seen(facts.workloads, viewer),
            gangs=_gangs(facts.gangs, viewer),
            events=[one for one in facts.events if viewer.sees_events(one.namespace)],
            # Their sums are over all namespaces, and their messages name objects.
            warnings=facts.warnings if viewer.namespaces is None and viewer.lists_nodes and _has_events(viewer) else (),
            queues=facts.queues if viewer.lists_queues else (),
            note=facts.note if viewer.namespaces is None and viewer.lists_nodes else "",
            detail=self._detail(facts.detail, viewer),
        )

    def _tile(self, tile: Tile, viewer: Viewer) -> Tile:
        if viewer.namespaces is None:
            return tile
        key = (id(tile), viewer)
        known = self._tiles.get(key)
        if known is not None:
            return known[1]
        if len(self._tiles) >= _MOST_CACHED:
            self._tiles.clear()
        parts = [[_slot(slot, viewer) for slot in gpu] for gpu in tile.parts]
        sums = _sums(tile.sums.items(), viewer)
        main = max(sums, key=lambda owner: sums[owner], default="")
        found = structs.replace(tile, parts=parts, sums=sums, main_owner=main)
        # The tile is kept, because its id is the key.
        self._tiles[key] = tile, found
        return found

    def _detail(self, detail: Detail | None, viewer: Viewer) -> Detail | None:
        if isinstance(detail, NodeDetail):
            if not viewer.lists_nodes:
                return None
            pods = [pod for pod in detail.pods if viewer.sees(pod.namespace)]
            return structs.replace(detail, tile=self._tile(detail.tile, viewer), pods=pods)
        if isinstance(detail, PodDetail):
            if not viewer.sees(detail.pod.namespace):
                return None
            events = detail.events if viewer.sees_events(detail.pod.namespace) else ()
            return structs.replace(detail, pod=_waiting(detail.pod, viewer), events=events)
        if isinstance(detail, GangDetail):
            pods = [pod for pod in detail.pods if viewer.sees(pod.namespace)]
            gangs = _gangs([detail.gang], viewer)
            if not gangs:
                return None
            return structs.replace(detail, gang=gangs[0], pods=pods, workload=_quota_of(detail, viewer))
        if isinstance(detail, JobDetail):
            pods = [_waiting(pod, viewer) for pod in detail.pods]
            found = structs.replace(detail, pods=pods, workload=_quota_of(detail, viewer))
            return found if viewer.sees(detail.namespace) else None
        if isinstance(detail, QueueDetail):
            if not viewer.lists_queues:
                return None
            gangs = _gangs(detail.gangs, viewer)
            pending, admitted = _seen(detail.pending, viewer), _seen(detail.admitted, viewer)
            return structs.replace(detail, pending=pending, admitted=admitted, gangs=gangs)
        return detail


def permitted_tree(tree: Tree, viewer: Viewer) -> Tree:
    """Without the local queues of other namespaces; the sums of cluster queues and cohorts remain."""
    if not viewer.lists_queues:
        return Tree()
    if viewer.namespaces is None:
        return tree
    return Tree(_nodes(tree.roots, viewer), _nodes(tree.astray, viewer), _nodes(tree.missing, viewer))


def _nodes(nodes: Iterable[TreeNode], viewer: Viewer) -> list[TreeNode]:
    return [
        structs.replace(node, children=_nodes(node.children, viewer))
        for node in nodes
        if node.kind != "localQueue" or viewer.sees(_namespace(node.name))
    ]


def _seen(workloads: Sequence[WorkloadFacts], viewer: Viewer) -> list[WorkloadFacts]:
    return [one for one in workloads if viewer.sees_workloads(one.namespace)]


def _quota_of(detail: GangDetail | JobDetail, viewer: Viewer) -> WorkloadFacts | None:
    one = detail.workload
    return one if one is not None and viewer.sees_workloads(one.namespace) else None


def _has_events(viewer: Viewer) -> bool:
    return viewer.events_in is None


def _waiting(pod: DashboardPod, viewer: Viewer) -> DashboardPod:
    """Why a gated pod waits is written in its Workload."""
    return structs.replace(pod, why="") if pod.is_gated and not viewer.sees_workloads(pod.namespace) else pod


def _gangs(gangs: Sequence[GangFacts], viewer: Viewer) -> list[GangFacts]:
    seen = (one for one in gangs if viewer.sees(_namespace(one.name)))
    return [one if viewer.sees_workloads(_namespace(one.name)) else structs.replace(one, why="") for one in seen]


def _of_own_pods(tile: Tile) -> Tile:
    """What the pods of the viewer say themselves: the name of their node, and what they hold there."""
    parts = [[slot for slot in gpu if slot.pod] for gpu in tile.parts]
    return structs.replace(tile, node=DashboardNode(tile.node.name, "", 0, ()), parts=parts)


def _slot(slot: GpuSlot, viewer: Viewer) -> GpuSlot:
    if not slot.owner or viewer.sees(slot.owner):
        return slot
    return structs.replace(slot, owner=OTHERS, pod="", load=None)


def _fleet(fleet: Fleet, viewer: Viewer) -> Fleet:
    name, most = fleet.most_free
    return structs.replace(
        fleet, sums=_sums(fleet.sums.items(), viewer), most_free=(name if viewer.lists_nodes else "", most)
    )


def _sums(sums: Iterable[tuple[str, float]], viewer: Viewer) -> dict[str, float]:
    found: dict[str, float] = {}
    for owner, gpus in sums:
        owner_shown = owner if viewer.sees(owner) else OTHERS
        found[owner_shown] = found.get(owner_shown, 0.0) + gpus
    return found


def _namespace(name: str) -> str:
    return name.partition("/")[0]
