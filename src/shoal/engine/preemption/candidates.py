"""Collects all possible victims as columns, once per step.

Whether a candidate is eligible for one claimant (lower priority, same queue) is then one comparison of columns, and
what a node could be freed of is a sum over them. Candidates are numbered from the newest: the number breaks ties.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from shoal.engine import facts
from shoal.engine.cluster import Cluster
from shoal.engine.device_demand import COMPUTE
from shoal.engine.gang_members import Gang
from shoal.engine.groups import GroupFacts
from shoal.engine.pods import PodAllocation
from shoal.engine.preemption.eviction_units import EvictionUnit
from shoal.engine.preemption.policy import VictimPolicy, level_and_weight

AGE_BITS = 20
"""Milliseconds above, the candidate's number below: equal ages fall to the newer name."""

Mask = NDArray[np.bool_]


class Candidates:
    """Columns over pods on nodes."""

    def __init__(
        self,
        cluster: Cluster,
        policy: VictimPolicy,
        now_s: float,
        planned: Collection[str] = (),
        pods: Iterable[str] | None = None,
        *,
        each_alone: bool = False,
    ) -> None:
        """All that are willing, or some pods.

        `planned` were placed in this round only: undoing their placement evicts no pod. `each_alone`: gangs count
        for nothing.
        """
        self.cluster = cluster
        self.keys: list[str] = []
        self.units: list[EvictionUnit] = []
        self._unit_of: dict[str, int] = {}
        self._gangs: dict[str, tuple[int, float]] = {}
        self._policy = policy
        self._now_s = now_s
        allocations = [
            (key, allocation)
            for key, allocation in (willing(cluster) if pods is None else ((pod, cluster.pods[pod]) for pod in pods))
            if not (allocation.is_terminating or allocation.daemon_set or allocation.has_precedence)
        ]
        allocations.sort(key=_newness, reverse=True)
        count = len(allocations)
        self.row = np.zeros(count, np.int64)
        self.unit = np.full(count, -1, np.int64)
        self.priority = np.zeros(count, np.int64)
        self.level = np.zeros(count, np.float64)
        self.weight = np.zeros(count, np.int64)
        self.taken = np.zeros((count, cluster.width), np.int64)
        self.alone = np.ones(count, np.bool_)
        """May yield without its gang, as far as its running time goes."""
        self.late: list[int] = []
        """What it adds to the time lost: since it started or saved its work, in milliseconds, and its number."""
        self.queue: list[str] = []
        self.evicted = np.zeros(count, np.bool_)
        for key, allocation in allocations:
            gang = cluster.gangs.find(allocation.who.group) if allocation.who.group and not each_alone else None
            self._add(key, allocation, gang, fresh=key in planned)
        self._end()

    def __len__(self) -> int:
        return len(self.keys)

    def on(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """The candidates on these rows."""
        starts, ends = self._starts[rows], self._starts[rows + 1]
        lengths = ends - starts
        total = int(lengths.sum())
        if total == 0:
            return np.zeros(0, np.int64)
        offsets = np.repeat(ends - lengths.cumsum(), lengths)
        return self.by_row[offsets + np.arange(total)]

    def amounts(self, columns: NDArray[np.int64]) -> NDArray[np.int64]:
        """What each takes of these columns of the record."""
        key = tuple(columns.tolist())
        found = self._amounts.get(key)
        if found is None:
            found = self._amounts[key] = np.ascontiguousarray(self.taken[:, columns])
        return found

    def eligible(self, priority: int | None, queue: str | None, own: str = "") -> Mask:
        """Who would have to yield to a claimant of this priority and queue (None: whatever they are), never its own
        gang."""
        mask: Mask = np.ones(len(self), np.bool_) if priority is None else self.priority < priority
        whole = np.array([unit.may_be_evicted for unit in self.units] or [False])
        mask &= self.alone | whole[self.unit]
        if queue is not None and set(self.queue) - {queue}:
            mask &= np.array([other == queue for other in self.queue])
        if own in self._unit_of:
            mask &= self.unit != self._unit_of[own]
        return mask

    def _add(self, key: str, allocation: PodAllocation, gang: Gang | None, *, fresh: bool) -> None:
        who, at = allocation.who, len(self.keys)
        earliest = self._now_s - self._policy.min_runtime_s
        alone = fresh or who.since_s <= earliest
        place, priority, started_s = -1, allocation.priority, who.since_s
        if gang is not None and gang.facts is not None:
            priority, started_s = self._priority_and_start(gang)
        if not alone and started_s > earliest:
            return
        if gang is not None and gang.facts is not None:
            place = self._unit_index(gang, gang.facts)
        self.keys.append(key)
        self.queue.append(who.queue)
        self.row[at], self.unit[at], self.priority[at], self.alone[at] = allocation.row, place, priority, alone
        if fresh:
            # Far cheaper than to end a pod, but not free: it may have to ask others in its turn.
            self.level[at], self.weight[at] = -np.inf, 1
        else:
            order = self._policy.order
            self.level[at], self.weight[at] = level_and_weight(order, self._now_s, allocation, priority, started_s)
        self.taken[at] = allocation.charge.taken
        if allocation.grant is not None:
            # What a share of memory takes of compute depends on the node.
            parts = allocation.grant.parts
            self.taken[at, facts.GPU_MILLI] = sum(amount for _, plane, amount in parts if plane == COMPUTE)
        lost_ms = 0 if fresh else round(1000 * who.lost_s(self._now_s))
        self.late.append((lost_ms << AGE_BITS) + at)
        if place >= 0:
            unit = self.units[place]
            unit.members[at] = who
            unit.weight += self.weight.item(at)
            unit.late += self.late[at]

    def _end(self) -> None:
        """Cut the columns to length, and sum them up by row and company."""
        kept, cluster = len(self.keys), self.cluster
        for name in ("row", "unit", "priority", "level", "weight", "taken", "alone", "evicted"):
            setattr(self, name, getattr(self, name)[:kept])
        for name, place in self._unit_of.items():
            unit = self.units[place]
            if not unit.may_be_evicted:
                members = {self.keys[index] for index in unit.members}
                running = cluster.gangs[name].running
                unit.others = [cluster.pods[pod].who for pod in running if pod not in members]
        self.late_of = np.array(self.late, np.float64)
        self.unit_weight = np.array([float(unit.weight) for unit in self.units])
        """Of the members that do not yield in the open trial; so are the next two."""
        self.unit_late = np.array([float(unit.late) for unit in self.units])
        self.unit_spare = np.array([unit.most_spare for unit in self.units], np.int64)
        self._amounts: dict[tuple[int, ...], NDArray[np.int64]] = {}
        self.by_row = np.argsort(self.row, kind="stable")
        self._starts = np.searchsorted(self.row[self.by_row], np.arange(cluster.rows + 1))

    def _unit_index(self, gang: Gang, facts: GroupFacts) -> int:
        place = self._unit_of.get(gang.name)
        if place is None:
            place = self._unit_of[gang.name] = len(self.units)
            self.units.append(EvictionUnit(facts, len(gang.running), self._policy.surplus_only))
        return place

    def _priority_and_start(self, gang: Gang) -> tuple[int, float]:
        """A gang's priority and start."""
        found = self._gangs.get(gang.name)
        if found is None:
            pods = [self.cluster.pods[pod] for pod in gang.running]
            priority = None if gang.facts is None else gang.facts.priority
            if priority is None:
                waiting = [self.cluster.pending[pod].priority for pod in gang.waiting]
                priority = max([pod.priority for pod in pods] + waiting)
            found = self._gangs[gang.name] = priority, min(pod.who.since_s for pod in pods)
        return found


def willing(cluster: Cluster) -> Iterator[tuple[str, PodAllocation]]:
    """Pods on nodes that may have to yield, as far as they and their gangs are concerned."""
    for key, allocation in cluster.pods.items():
        if is_willing(cluster, allocation):
            yield key, allocation


def is_willing(cluster: Cluster, allocation: PodAllocation) -> bool:
    """Whether neither the pod nor its gang forbids it."""
    who = allocation.who
    if not who.is_preemptible:
        return False
    gang = cluster.gangs.find(who.group) if who.group else None
    return gang is None or gang.facts is None or gang.facts.is_preemptible


def _newness(item: tuple[str, PodAllocation]) -> tuple[float, int, int, str]:
    key, allocation = item
    # Of names that differ in a number the larger is the newer, and it is also the longer.
    return allocation.who.since_s, allocation.who.order, len(key), key
