"""Tracks capacity within one cycle: the chosen victims, reservations of pending heads, and what still fits.

Victims are charged until their pods have ended. A head is tried as if the victims of the cycle had ended. The usage of
the head for which they are preempted is charged at once, so that no other head gets it, until the cycle ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum, auto

from shoal.engine.queues.clusterqueue import AdmittedWorkload, ClusterQueue
from shoal.engine.queues.entry import CycleEntry
from shoal.engine.queues.facts import Usage
from shoal.engine.queues.flavors.assignment import Assignment
from shoal.engine.queues.nomination import fits_quota
from shoal.engine.queues.quota_tree import CohortNode
from shoal.engine.queues.state import Queues
from shoal.engine.queues.topologies import Topologies


class Shortfall(Enum):
    """What keeps a head from being admitted after others of its cycle were."""

    NOTHING = auto()
    QUOTA = auto()
    DOMAINS = auto()


@dataclass(slots=True)
class _Charge:
    """A charge for the rest of the cycle only."""

    queue: ClusterQueue
    usage: Usage
    stand_in: AdmittedWorkload | None = None
    """Holds the domains, where there is a topology."""


class CycleCapacity:
    """The state of one cycle beside the facts."""

    def __init__(self, queues: Queues, topologies: Topologies) -> None:
        self._queues = queues
        self._topologies = topologies
        self._victims: dict[str, AdmittedWorkload] = {}
        """Victims of this cycle."""
        self._victim_usage: dict[CohortNode, dict[ClusterQueue, Usage]] = {}
        """Root -> queue -> what they hold together: a tree is as it would be without them after few steps."""
        self._charges: list[_Charge] = []

    def add_victim(self, held: AdmittedWorkload) -> None:
        """A workload became a victim."""
        if held.key not in self._victims:
            self._victims[held.key] = held
            _add(self._victim_usage.setdefault(held.queue.root, {}), held)

    def shares_victims(self, entry: CycleEntry) -> bool:
        """Whether one of its victims is evicted for another head."""
        return any(victim.held.key in self._victims for victim in entry.victims)

    def reserve(self, entry: CycleEntry, assignment: Assignment, usage: Usage) -> None:
        """Reserve this usage and its domains for the head until the cycle ends."""
        queue = entry.queue
        if not _has_domains(assignment):
            queue.add_all(usage)
            self._charges.append(_Charge(queue, usage))
            return
        facts = entry.waiting.facts
        stand_in = AdmittedWorkload(facts, assignment.admission(queue.name), queue, usage, entry.waiting.stamp_s)
        self._queues.add_usage(stand_in)
        # It cannot be a victim.
        del queue.held[facts.key]
        self._charges.append(_Charge(queue, usage, stand_in))

    def release(self) -> None:
        """Release all reservations at the end of the cycle."""
        for charge in reversed(self._charges):
            if charge.stand_in is None:
                charge.queue.remove_all(charge.usage)
            else:
                charge.queue.held[charge.stand_in.key] = charge.stand_in
                self._queues.remove_usage(charge.stand_in)
        self._charges.clear()

    @contextmanager
    def without_victims(self, root: CohortNode) -> Iterator[None]:
        """Remove all victims of the cycle from the state for a while, as far as that matters to one tree."""
        removed = self._queues.remove_all_usage(
            held for held in self._victims.values() if held.topology_flavors or held.queue.root is root
        )
        try:
            yield
        finally:
            self._queues.add_all_usage(removed)

    def shortfall(self, entry: CycleEntry, assignment: Assignment) -> Shortfall:
        """What is missing after the earlier heads of the cycle, with all victims removed."""
        has_domains = _has_domains(assignment)
        fits_now = not entry.victims and fits_quota(entry.queue, assignment.usage)
        if fits_now and (not has_domains or self._topologies.has_capacity(assignment)):
            # An eviction never reduces capacity.
            return Shortfall.NOTHING
        if not has_domains:
            return Shortfall.NOTHING if self._fits_quota_without(entry, assignment.usage) else Shortfall.QUOTA
        removed = self._queues.remove_all_usage([*self._victims.values(), *(victim.held for victim in entry.victims)])
        found = Shortfall.NOTHING
        if not fits_quota(entry.queue, assignment.usage):
            found = Shortfall.QUOTA
        elif not self._topologies.has_capacity(assignment):
            self._queues.short_of_nodes.add(entry.queue.root)
            found = Shortfall.DOMAINS
        self._queues.add_all_usage(removed)
        return found

    def _fits_quota_without(self, entry: CycleEntry, usage: Usage) -> bool:
        """Whether quota has capacity without this cycle's victims and its own."""
        sums = {queue: dict(each) for queue, each in self._victim_usage.get(entry.queue.root, {}).items()}
        for victim in entry.victims:
            if victim.held.key not in self._victims:
                _add(sums, victim.held)
        for queue, each in sums.items():
            queue.remove_all(each)
        fits = fits_quota(entry.queue, usage)
        for queue, each in sums.items():
            queue.add_all(each)
        return fits


def own_part(queue: ClusterQueue, assignment: Assignment) -> Usage:
    """As much of the usage as the queue may have by itself, or by borrowing if it does borrow."""
    part: Usage = {}
    for fr, amount in assignment.usage.items():
        used, nominal = queue.usage.get(fr, 0), queue.nominal.get(fr, 0)
        if assignment.borrow > 0:
            limit = queue.borrowing.get(fr)
            part[fr] = amount if limit is None else min(amount, nominal + limit - used)
        else:
            part[fr] = min(amount, nominal - used)
    return {fr: amount for fr, amount in part.items() if amount > 0}


def _has_domains(assignment: Assignment) -> bool:
    return any(choice.topology is not None for choice in assignment.pod_sets)


def _add(sums: dict[ClusterQueue, Usage], held: AdmittedWorkload) -> None:
    usage = sums.setdefault(held.queue, {})
    for fr, amount in held.usage.items():
        usage[fr] = usage.get(fr, 0) + amount
