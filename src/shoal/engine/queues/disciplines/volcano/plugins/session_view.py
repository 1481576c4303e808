"""Defines what plugins read of a session."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from shoal.engine.cluster import Cluster
from shoal.engine.queues.disciplines.volcano.amounts import Figures
from shoal.engine.queues.disciplines.volcano.jobs import JobState, PodOfJob
from shoal.engine.queues.disciplines.volcano.queue_accounts import QueueAccounts
from shoal.engine.queues.disciplines.volcano.queue_forest import QueueForest


class SessionView(Protocol):
    """The session as its plugins use it."""

    @property
    def cluster(self) -> Cluster: ...
    @property
    def now_s(self) -> float: ...
    @property
    def forest(self) -> QueueForest: ...
    @property
    def jobs(self) -> Mapping[str, JobState]: ...
    @property
    def accounts(self) -> QueueAccounts: ...
    @property
    def total(self) -> Figures:
        """What the nodes offer together."""
        ...

    @property
    def memory(self) -> dict[str, float]:
        """What plugins keep from one session to the next."""
        ...

    def within_budgets(self, pods: Sequence[PodOfJob], /) -> list[PodOfJob]: ...

    def task_key(self, pod: PodOfJob, /) -> tuple[Any, ...]: ...
