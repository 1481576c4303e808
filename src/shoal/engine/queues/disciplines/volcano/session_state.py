"""What plugins read of a session: facts, jobs, queues and amounts, and what the session has evicted so far."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from shoal.engine.cycle_state import CycleState
from shoal.engine.queues.disciplines.volcano.amounts import Figures
from shoal.engine.queues.disciplines.volcano.configuration import VolcanoConfiguration
from shoal.engine.queues.disciplines.volcano.jobs import JobFacts, JobState, PodOfJob
from shoal.engine.queues.disciplines.volcano.queue_accounts import QueueAccounts
from shoal.engine.queues.disciplines.volcano.queue_forest import QueueForest
from shoal.engine.queues.disciplines.volcano.session_facts import SessionFacts

Load = Mapping[str, Mapping[str, float]]


class VolcanoFacts(msgspec.Struct, frozen=True):
    """What the discipline reads beside the facts of the engine."""

    forest: QueueForest
    jobs: Mapping[str, JobFacts]
    node_load: Load = {}
    """Measured load of nodes in percent, by node and resource, for the plugin `usage`."""


class SessionState(ABC):
    def __init__(
        self, state: CycleState, facts: VolcanoFacts, configuration: VolcanoConfiguration, memory: dict[str, float]
    ) -> None:
        """`memory`: what plugins keep from one session to the next."""
        self.state = state
        self.cluster = state.cluster
        self.forest = facts.forest
        self.node_load = facts.node_load
        self.configuration = configuration
        self.memory = memory
        self.jobs: dict[str, JobState] = {}
        self.enqueued: dict[str, None] = {}
        """Jobs that the session admitted, in order."""
        self.refusals: dict[str, str] = {}
        """Job -> why the session did not start what it lacks."""
        self.log: list[tuple[str, JobState, PodOfJob]] = []
        reader = SessionFacts(self.cluster)
        for name, job_facts in facts.jobs.items():
            gang = self.cluster.gangs.find(name)
            if gang is not None:
                job = self.jobs[name] = JobState(job_facts, gang)
                reader.read(job)
        self.pods: Mapping[str, PodOfJob] = reader.pods
        """All pods of the jobs."""
        self.total: Figures = reader.total()
        self.accounts = QueueAccounts(self.forest, self.jobs.values())

    @abstractmethod
    def task_key(self, pod: PodOfJob) -> Any:
        """The order of pods within a job, by the plugins."""

    def within_budgets(self, pods: Sequence[PodOfJob]) -> list[PodOfJob]:
        """Without the pods whose disruption budgets allow no more evictions, in order."""
        budgets = self.cluster.budgets
        if not budgets:
            return list(pods)
        left = {name: budget.allowed - self._spent(budget.pods) for name, budget in budgets.items()}
        found: list[PodOfJob] = []
        for pod in pods:
            mine = [name for name, budget in budgets.items() if pod.key in budget.pods]
            if all(left[name] > 0 for name in mine):
                found.append(pod)
                for name in mine:
                    left[name] -= 1
        return found

    def _spent(self, pods: frozenset[str]) -> int:
        return sum(what == "evicted" and pod.key in pods for what, _, pod in self.log)
