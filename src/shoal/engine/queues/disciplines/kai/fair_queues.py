"""Represents KAI's queues as a tree with what each holds: allocated, requested, and its fair share of each resource.

Amounts are lists of three whole numbers, in the order of `RESOURCES`. A queue whose parent is missing, or that is its
own ancestor, is not in the tree: jobs in it are not looked at. Rejected: a dictionary per amount. One cycle compares
some hundred thousand amounts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from shoal.api.groups.kai import NODE_POOL_LABEL
from shoal.engine.queues.disciplines.kai.division import UNITS, ShareRequest, divide
from shoal.engine.queues.disciplines.kai.objects import RESOURCES, Queue

Amounts3 = Sequence[int]
Bounds3 = tuple[int | None, int | None, int | None]
"""None is unlimited."""

NOTHING: Amounts3 = (0, 0, 0)
UNLIMITED: Bounds3 = (None, None, None)
EACH = range(len(RESOURCES))
_NO_SHARE_PENALTY = 1000
"""What a queue holds of a resource of which it has no allocatable share counts so many times."""


class FairQueue(msgspec.Struct, frozen=True):
    """A queue. The lists of queues are ordered by age, the oldest first."""

    name: str
    parent: str = ""
    priority: int = 100
    quota: Bounds3 = (0, 0, 0)
    limit: Bounds3 = (0, 0, 0)
    weight: tuple[float, float, float] = (0.0, 0.0, 0.0)
    preempt_min_runtime_s: float | None = None
    reclaim_min_runtime_s: float | None = None
    pool: str = ""
    """The value of its label that names a node pool."""


def fair_queues(queues: Iterable[Queue], pool_label: str = NODE_POOL_LABEL) -> list[FairQueue]:
    """The queues of a cluster, the oldest first. `pool_label`: the label that names their node pools."""
    by_age = sorted(queues, key=_age)
    return [
        FairQueue(
            queue.name,
            queue.spec.parent_queue,
            queue.spec.priority,
            (queue.quota("gpu"), queue.quota("cpu"), queue.quota("memory")),
            (queue.limit("gpu"), queue.limit("cpu"), queue.limit("memory")),
            (queue.weight("gpu"), queue.weight("cpu"), queue.weight("memory")),
            queue.preempt_min_runtime_s,
            queue.reclaim_min_runtime_s,
            queue.node_pool(pool_label),
        )
        for queue in by_age
    ]


def _age(queue: Queue) -> tuple[float, str]:
    created = queue.metadata.creation_timestamp
    return created.timestamp() if created is not None else 0.0, queue.name


@dataclass(slots=True, eq=False)
class QueueNode:
    """A queue in the tree. Amounts include those of the queues below it."""

    facts: FairQueue
    age: int
    parent: QueueNode | None = None
    children: list[QueueNode] = field(default_factory=list)
    path: tuple[QueueNode, ...] = ()
    """From the queue itself to the top."""
    allocated: list[int] = field(default_factory=lambda: [0, 0, 0])
    non_preemptible: list[int] = field(default_factory=lambda: [0, 0, 0])
    """What work that is never preempted holds of it."""
    requested: list[int] = field(default_factory=lambda: [0, 0, 0])
    """Everything that is bound, runs or waits."""
    fair_share: list[int] = field(default_factory=lambda: [0, 0, 0])
    allocatable: list[int | None] = field(default_factory=lambda: [None, None, None])
    """The larger of quota and fair share, at most the limit; None is unlimited."""
    measure: list[int] = field(default_factory=lambda: [0, 0, 0])
    """The same, with the total of the cluster for unlimited."""
    usage: tuple[float, ...] = (0.0, 0.0, 0.0)

    @property
    def name(self) -> str:
        return self.facts.name

    @property
    def is_leaf(self) -> bool:
        return not self.children

    def dominant_share(self, amounts: Amounts3) -> float:
        """The largest part that the amounts are of what may be allocated."""
        largest = 0.0
        for amount, measure in zip(amounts, self.measure, strict=True):
            share = amount / measure if measure > 0 else float(amount * _NO_SHARE_PENALTY)
            largest = max(largest, share)
        return largest

    def is_within_quota(self, amounts: Amounts3) -> bool:
        return is_within(amounts, self.facts.quota)


def is_within(amounts: Amounts3, bounds: Sequence[int | None]) -> bool:
    return all(bound is None or amount <= bound for amount, bound in zip(amounts, bounds, strict=True))


def exceeds_any(amounts: Amounts3, bounds: Sequence[int | None]) -> bool:
    return not is_within(amounts, bounds)


def plus(left: Amounts3, right: Amounts3) -> list[int]:
    return [left[0] + right[0], left[1] + right[1], left[2] + right[2]]


class QueueTree:
    """The queues of a cluster; a part of the engine's facts of one cycle."""

    def __init__(self, queues: Sequence[FairQueue], usage: Mapping[str, tuple[float, ...]] | None = None) -> None:
        """`usage`: queue -> its use of each resource over the window, divided by the capacity over the window."""
        nodes = {queue.name: QueueNode(queue, age) for age, queue in enumerate(queues)}
        for name, node in nodes.items():
            node.usage = (usage or {}).get(name, node.usage)
            node.path = _path(nodes, node)
        self.nodes = {name: node for name, node in nodes.items() if node.path}
        self.tops: list[QueueNode] = []
        for node in self.nodes.values():
            if len(node.path) > 1:
                node.parent = node.path[1]
                node.parent.children.append(node)
            else:
                self.tops.append(node)

    def leaf(self, name: str) -> QueueNode | None:
        """The queue, if jobs may be in it."""
        node = self.nodes.get(name)
        return node if node is not None and node.is_leaf else None

    def divide(self, total: Amounts3, k: float = 0.0) -> None:
        """Work out the fair shares from the requests of now, level by level: children divide their parent's share."""
        self._divide(self.tops, total, total, k)

    def _divide(self, siblings: list[QueueNode], amounts: Amounts3, total: Amounts3, k: float) -> None:
        if not siblings:
            return
        for at, resource in enumerate(RESOURCES):
            shares = divide(amounts[at], [_request(node, at) for node in siblings], unit=UNITS[resource], k=k).shares
            for node in siblings:
                node.fair_share[at] = shares[node.name]
                node.allocatable[at] = _allocatable(node, at)
                bound = node.allocatable[at]
                node.measure[at] = total[at] if bound is None else bound
        for node in siblings:
            self._divide(node.children, node.fair_share, total, k)


def _path(nodes: dict[str, QueueNode], node: QueueNode) -> tuple[QueueNode, ...]:
    """Empty if it does not lead to a top queue."""
    path: dict[str, QueueNode] = {}
    at: QueueNode | None = node
    while at is not None and at.name not in path:
        path[at.name] = at
        if not at.facts.parent:
            return tuple(path.values())
        at = nodes.get(at.facts.parent)
    return ()


def _request(node: QueueNode, at: int) -> ShareRequest:
    facts = node.facts
    return ShareRequest(
        facts.name,
        node.requested[at],
        facts.quota[at],
        facts.limit[at],
        facts.weight[at],
        facts.priority,
        node.usage[at],
    )


def _allocatable(node: QueueNode, at: int) -> int | None:
    quota, limit = node.facts.quota[at], node.facts.limit[at]
    if quota is None:
        return limit
    larger = max(quota, node.fair_share[at])
    return larger if limit is None else min(larger, limit)


def meeting_point(left: QueueNode, right: QueueNode) -> tuple[QueueNode, QueueNode]:
    """The ancestors of two queues just below their lowest common one."""
    ours, theirs = left.path[::-1], right.path[::-1]
    for mine, other in zip(ours, theirs, strict=False):
        if mine is not other:
            return mine, other
    return left, right
