"""Chooses the rows of each view: filtered by the text that the user typed, in the order that the user chose."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from shoal.views.dashboard.facts import (
    DashboardFacts,
    DashboardPod,
    EventFacts,
    GangFacts,
    PageSubject,
    QueueFacts,
    Tile,
    WarningFacts,
    WorkloadFacts,
)
from shoal.views.dashboard.screen_state import RowKey, ScreenState, View

T = TypeVar("T")


def nodes(state: ScreenState, facts: DashboardFacts) -> list[Tile]:
    """By kind, the kinds in the order of their first nodes."""
    found = _matching(facts.tiles, state.needle, lambda tile: (tile.node.name, tile.node.kind, *tile.sums))
    kinds = {tile.node.kind: at for at, tile in reversed(list(enumerate(found)))}
    orders: dict[str, Callable[[Tile], float]] = {"free": lambda tile: -tile.whole_free, "trouble": _soundness}
    order = orders.get(state.sort(View.NODES), _as_they_are)
    return sorted(found, key=lambda tile: (kinds[tile.node.kind], order(tile)))


def waiting(state: ScreenState, facts: DashboardFacts) -> list[DashboardPod | WorkloadFacts]:
    """Pods without a node, and Workloads without quota whose pods do not exist yet."""
    found: list[DashboardPod | WorkloadFacts] = [*facts.waiting, *facts.workloads]
    found = _matching(found, state.needle, lambda one: (one.full_name, one.queue, one.why))
    orders: dict[str, Callable[[DashboardPod | WorkloadFacts], tuple[object, ...]]] = {
        "GPUs": lambda one: (-one.gpus, one.created, one.full_name),
        "name": lambda one: (one.full_name,),
    }
    return sorted(found, key=orders.get(state.sort(View.WAITING), lambda one: (one.created, one.full_name)))


def queues(state: ScreenState, facts: DashboardFacts) -> list[QueueFacts]:
    found = _matching(facts.queues, state.needle, lambda queue: (queue.name, queue.parent, queue.kind))
    orders: dict[str, Callable[[QueueFacts], float]] = {
        "used": lambda queue: -(queue.quotas[0].used if queue.quotas else 0),
        "pending": lambda queue: -(queue.pending or 0),
    }
    return sorted(found, key=orders.get(state.sort(View.QUEUES), _as_they_are))


def gangs(state: ScreenState, facts: DashboardFacts) -> list[GangFacts]:
    found = _matching(facts.gangs, state.needle, lambda gang: (gang.name, gang.queue))
    orders: dict[str, Callable[[GangFacts], tuple[object, ...]]] = {
        "name": lambda gang: (gang.name,),
        "GPUs": lambda gang: (-gang.gpus, gang.name),
    }
    return sorted(found, key=orders.get(state.sort(View.GANGS), lambda gang: (not gang.waiting,)))


def events(state: ScreenState, facts: DashboardFacts) -> list[EventFacts]:
    found = _matching(facts.events, state.needle, lambda one: (one.about, one.namespace, one.reason, one.message))
    return sorted(found, key=lambda one: not one.is_warning) if state.sort(View.EVENTS) == "warnings" else found


def warnings(state: ScreenState, facts: DashboardFacts) -> list[WarningFacts]:
    """Those that have happened again, or for the first time, since the user acknowledged all."""
    return [one for one in facts.warnings if one.count > state.acknowledged.get(one.key, 0)]


def row_keys(state: ScreenState, facts: DashboardFacts) -> list[RowKey]:
    if state.view is View.NODES:
        return [RowKey(tile.node.name, PageSubject("node", tile.node.name)) for tile in nodes(state, facts)]
    if state.view is View.WAITING:
        return [waiting_key(one) for one in waiting(state, facts)]
    if state.view is View.QUEUES:
        return [RowKey(queue.key, PageSubject("queue", queue.key)) for queue in queues(state, facts)]
    if state.view is View.GANGS:
        return [RowKey(gang.name, PageSubject("gang", gang.name)) for gang in gangs(state, facts)]
    return [event_key(event) for event in events(state, facts)]


def waiting_key(one: DashboardPod | WorkloadFacts) -> RowKey:
    if isinstance(one, WorkloadFacts):
        queue = PageSubject("queue", f"ClusterQueue/{one.cluster_queue}") if one.cluster_queue else None
        return RowKey(f"workload {one.namespace}/{one.name}", queue)
    return RowKey(f"pod {one.full_name}", PageSubject("pod", one.full_name))


def event_key(event: EventFacts) -> RowKey:
    kind, _, name = event.about.partition("/")
    subjects = {"pod": PageSubject("pod", f"{event.namespace}/{name}"), "node": PageSubject("node", name)}
    return RowKey(f"{event.name} {event.at}", subjects.get(kind))


def _as_they_are(_: object) -> float:
    return 0


def _soundness(tile: Tile) -> float:
    """The lower, the more is wrong with the node."""
    return -(4 * (not tile.node.is_ready) + 2 * bool(tile.node.broken) + tile.node.is_cordoned)


def _matching(found: Sequence[T], needle: str, texts: Callable[[T], tuple[str, ...]]) -> list[T]:
    if not needle:
        return list(found)
    return [one for one in found if any(needle in text.casefold() for text in texts(one))]
