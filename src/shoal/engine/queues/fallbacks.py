"""Tries alternatives for a head that has quota but no places on nodes: other flavors, other victims, fewer pods.

Each is a nomination like the first one, or none; in what order they are tried, and what comes of them, is the cycle's.
"""

from __future__ import annotations

from shoal.engine.queues.admitter import Admitter
from shoal.engine.queues.entry import CycleEntry
from shoal.engine.queues.facts import QuotaAssignment
from shoal.engine.queues.flavors.assignment import Assignment
from shoal.engine.queues.flavors.modes import Mode
from shoal.engine.queues.nomination import Nominator
from shoal.engine.queues.victims.search import Victim


class Fallbacks:
    def __init__(self, nominator: Nominator, granting: Admitter) -> None:
        self._nominator = nominator
        self._granting = granting

    def other_flavors(self, entry: CycleEntry, admission: QuotaAssignment) -> Assignment | None:
        """With none of the flavors on whose nodes there are no places."""
        entry.barred |= {flavor for each in admission.pod_sets for flavor in each.flavors.values()}
        self._nominator.without(entry, entry.barred)
        found = entry.assignment
        return found if found is not None and (found.mode is Mode.FIT or entry.victims) else None

    def capacity_victims(self, entry: CycleEntry, assignment: Assignment, admission: QuotaAssignment) -> list[Victim]:
        """Victims whose eviction frees places for the pods, among those that may be preempted for quota."""

        def has_places() -> bool:
            return self._granting.would_fit_without_victims(entry.waiting.facts, admission)

        return self._nominator.victims(entry.waiting, entry.queue, assignment, has_places)

    def smaller(self, entry: CycleEntry, assignment: Assignment) -> Assignment | None:
        """With fewer pods, where it may start so, and has quota and places then."""
        if entry.is_cut or all(each.min_count is None for each in entry.waiting.facts.pod_sets):
            return None
        entry.is_cut = True

        def has_places(found: Assignment) -> bool:
            return self._granting.has_places(entry, self._granting.admission(entry, found))

        return self._nominator.smaller(entry, assignment, has_places)
