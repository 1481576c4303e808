"""Removes victims from the state while a search runs, and restores the state exactly afterwards.

Quota alone is tried on the sums; holders leave their queue, and their nodes, only where more than quota is
checked. Both ways are undone in reverse order, and a queue gets its holders back in the order in which it had them.

An eviction frees at most the usage of its victim, so most steps need no look at the tree: while less has been freed
than was missing there cannot be room, and while less is put back than is spare there must be.

Rejected: a copy of the state per search. Most searches end after a few victims, or before the first.
"""

from __future__ import annotations

from shoal.engine.queues.clusterqueue import AdmittedWorkload, ClusterQueue
from shoal.engine.queues.facts import FlavorResource, Usage
from shoal.engine.queues.reasons import Yield
from shoal.engine.queues.state import Queues
from shoal.engine.queues.victims.budgets import Budgets
from shoal.engine.queues.victims.preemption_request import PreemptionRequest, Victim


class Trial:
    """One search: who has been taken away so far, and whether that is enough."""

    __slots__ = (
        "_budgets",
        "_holders",
        "_missing",
        "_missing_fr",
        "_missing_own",
        "_queues",
        "_taken",
        "_wanted",
        "want",
    )

    def __init__(self, queues: Queues, want: PreemptionRequest) -> None:
        self.want = want
        self._queues = queues
        self._budgets = (
            Budgets(queues)
            if want.preemption_cost is not None and want.preemption_cost.settings.respect_budgets
            else None
        )
        self._wanted = list(want.usage.items())
        self._taken: list[tuple[AdmittedWorkload, Yield]] = []
        self._holders: dict[ClusterQueue, dict[str, AdmittedWorkload]] = {}
        self._missing = 0
        """At least so much of `_missing_fr` is still missing."""
        self._missing_fr: FlavorResource = ("", "")
        self._missing_own = False
        """Missing in the queue's own quota: only its own workloads make room there."""

    def may_take(self, held: AdmittedWorkload) -> bool:
        """Whether those taken so far leave its disruption budgets room for its end."""
        return self._budgets is None or self._budgets.allow(held)

    def take(self, held: AdmittedWorkload, reason: Yield) -> None:
        if self._budgets is not None and held.facts.budgets:
            self._budgets.use(held)
        self._taken.append((held, reason))
        self._remove(held)
        if self._missing > 0 and (not self._missing_own or held.queue is self.want.queue):
            self._missing -= held.usage.get(self._missing_fr, 0)

    @property
    def is_short(self) -> bool:
        """Whether it is plain that more is needed."""
        return self._missing > 0

    def fits(self, *, borrowing: bool) -> bool:
        """Whether there is capacity now; without `borrowing`, within the queue's own quota."""
        if self._missing > 0:
            return False
        queue = self.want.queue
        for fr, amount in self._wanted:
            if not borrowing:
                beyond = queue.usage.get(fr, 0) + amount - queue.subtree.get(fr, 0)
                if beyond > 0:
                    self._missing, self._missing_fr, self._missing_own = beyond, fr, True
                    return False
            if amount > 0:
                beyond = amount - queue.available(fr)
                if beyond > 0:
                    self._missing, self._missing_fr, self._missing_own = beyond, fr, False
                    return False
        return self.want.fits is None or self.want.fits()

    def spare(self, *, borrowing: bool) -> list[Victim]:
        """The victims that are needed: the others are put back, the last taken first."""
        queue = self.want.queue
        looks_at_quota = self.want.fits is None
        surplus = self._surplus()
        for index in range(len(self._taken) - 2, -1, -1):
            held = self._taken[index][0]
            self._restore(held)
            is_enough = _use_up(surplus, held.usage) and looks_at_quota and held.queue is not queue
            if is_enough:
                del self._taken[index]
                continue
            if self.fits(borrowing=borrowing):
                del self._taken[index]
            else:
                self._remove(held)
                self._missing = 0
            surplus = self._surplus()
        return [Victim(held, reason) for held, reason in self._taken]

    def undo(self) -> None:
        """Undo all removals."""
        for held, _ in reversed(self._taken):
            self._restore(held)
        self._taken.clear()
        self._missing = 0
        if self._budgets is not None:
            self._budgets.forget()
        for queue, holders in self._holders.items():
            queue.held.clear()
            queue.held.update(holders)
        self._holders.clear()

    def _surplus(self) -> Usage:
        """What is left over."""
        return {fr: self.want.queue.available(fr) - amount for fr, amount in self._wanted if amount > 0}

    def _remove(self, held: AdmittedWorkload) -> None:
        queue = held.queue
        if self.want.fits is None:
            queue.remove_all(held.usage)
            return
        if queue not in self._holders:
            self._holders[queue] = dict(queue.held)
        self._queues.remove_usage(held)

    def _restore(self, held: AdmittedWorkload) -> None:
        if self.want.fits is None:
            held.queue.add_all(held.usage)
        else:
            self._queues.add_usage(held)


def _use_up(surplus: Usage, usage: Usage) -> bool:
    """Take from what is left over; whether it was enough."""
    is_enough = True
    for fr in surplus:
        surplus[fr] -= usage.get(fr, 0)
        is_enough = is_enough and surplus[fr] >= 0
    return is_enough
