"""Stores the objects and counts of the dashboard as they change, and builds the facts of a frame on demand.

A change costs the change, however large the cluster: what waits is kept in order, and a node's tile is made again only
when something on that node has changed. Of deleted pods only the number that ended remains, and of Events that report
faults their sums.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque

from msgspec import structs

from shoal.views.dashboard.facts import (
    Address,
    DashboardFacts,
    DashboardNode,
    DashboardPod,
    Detail,
    EventFacts,
    GangDetail,
    JobDetail,
    NodeDetail,
    PageSubject,
    PodDetail,
    Tile,
)
from shoal.views.dashboard.gpu_use import fleet_of, tile_of
from shoal.views.dashboard.node_changes import NodeChanges
from shoal.views.dashboard.queue_state import GangState, QueueState
from shoal.views.dashboard.warning_state import WarningState

_MOST_EVENTS = 500
_MOST_WAITING = 2_000
"""How many waiting pods a user looks through."""
_MOST_SAMPLES, _SAMPLE_S = 240, 5.0
_EVERYDAY = frozenset({"Pulling", "Pulled", "Created", "SuccessfulCreate", "SuccessfulDelete"})
"""What every pod brings with it: the tiles show it better."""


class ClusterState:
    def __init__(self, title: str = "Shoal", namespace: str = "") -> None:
        """`namespace`: the only one whose pods, Workloads, gangs and Events are listed and counted; empty for all.
        Nodes and queues, and what is held of them, are those of the cluster."""
        self.title = title
        self._namespace = namespace
        self.changes = 0
        """How often a node, a pod or an Event has changed."""
        self.queues = QueueState()
        self.gangs = GangState()
        self.node_changes = NodeChanges()
        self._warnings = WarningState()
        self._nodes: dict[str, DashboardNode] = {}
        self._order: list[str] | None = None
        """Names of nodes in natural order; None until first used."""
        self._tiles: dict[str, Tile] = {}
        """Those that are still right."""
        self._fleet = fleet_of([])
        self._summed = 0
        """The number of changes when it was."""
        self._pods: dict[Address, DashboardPod] = {}
        self._held: dict[str, dict[Address, DashboardPod]] = {}
        self._waiting: list[tuple[str, Address]] = []
        """In order; the first is when the pod was created."""
        self._running = 0
        self._ended = {"Succeeded": 0, "Failed": 0}
        """Also of pods that are gone by now: what has been done stays done."""
        self._events: deque[EventFacts] = deque(maxlen=_MOST_EVENTS)
        self._history: deque[float] = deque(maxlen=_MOST_SAMPLES)
        self._sampled_s = float("-inf")

    @property
    def version(self) -> int:
        """The number of all changes: the facts of two frames with the same version differ in their times alone."""
        return self.changes + self.queues.changes + self.gangs.changes + self.node_changes.changes

    def put_node(self, node: DashboardNode) -> None:
        before = self._nodes.get(node.name)
        if before == node:
            return
        if before is None:
            self._order = None
        self._nodes[node.name] = node
        self._tiles.pop(node.name, None)
        self.changes += 1

    def drop_node(self, name: str) -> None:
        if self._nodes.pop(name, None) is None:
            return
        self._order = None
        self._tiles.pop(name, None)
        self.changes += 1

    def put_pod(self, pod: DashboardPod) -> None:
        before = self._pods.get(pod.address)
        if before == pod:
            return
        # A pod that was asked to end has failed in name only.
        if (
            self._lists(pod.namespace)
            and pod.phase in self._ended
            and not pod.is_ending
            and (before is None or before.phase != pod.phase)
        ):
            self._ended[pod.phase] += 1
        self._pods[pod.address] = pod
        self._move(before, pod)

    def drop_pod(self, address: Address) -> None:
        before = self._pods.pop(address, None)
        if before is not None:
            self._move(before, None)

    def put_event(self, event: EventFacts) -> None:
        if event.namespace and not self._lists(event.namespace):
            return
        self._warnings.put(event)
        if event.reason not in _EVERYDAY:
            self._events.appendleft(event)
            self.changes += 1

    def scene(
        self, clock: str, footer: str = "", now_s: float = 0.0, opened: PageSubject | None = None, note: str = ""
    ) -> DashboardFacts:
        """`opened`: the subject whose page is open."""
        if self._order is None:
            self._order = sorted(self._nodes, key=_natural)
        tiles = [self._tiles.get(name) or self._tile(name) for name in self._order]
        if self._summed != self.changes:
            self._fleet, self._summed = fleet_of(tiles), self.changes
        self._sample(now_s)
        waiting = [self._explained(self._pods[address]) for _, address in self._waiting[:_MOST_WAITING]]
        return DashboardFacts(
            title=self.title,
            clock=clock,
            tiles=tiles,
            fleet=self._fleet,
            waiting=waiting,
            waits=len(self._waiting),
            running=self._running,
            done=self._ended["Succeeded"],
            failed=self._ended["Failed"],
            events=sorted(self._events, key=lambda event: event.at, reverse=True),
            footer=footer,
            now_s=now_s,
            queues=self.queues.queues(self.gangs.refused()),
            workloads=self.queues.without_pods(waiting, self._namespace),
            gangs=self.gangs.all(self._namespace),
            warnings=self._warnings.all(),
            history=list(self._history),
            note=note,
            starting=self.node_changes.starting,
            leaving=self.node_changes.leaving,
            node_lines=self.node_changes.lines(now_s),
            detail=None if opened is None else self._detail(opened),
        )

    def _sample(self, now_s: float) -> None:
        if self._fleet.gpus and now_s - self._sampled_s >= _SAMPLE_S:
            self._sampled_s = now_s
            self._history.append(self._fleet.held / max(1, self._fleet.gpus))

    def _explained(self, pod: DashboardPod) -> DashboardPod:
        """With the reason of its Workload, if a queue keeps it back."""
        why = self.queues.why_gated(pod) if pod.is_gated else ""
        return structs.replace(pod, why=why) if why else pod

    def _detail(self, subject: PageSubject) -> Detail | None:
        if subject.kind == "node":
            if subject.name not in self._nodes:
                return None
            pods = sorted(self._held.get(subject.name, {}).values(), key=lambda pod: (-pod.gpus, pod.address))
            return NodeDetail(self._tiles.get(subject.name) or self._tile(subject.name), pods)
        if subject.kind == "queue":
            return self.queues.detail(subject.name, self.gangs.all(), self.gangs.refused())
        namespace, _, name = subject.name.partition("/")
        workload = self.queues.workload_of(namespace, subject.kind, name)
        if subject.kind == "gang":
            gang = self.gangs.get(subject.name)
            pods = [self._explained(pod) for pod in self.gangs.pods(subject.name)]
            return None if gang is None else GangDetail(gang, pods, workload)
        if subject.kind == "job":
            mine = self.gangs.job_pods(subject.name)
            if mine is None and workload is None:
                return None
            return JobDetail(namespace, name, [self._explained(pod) for pod in mine or ()], workload)
        pod = self._pods.get((namespace, name))
        if pod is None:
            return None
        events = [event for event in self._events if event.about == f"pod/{name}" and event.namespace == namespace]
        return PodDetail(self._explained(pod), events)

    def _tile(self, name: str) -> Tile:
        tile = self._tiles[name] = tile_of(self._nodes[name], self._held.get(name, {}).values())
        return tile

    def _move(self, before: DashboardPod | None, after: DashboardPod | None) -> None:
        """From where a pod was to where it is."""
        self.changes += 1
        pod = after or before
        is_listed = pod is not None and self._lists(pod.namespace)
        self._running += is_listed * (_runs(after) - _runs(before))
        self.gangs.move(before, after)
        if is_listed and before is not None and _lines_up(before):
            self._waiting.pop(bisect_left(self._waiting, (before.created, before.address)))
        if is_listed and after is not None and _lines_up(after):
            insort(self._waiting, (after.created, after.address))
        home, place = _home(before), _home(after)
        if before is not None and home and home != place:
            self._let_go(home, before.address)
        if after is not None and place:
            self._held.setdefault(place, {})[after.address] = after
            self._tiles.pop(place, None)

    def _lists(self, namespace: str) -> bool:
        return not self._namespace or namespace == self._namespace

    def _let_go(self, node: str, address: Address) -> None:
        held = self._held[node]
        del held[address]
        if not held:
            del self._held[node]
        self._tiles.pop(node, None)


def _runs(pod: DashboardPod | None) -> bool:
    return pod is not None and pod.phase == "Running"


def _lines_up(pod: DashboardPod) -> bool:
    return pod.waits and not pod.node


def _home(pod: DashboardPod | None) -> str:
    """The node on which it holds GPUs."""
    return pod.node if pod is not None and pod.holds and pod.gpus else ""


def _natural(name: str) -> tuple[str, int, str]:
    """`p5-9` before `p5-10`."""
    words, _, number = name.rpartition("-")
    return (words, int(number), "") if number.isdecimal() else (name, 0, "")
