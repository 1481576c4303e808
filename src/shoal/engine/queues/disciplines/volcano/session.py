"""Represents one scheduling session of Volcano: jobs, queues and plugins, and what the actions have changed so far.

A session is opened from the facts at the first action of a cycle and lives until its last. Every change is recorded, so
that a failed trial leaves neither the ledger nor the amounts of a queue changed.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from shoal.engine.cycle_state import CycleState
from shoal.engine.device_demand import DeviceGrant
from shoal.engine.plan import Nominate
from shoal.engine.queues.disciplines.volcano.configuration import VolcanoConfiguration
from shoal.engine.queues.disciplines.volcano.hooks import Hooks
from shoal.engine.queues.disciplines.volcano.jobs import JobState, PodOfJob
from shoal.engine.queues.disciplines.volcano.plugins import made_plugins
from shoal.engine.queues.disciplines.volcano.session_state import SessionState, VolcanoFacts

Mark = tuple[int, int, int]


class Session(Hooks, SessionState):
    """What the actions of one cycle share."""

    def __init__(
        self, state: CycleState, facts: VolcanoFacts, configuration: VolcanoConfiguration, memory: dict[str, float]
    ) -> None:
        SessionState.__init__(self, state, facts, configuration, memory)
        Hooks.__init__(self, made_plugins(self))

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
        return self.state.ledger.mark(), len(self.log), len(self.state.intentions)

    def rollback(self, mark: Mark) -> None:
        ledger_mark, log_mark, intentions = mark
        while len(self.log) > log_mark:
            self._undo(*self.log.pop())
        self.state.ledger.rollback(ledger_mark)
        del self.state.intentions[intentions:]

    def note_placed(self, pod: PodOfJob) -> None:
        """The ledger has given the pod a node."""
        job = self.jobs[pod.job]
        job.pending.pop(pod.key, None)
        job.best_effort.pop(pod.key, None)
        job.add_ready(pod)
        self.accounts.charge(job.queue, pod.amounts)
        self.log.append(("placed", job, pod))

    def note_pipelined(self, pod: PodOfJob) -> None:
        """The pod was promised capacity that others will free."""
        job = self.jobs[pod.job]
        job.pending.pop(pod.key, None)
        job.best_effort.pop(pod.key, None)
        job.add_pipelined(pod)
        self.accounts.charge(job.queue, pod.amounts)
        self.log.append(("pipelined", job, pod))

    def note_evicted(self, pod: PodOfJob) -> None:
        """The pod is to leave its node."""
        job = self.jobs[pod.job]
        job.drop_ready(pod)
        self.accounts.charge(job.queue, pod.amounts, -1)
        self.log.append(("evicted", job, pod))

    def promise(self, pod: PodOfJob, row: int, grant: DeviceGrant | None) -> None:
        """Nominate the pod for a row."""
        state = self.state
        state.ledger.place(pod.key, row, grant, nominated=True)
        state.intentions.append(Nominate(pod.key, self.cluster.names[row], grant))
        state.made_again += pod.key in state.renewed
        self.note_pipelined(pod)

    def _undo(self, what: str, job: JobState, pod: PodOfJob) -> None:
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
