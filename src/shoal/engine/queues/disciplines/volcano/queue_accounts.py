"""Adds up what each queue and its descendants use, request, have admitted, and use beyond the minima of their jobs."""

from __future__ import annotations

from collections.abc import Iterable

from shoal.engine.queues.disciplines.volcano.amounts import Figures
from shoal.engine.queues.disciplines.volcano.jobs import JobState
from shoal.engine.queues.disciplines.volcano.queue_forest import QueueForest

ByQueue = dict[str, dict[str, float]]
_NONE: Figures = {}


class QueueAccounts:
    """The sums by queue; a queue's amounts are part of its ancestors' amounts."""

    def __init__(self, forest: QueueForest, jobs: Iterable[JobState]) -> None:
        self._forest = forest
        self._allocated: ByQueue = {}
        self._request: ByQueue = {}
        self._reserved: ByQueue = {}
        self._surplus: ByQueue = {}
        self.in_use: dict[str, None] = {}
        """Queues with jobs."""
        for job in jobs:
            self.in_use[job.queue] = None
            if job.allocated:
                self.charge(job.queue, job.allocated)
            request = dict(job.allocated)
            for pod in (*job.pending.values(), *job.best_effort.values()):
                for name, amount in pod.amounts.items():
                    request[name] = request.get(name, 0) + amount
            self._add(self._request, job.queue, request)
            least = job.facts.min_resources or _NONE
            if job.allocated:
                self._add(self._surplus, job.queue, _beyond(least, job.allocated))
            if least and job.reserves:
                self._add(self._reserved, job.queue, _beyond(job.allocated, least))

    def add_pod(self, queue: str, amounts: Figures) -> None:
        """A running pod that belongs to no job."""
        self.in_use[queue] = None
        self.charge(queue, amounts)
        self._add(self._request, queue, amounts)

    def allocated(self, queue: str) -> Figures:
        return self._allocated.get(queue, _NONE)

    def request(self, queue: str) -> Figures:
        """Allocated and pending."""
        return self._request.get(queue, _NONE)

    def reserved(self, queue: str) -> Figures:
        """What admitted jobs have not allocated yet of their `minResources`."""
        return self._reserved.get(queue, _NONE)

    def surplus(self, queue: str) -> Figures:
        """What jobs have allocated beyond their `minResources`."""
        return self._surplus.get(queue, _NONE)

    def charge(self, queue: str, amounts: Figures, sign: int = 1) -> None:
        self._add(self._allocated, queue, amounts, sign)

    def reserve(self, job: JobState) -> None:
        """The job is admitted in this session."""
        self._add(self._reserved, job.queue, _beyond(job.allocated, job.facts.min_resources or _NONE))

    def after_admission(self, queue: str, asked: Figures) -> dict[str, float]:
        """What would count against the capability of the queue with one more job."""
        allocated, reserved, surplus = self.allocated(queue), self.reserved(queue), self.surplus(queue)
        return {
            name: amount + allocated.get(name, 0) + reserved.get(name, 0) - surplus.get(name, 0)
            for name, amount in asked.items()
        }

    def _add(self, sums: ByQueue, queue: str, amounts: Figures, sign: int = 1) -> None:
        for name in self._forest.path(queue):
            total = sums.get(name)
            if total is None:
                total = sums[name] = {}
            for resource, amount in amounts.items():
                total[resource] = total.get(resource, 0) + sign * amount


def _beyond(limit: Figures, amounts: Figures) -> dict[str, float]:
    """What the amounts exceed the limit by."""
    return {name: amount - limit.get(name, 0) for name, amount in amounts.items() if amount > limit.get(name, 0)}
