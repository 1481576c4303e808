"""Provides the facts as they will be when all terminating pods have left, for actions that evict and promise.

Opened once for an action. What was decided is carried out on the facts of now when it closes: victims are terminating
but keep their devices, claimants are nominated to theirs.
"""

from __future__ import annotations

import numpy as np

from shoal.engine.device_demand import DeviceGrant
from shoal.engine.fitter import seeded_number
from shoal.engine.plan import Evict, Nominate
from shoal.engine.queues.disciplines.volcano.jobs import PodOfJob
from shoal.engine.queues.disciplines.volcano.session import Mark, Session

ViewMark = tuple[Mark, int, int]


class AfterDepartures:
    """The view of one action."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.evicted: list[tuple[PodOfJob, str]] = []
        self._promised: list[tuple[str, int, DeviceGrant | None]] = []
        self._start = session.state.ledger.mark()
        self._has_terminating = bool(session.cluster.terminating)
        for pod in list(session.cluster.terminating):
            session.state.ledger.evict(pod)

    @property
    def has_departures(self) -> bool:
        """Whether any pod leaves; otherwise what fits in this view fits now, and is the work of `allocate`."""
        return self._has_terminating or bool(self.evicted)

    def mark(self) -> ViewMark:
        return self.session.mark(), len(self.evicted), len(self._promised)

    def rollback(self, mark: ViewMark) -> None:
        self.session.rollback(mark[0])
        del self.evicted[mark[1] :]
        del self._promised[mark[2] :]

    def evict(self, pod: PodOfJob, beneficiary: str) -> None:
        self.session.state.ledger.evict(pod.key)
        self.session.note_evicted(pod)
        self.evicted.append((pod, beneficiary))

    def fits(self, pod: PodOfJob, row: int) -> tuple[int, DeviceGrant | None] | None:
        """The row with the devices that the pod would get there."""
        state = self.session.state
        waiting = self.session.cluster.pending[pod.key]
        chance = seeded_number(state.fitter.seed, pod.key) if state.placement.at_random else 0
        return state.placement.choose(waiting.charge, chance, waiting.who, np.array([row], np.int64))

    def promise(self, pod: PodOfJob, row: int, grant: DeviceGrant | None) -> None:
        self.session.state.ledger.place(pod.key, row, grant)
        self.session.note_pipelined(pod)
        self._promised.append((pod.key, row, grant))

    def promise_placed(self, ledger_mark: int, pods: dict[str, PodOfJob]) -> None:
        """The ledger has placed pods in this view since the mark."""
        session = self.session
        for key in session.state.ledger.placed_since(ledger_mark):
            allocation = session.cluster.pods[key]
            session.note_pipelined(pods[key])
            self._promised.append((key, allocation.row, allocation.grant))

    def close(self) -> None:
        """Back to now; what was decided happens there."""
        state = self.session.state
        state.ledger.rollback(self._start)
        for pod, beneficiary in self.evicted:
            state.ledger.mark_terminating(pod.key)
            state.intentions.append(Evict(pod.key, beneficiary))
        for key, row, grant in self._promised:
            state.ledger.place(key, row, grant, nominated=True)
            state.intentions.append(Nominate(key, self.session.cluster.names[row], grant))
            state.made_again += key in state.renewed
