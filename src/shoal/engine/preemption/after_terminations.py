"""Provides the facts as they will be after all terminations; a step tries its preemptors on them.

Opened once per step, so that thousands of leaving pods are taken off their nodes once and not once per claimant. What
was decided is carried out on the facts of now when it closes: victims are terminating but hold their devices,
preemptors are nominated to theirs.
"""

from __future__ import annotations

import msgspec

from shoal.engine.cycle_state import CycleState
from shoal.engine.device_demand import DeviceGrant
from shoal.engine.plan import Evict, Move, Nominate, Place
from shoal.engine.pods import PodAllocation, PodState
from shoal.engine.preemption.preemptor import Preemptor

Destination = tuple[str, int, DeviceGrant | None]


class AfterTerminations:
    """The facts after all terminations for one step, on the ledger of the cycle."""

    def __init__(self, state: CycleState) -> None:
        self._state = state
        ledger = state.ledger
        self._mark = ledger.mark()
        self._destinations: list[Destination] = []
        self._leave: list[Evict | Move] = []
        self._withdraw: list[str] = []
        self.planned = {intention.pod for intention in state.intentions if isinstance(intention, Place | Nominate)}
        """Pods that found their place in this round: they have not started, and need not."""
        self._left = {pod: state.cluster.pods[pod] for pod in state.cluster.terminating}
        for pod in self._left:
            ledger.evict(pod)
        self._arrived = [self._arrive(move) for move in state.intentions if isinstance(move, Move)]
        """Moved earlier in this round: in this view they are on their new nodes, so that their capacity is not taken.
        """

    @property
    def departs(self) -> bool:
        """Whether these facts differ from those of now: some pod has left its place."""
        return bool(self._left or self._leave or self._withdraw)

    def fits(self, claim: Preemptor) -> bool | None:
        """Whether the claimant finds its place ahead, where it is then promised; None when it would find it now."""
        ledger = self._state.ledger
        mark = ledger.mark()
        if not claim.place(self._state.fitter):
            return False
        if not self.departs:
            ledger.rollback(mark)
            return None
        self.nomination(mark)
        return True

    def _arrive(self, move: Move) -> str:
        cluster = self._state.cluster
        allocation = self._left[move.pod]
        row = cluster.row_of[move.target]
        # A pod that was just moved is not evicted as well.
        who = msgspec.structs.replace(allocation.who, is_preemptible=False)
        cluster.hold(
            move.pod,
            PodAllocation(row, allocation.charge, move.grant, allocation.priority, None, PodState.ASSUMED, who=who),
        )
        return move.pod

    def nomination(self, mark: int) -> None:
        """Nominate the preemptor's pods, placed since the mark, for their places."""
        cluster = self._state.cluster
        for pod in self._state.ledger.placed_since(mark):
            allocation = cluster.pods[pod]
            self._destinations.append((pod, allocation.row, allocation.grant))

    def evict(self, pod: str, beneficiary: str) -> None:
        """Record a victim, which is removed from these facts, to be evicted or not to be started."""
        if pod in self.planned:
            self._withdraw.append(pod)
        else:
            self._leave.append(Evict(pod, beneficiary))

    def move(self, moves: list[Move], destinations: list[Destination]) -> None:
        """Pods, elsewhere in this view, are to end where they are; the claimant's are promised their places."""
        self._leave += moves
        self._destinations += destinations

    def close(self) -> None:
        """Back to now; what was decided happens there."""
        state = self._state
        ledger, names = state.ledger, state.cluster.names
        for pod in self._arrived:
            state.cluster.release(pod)
        ledger.rollback(self._mark)
        if self._withdraw:
            withdrawn = set(self._withdraw)
            state.intentions[:] = [
                intention
                for intention in state.intentions
                if not (isinstance(intention, Place | Nominate) and intention.pod in withdrawn)
            ]
            for pod in self._withdraw:
                ledger.withdraw(pod)
        for intention in self._leave:
            ledger.mark_terminating(intention.pod)
            state.intentions.append(intention)
        for pod, row, grant in self._destinations:
            ledger.place(pod, row, grant, nominated=True)
            state.intentions.append(Nominate(pod, names[row], grant))
            state.made_again += pod in state.renewed
