"""Shares the cluster by what queues deserve, in a tree: guarantee, deserved amount and capability of each queue.

A queue may use its real capability. It may reclaim as long as it stays within what it deserves in at least one resource
that the pod asks for. Pods are no resource of that kind: every pod asks for one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from shoal.api.resources import PODS
from shoal.engine.queues.disciplines.volcano.amounts import NEGLIGIBLE, Figures, dominant_share, holds, within_asked
from shoal.engine.queues.disciplines.volcano.configuration import PluginOption
from shoal.engine.queues.disciplines.volcano.division import real_capability
from shoal.engine.queues.disciplines.volcano.jobs import JobState, PodOfJob
from shoal.engine.queues.disciplines.volcano.objects import ROOT_QUEUE
from shoal.engine.queues.disciplines.volcano.plugins.arguments import number
from shoal.engine.queues.disciplines.volcano.plugins.plugin import Plugin, Rank
from shoal.engine.queues.disciplines.volcano.plugins.session_view import SessionView
from shoal.engine.queues.disciplines.volcano.queue_forest import QueueForest

_UNLIMITED = float("inf")


class Capacity(Plugin):
    defines = frozenset({"QueueOrder", "Reclaimable", "Allocatable", "Preemptive", "JobEnqueued"})

    def __init__(self, session: SessionView, option: PluginOption) -> None:
        super().__init__(session, option)
        self.is_tree = self.compares_relatives = "Hierarchy" in option.hooks
        forest = session.forest
        self.real_capability = real_capabilities(forest, session.total, is_tree=self.is_tree)
        self.deserved = {name: self._deserved(name) for name in forest.queues}
        self._levels = int(number(option.arguments, "ancestorReclaimLevel", 0))
        """So many ancestors of a queue must be within what they deserve as well, or beyond it to lose pods."""

    def _deserved(self, name: str) -> dict[str, float]:
        queue, limit = self.session.forest.queues[name], self.real_capability[name]
        found = {each: min(amount, limit.get(each, amount)) for each, amount in queue.deserved.items()}
        for each, amount in queue.guarantee.items():
            found[each] = max(found.get(each, 0.0), amount)
        return found

    def queue_order(self, queue: str) -> Rank:
        if not self.is_tree:
            return self._rank(queue)
        return tuple(value for name in self._below_root(queue) for value in (*self._rank(name), self._place(name)))

    def _rank(self, queue: str) -> tuple[float, float, float]:
        """By priority, then by share; a queue that deserves nothing comes after equals that deserve something."""
        deserved = self.deserved.get(queue, {})
        deserves = any(amount > 0 for amount in deserved.values())
        share = dominant_share(self.session.accounts.allocated(queue), deserved) if deserves else 1.0
        return -self.session.forest.queues[queue].priority, share, float(not deserves)

    def _below_root(self, queue: str) -> list[str]:
        """The ancestors and the queue, the outermost first."""
        return [name for name in reversed(self._checked(queue)) if name != ROOT_QUEUE]

    def _place(self, queue: str) -> float:
        """A number of its own for each queue: behind the first ancestors that differ nothing is compared any more."""
        return float(self.session.forest.place(queue))

    def is_allocatable(self, queue: str, amounts: Figures) -> bool:
        return self.session.forest.is_open(queue) and self._is_within_capability(queue, amounts)

    def _is_within_capability(self, queue: str, amounts: Figures) -> bool:
        accounts = self.session.accounts
        return all(
            within_asked(self.real_capability[name], accounts.allocated(name), amounts, unset=_UNLIMITED)
            for name in self._checked(queue)
        )

    def may_reclaim(self, queue: str, amounts: Figures) -> bool:
        if not self.is_allocatable(queue, amounts):
            return False
        accounts = self.session.accounts
        asked = {name: amount for name, amount in amounts.items() if amount > 0 and name != PODS}
        return all(
            not asked
            or any(
                accounts.allocated(each).get(name, 0) + amount - self.deserved[each].get(name, 0) < NEGLIGIBLE
                for name, amount in asked.items()
            )
            for each in self._judged(queue)
        )

    def vote(self, job: JobState) -> str | None:
        if not self.session.forest.is_open(job.queue):
            return f"queue {job.queue} is not open"
        asked = job.facts.min_resources
        if asked is None:
            return ""
        for queue in self._checked(job.queue):
            used = self.session.accounts.after_admission(queue, asked)
            limit = self.real_capability[queue]
            short = [
                name for name in asked if asked[name] > 0 and not holds(limit, {name: used[name]}, unset=_UNLIMITED)
            ]
            if short:
                return ", ".join(f"insufficient {name}" for name in sorted(short)) + f" in queue {queue}"
        return ""

    def may_lose(self, queue: str) -> bool:
        deserved = self.deserved[queue]
        return any(
            amount > 0 and (deserved.get(name, 0) <= 0 or amount - deserved[name] >= NEGLIGIBLE)
            for name, amount in self.session.accounts.allocated(queue).items()
            if name != PODS
        )

    def reclaimable(self, claimant: PodOfJob, candidates: Sequence[PodOfJob]) -> list[PodOfJob]:
        session = self.session
        wanted = {name for name, amount in claimant.amounts.items() if amount > 0 and name != PODS}
        left: dict[str, dict[str, float]] = {}
        found: list[PodOfJob] = []
        # An ancestor of both queues keeps what moves from one to the other.
        shared = set(session.forest.path(session.jobs[claimant.job].queue))
        for pod in candidates:
            resources = [name for name, amount in pod.amounts.items() if amount > 0 and name != PODS]
            if wanted.isdisjoint(resources):
                continue
            queue = session.jobs[pod.job].queue
            path = [name for name in self._checked(queue) if name not in shared]
            for name in path:
                if name not in left:
                    left[name] = dict(session.accounts.allocated(name))
            if not all(self._keeps_guarantee(name, left[name], pod.amounts) for name in path):
                continue
            judged = [name for name in self._judged(queue) if name not in shared]
            if all(self._is_beyond(name, left[name], resources) for name in judged):
                found.append(pod)
                for name in path:
                    for each, amount in pod.amounts.items():
                        left[name][each] = left[name].get(each, 0.0) - amount
        return found

    def _keeps_guarantee(self, queue: str, allocated: Figures, amounts: Figures) -> bool:
        guarantee = self.session.forest.queues[queue].guarantee
        return all(
            amount - (allocated.get(name, 0) - amounts.get(name, 0)) < NEGLIGIBLE for name, amount in guarantee.items()
        )

    def _is_beyond(self, queue: str, allocated: Figures, resources: Sequence[str]) -> bool:
        """Whether the queue deserves none of the resources, or has more than it deserves of one."""
        deserved = self.deserved[queue]
        if not any(deserved.get(name, 0) > 0 for name in resources):
            return True
        return any(allocated.get(name, 0) - deserved.get(name, 0) >= NEGLIGIBLE for name in resources)

    def _checked(self, queue: str) -> list[str]:
        """The queues whose capability counts: in a tree also the ancestors."""
        path = self.session.forest.path(queue) if self.is_tree else (queue,)
        return [name for name in path if name in self.real_capability]

    def _judged(self, queue: str) -> list[str]:
        """The queues whose deserved amounts count."""
        path = [name for name in self._checked(queue) if name != ROOT_QUEUE]
        return path[: self._levels + 1] if self._levels >= 0 else path


def real_capabilities(forest: QueueForest, total: Figures, *, is_tree: bool) -> dict[str, Mapping[str, float]]:
    """By queue: what it may use at most. In a tree a queue may use what its parent may use, less the guarantees of its
    siblings, and the root is unlimited; otherwise all queues divide the cluster."""
    if not is_tree:
        guaranteed = _sum(queue.guarantee for queue in forest.queues.values())
        return {
            queue.name: real_capability(queue.capability, queue.guarantee, total, guaranteed)
            for queue in forest.queues.values()
        }
    found: dict[str, Mapping[str, float]] = {}
    root = forest.queues.get(ROOT_QUEUE)
    limit_of_root = dict(root.capability) if root is not None else {}
    if root is not None:
        found[ROOT_QUEUE] = limit_of_root
    # What is guaranteed must exist: where the root declares no capability, it has what the nodes offer.
    promised = _sum(child.guarantee for child in forest.children(ROOT_QUEUE))
    limit_of_root = {**{name: total.get(name, 0.0) for name, amount in promised.items() if amount > 0}, **limit_of_root}
    above: list[tuple[str, Mapping[str, float]]] = [(ROOT_QUEUE, limit_of_root)]
    while above:
        parent, limit = above.pop()
        children = forest.children(parent)
        guaranteed = _sum(child.guarantee for child in children)
        for child in children:
            if child.name not in found:
                found[child.name] = real_capability(child.capability, child.guarantee, limit, guaranteed)
                above.append((child.name, found[child.name]))
    for queue in forest.queues.values():
        # Not below the root: such a queue takes no jobs.
        found.setdefault(queue.name, queue.capability)
    return found


def _sum(amounts: Iterable[Figures]) -> dict[str, float]:
    total: dict[str, float] = {}
    for each in amounts:
        for name, amount in each.items():
            total[name] = total.get(name, 0.0) + amount
    return total
