"""Orders nodes by the work that their drain would lose, so that a scheduler chooses when gangs are stopped.

Nodes whose drain stops fewer gangs come first, then those that lose fewer GPU-seconds since the last checkpoints, then
those whose stopped pods have a lower priority, then the order of the list. A gang that loses more members than it can
spare stops as a whole: the work of all its pods is lost, wherever they run. The nodes are chosen one after the other.
A gang that an earlier node stops costs nothing more: its other nodes follow, instead of the nodes of another gang.

Rejected: one weighted sum. A stopped gang also leaves GPUs of other nodes without work until it is placed again, and no
number of GPU-seconds says how long. Rejected as well: the exact best order, which needs a search over all subsets.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from heapq import heapify, heappop, heappush

import msgspec

_LOWEST = -(2**31)
"""Of a node where no pod stops. Priorities are 32-bit numbers."""


class DrainedPod(msgspec.Struct, frozen=True):
    """A running pod that a drain of its node would evict."""

    name: str
    """namespace/name."""
    node: str
    gpus_milli: int = 0
    saved_s: float = 0.0
    """When its last checkpoint was; without one, when it started."""
    gang: str = ""
    priority: int = 0


class NodeWork(msgspec.Struct, frozen=True):
    """The running work of the cluster."""

    pods: tuple[DrainedPod, ...] = ()
    spare_members: Mapping[str, int] = {}
    """By gang, how many members it can lose and continue; 0 if it is not listed."""


def by_lost_work(candidates: Sequence[str], work: NodeWork, now_s: float, draining: Iterable[str] = ()) -> list[str]:
    """`draining`: nodes whose pods stop anyway."""
    losses = _Losses(work, now_s)
    for name in draining:
        losses.drain(name)
    place = {name: number for number, name in enumerate(candidates)}
    heap = [(losses.of(name), number, name) for name, number in place.items()]
    heapify(heap)
    ordered = []
    while heap:
        loss, _, name = heappop(heap)
        if name not in place or loss != losses.of(name):
            continue
        ordered.append(name)
        del place[name]
        for other in losses.drain(name):
            if other in place:
                heappush(heap, (losses.of(other), place[other], other))
    return ordered


_PodLoss = tuple[int, int]
"""Seconds of thousandths of a GPU, and the highest priority."""
_NOTHING: _PodLoss = (0, _LOWEST)


class _Losses:
    """The loss of each node's drain after the drains so far."""

    def __init__(self, work: NodeWork, now_s: float) -> None:
        self._now_s = now_s
        self._on_node: dict[str, list[DrainedPod]] = defaultdict(list)
        self._members: dict[str, list[DrainedPod]] = defaultdict(list)
        for pod in work.pods:
            self._on_node[pod.node].append(pod)
            if pod.gang:
                self._members[pod.gang].append(pod)
        self._nodes_by_members = {gang: _by_members(pods) for gang, pods in self._members.items()}
        self._spare = dict(work.spare_members)
        self._stopped: set[str] = set()
        self._drained: set[str] = set()
        self._gang_losses: dict[str, _PodLoss] = {}

    def of(self, node: str) -> tuple[int, int, int]:
        gangs, lost = 0, _NOTHING
        for gang, pods in self._by_gang(node).items():
            stops = bool(gang) and len(pods) > self._spare.get(gang, 0)
            gangs += stops
            lost = _both(lost, self._of_gang(gang) if stops else self._sum(pods))
        return gangs, *lost

    def drain(self, node: str) -> set[str]:
        """The nodes whose loss may have changed: where the drain stops, or would have stopped, one of its gangs."""
        changed: set[str] = set()
        for gang, pods in self._by_gang(node).items():
            if gang:
                left = self._spare.get(gang, 0) - len(pods)
                self._spare[gang] = left
                self._gang_losses.pop(gang, None)
                if left < 0:
                    self._stopped.add(gang)
                for members, nodes in self._nodes_by_members[gang].items():
                    if members > left:
                        changed.update(nodes)
        self._drained.add(node)
        return changed

    def _by_gang(self, node: str) -> dict[str, list[DrainedPod]]:
        """The pods that still run there; those without a gang under the empty name."""
        found: dict[str, list[DrainedPod]] = defaultdict(list)
        if node not in self._drained:
            for pod in self._on_node.get(node, ()):
                if pod.gang not in self._stopped:
                    found[pod.gang].append(pod)
        return found

    def _of_gang(self, gang: str) -> _PodLoss:
        if gang not in self._gang_losses:
            running = [pod for pod in self._members[gang] if pod.node not in self._drained]
            self._gang_losses[gang] = self._sum(running)
        return self._gang_losses[gang]

    def _sum(self, pods: Iterable[DrainedPod]) -> _PodLoss:
        lost = _NOTHING
        for pod in pods:
            lost = _both(lost, (round(max(0.0, self._now_s - pod.saved_s) * pod.gpus_milli), pod.priority))
        return lost


def _by_members(pods: Iterable[DrainedPod]) -> dict[int, list[str]]:
    """The nodes of a gang by the number of its members there."""
    found: dict[int, list[str]] = defaultdict(list)
    for node, members in Counter(pod.node for pod in pods).items():
        found[members].append(node)
    return found


def _both(one: _PodLoss, other: _PodLoss) -> _PodLoss:
    return one[0] + other[0], max(one[1], other[1])
