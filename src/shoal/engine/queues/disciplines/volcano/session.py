"""Represents one scheduling session of Volcano: jobs, queues and plugins, and what the actions have changed so far.

A session is opened from the facts at the first action of a cycle and lives until its last. Every change is recorded, so
that a failed trial leaves neither the ledger nor the amounts of a queue changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from shoal.engine.cycle_state import CycleState
from shoal.engine.device_demand import DeviceGrant
from shoal.engine.plan import Nominate
from shoal.engine.queues.disciplines.volcano.amounts import Figures
from shoal.engine.queues.disciplines.volcano.configuration import VolcanoConfiguration
from shoal.engine.queues.disciplines.volcano.hooks import Hooks
from shoal.engine.queues.disciplines.volcano.jobs import JobFacts, JobState, PodOfJob
from shoal.engine.queues.disciplines.volcano.plugins import made_plugins
from shoal.engine.queues.disciplines.volcano.queue_accounts import QueueAccounts
from shoal.engine.queues.disciplines.volcano.queue_forest import QueueForest
from shoal.engine.queues.disciplines.volcano.session_facts import SessionFacts

Mark = tuple[int, int, int]


class VolcanoFacts(msgspec.Struct, frozen=True):
    """What the discipline reads beside the facts of the engine."""

    forest: QueueForest
    jobs: Mapping[str, JobFacts]
    ungrouped: Mapping[str, str] = {}
    """Running pods whose groups are not known yet, with the queues in which they count."""


class Session(Hooks):
    """What the actions of one cycle share."""

    def __init__(
        self, state: CycleState, facts: VolcanoFacts, configuration: VolcanoConfiguration, memory: dict[str, float]
    ) -> None:
        """`memory`: what plugins keep from one session to the next."""
        self.state = state
        self.cluster = state.cluster
        self.forest = facts.forest
        self.configuration = configuration
        self.memory = memory
        self.jobs: dict[str, JobState] = {}
        self.enqueued: dict[str, None] = {}
        """Jobs that the session admitted, in order."""
        self.refusals: dict[str, str] = {}
        """Job -> why the session did not start what it lacks."""
        self.is_final = True
        """Whether the next one decides nothing if the last cycle of this has not and nothing changes: not where earlier
        cycles of it have, nor where pods keep their places only until their bindings are confirmed."""
        self.unfinished: object = None
        """The run of an action that the limit of its cycle has cut."""
        self._log: list[tuple[str, JobState, PodOfJob]] = []
        self.changed_jobs: set[str] = set()
        """Jobs whose pods changed since a reader cleared it."""
        reader = SessionFacts(self.cluster, state.now_s, self.forest.protected)
        for name, job_facts in facts.jobs.items():
            gang = self.cluster.gangs.find(name)
            if gang is not None:
                job = self.jobs[name] = JobState(job_facts, gang)
                reader.read(job)
        self.pods: Mapping[str, PodOfJob] = reader.pods
        """All pods of the jobs."""
        self.total: Figures = reader.total()
        self.accounts = QueueAccounts(self.forest, self.jobs.values())
        for key, queue in facts.ungrouped.items():
            allocation = self.cluster.pods.get(key)
            if allocation is not None and key not in reader.pods and key not in self.cluster.terminating:
                self.accounts.add_pod(queue, reader.amounts_of(allocation.charge))
        super().__init__(made_plugins(self, configuration.tiers))

    def resume(self, state: CycleState) -> None:
        """Go on in the next cycle: this one ended before all jobs were looked at, and nothing has changed since."""
        state.why.update(self.state.why)
        self.state = state
        self.is_final = False
        self._log.clear()

    @property
    def now_s(self) -> float:
        return self.state.now_s

    def valid_jobs(self) -> Iterable[JobState]:
        """Jobs that are admitted and may be looked at; the others are refused with their reason."""
        needs_admission = "enqueue" in self.configuration.actions
        for job in self.jobs.values():
            if needs_admission and not job.facts.is_enqueued and job.name not in self.enqueued:
                continue
            if fault := self.forest.refusal(job.queue):
                self.refusals[job.name] = fault
                continue
            yield job

    # -- changes ----------------------------------------------------------------------------------------------------

    def mark(self) -> Mark:
        return self.state.ledger.mark(), len(self._log), len(self.state.intentions)

    def rollback(self, mark: Mark) -> None:
        ledger_mark, log_mark, intentions = mark
        while len(self._log) > log_mark:
            self._undo(*self._log.pop())
        self.state.ledger.rollback(ledger_mark)
        del self.state.intentions[intentions:]

    def note_placed(self, pod: PodOfJob) -> None:
        """The ledger has given the pod a node."""
        job = self.jobs[pod.job]
        job.pending.pop(pod.key, None)
        job.best_effort.pop(pod.key, None)
        job.add_ready(pod)
        self.accounts.charge(job.queue, pod.amounts)
        self._note("placed", job, pod)

    def note_pipelined(self, pod: PodOfJob) -> None:
        """The pod was promised capacity that others will free."""
        job = self.jobs[pod.job]
        job.pending.pop(pod.key, None)
        job.best_effort.pop(pod.key, None)
        job.add_pipelined(pod)
        self.accounts.charge(job.queue, pod.amounts)
        self._note("pipelined", job, pod)

    def note_evicted(self, pod: PodOfJob) -> None:
        """The pod is to leave its node."""
        job = self.jobs[pod.job]
        job.drop_ready(pod)
        self.accounts.charge(job.queue, pod.amounts, -1)
        self._note("evicted", job, pod)

    def promise(self, pod: PodOfJob, row: int, grant: DeviceGrant | None) -> None:
        """Nominate the pod for a row."""
        state = self.state
        state.ledger.place(pod.key, row, grant, nominated=True)
        state.intentions.append(Nominate(pod.key, self.cluster.names[row], grant))
        state.made_again += pod.key in state.renewed
        self.note_pipelined(pod)

    def _note(self, what: str, job: JobState, pod: PodOfJob) -> None:
        self._log.append((what, job, pod))
        self.changed_jobs.add(job.name)

    def _undo(self, what: str, job: JobState, pod: PodOfJob) -> None:
        self.changed_jobs.add(job.name)
        if what == "evicted":
            job.add_ready(pod)
            self.accounts.charge(job.queue, pod.amounts)
            return
        if what == "placed":
            job.drop_ready(pod)
        else:
            job.drop_pipelined(pod)
        (job.best_effort if pod.is_best_effort else job.pending)[pod.key] = pod
        self.accounts.charge(job.queue, pod.amounts, -1)

    # -- nodes ------------------------------------------------------------------------------------------------------

    def rows_for(self, pod: PodOfJob) -> NDArray[np.int64] | None:
        """The rows of nodes on which the plugins let the pod run; None for all."""
        mask: NDArray[np.bool_] | None = None
        for plugin in self.having("Predicate"):
            found = plugin.rows(pod)
            if found is not None:
                mask = found if mask is None else mask & found
        return None if mask is None else mask.nonzero()[0]

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
        return sum(what == "evicted" and pod.key in pods for what, _, pod in self._log)
