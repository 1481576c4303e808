"""Moves pods so that a waiting pod fits where capacity is free but scattered.

No pod moves unless all moved pods and the waiting pod fit on the ledger at the same time. So each move helps a waiting
pod, and without waiting pods there are no moves: pods cannot move back and forth. A pod that moves
ends where it is and starts again elsewhere; what must yield together moves together, and budgets are kept.
"""

from __future__ import annotations

from collections.abc import Callable

from shoal.engine.cycle_state import CycleState, Step
from shoal.engine.pods import PodAllocation
from shoal.engine.preemption.after_terminations import AfterTerminations
from shoal.engine.preemption.candidates import Candidates, willing
from shoal.engine.preemption.moves import Moves, could_be_gathered
from shoal.engine.preemption.policy import Order, VictimPolicy
from shoal.engine.preemption.preemptor import Preemptor
from shoal.engine.preemption.step_base import PreemptionStepBase
from shoal.engine.preemption.victims import Victims

DEFAULT = VictimPolicy()
MayMove = Callable[[PodAllocation], bool]


def _always(_allocation: PodAllocation) -> bool:
    return True


def consolidate(policy: VictimPolicy = DEFAULT) -> Step:
    """The step, with a policy's minimum runtime and limit of moves; the fewest move, or the newest if it says so."""

    def step(state: CycleState) -> None:
        Consolidation(state, policy).run()

    return step


class Consolidation(PreemptionStepBase):
    """One run of the step: `run` tries all waiting pods. A queue discipline asks for its own, then closes the view."""

    def __init__(self, state: CycleState, policy: VictimPolicy = DEFAULT, may_move: MayMove = _always) -> None:
        super().__init__(state, policy)
        self._may_move = may_move
        self._victims: Victims | None = None
        self._waiting: list[Preemptor] = []
        """Waiting pods that could not be helped so far, the most important first."""

    def free_capacity(self, claim: Preemptor, ahead: AfterTerminations) -> bool:
        state = self.round
        if not could_be_gathered(state.cluster, claim):
            self._waiting.append(claim)
            return False
        victims = self._candidates(ahead)
        eligible = victims.candidates.eligible(None, None, claim.name if claim.gang else "")
        preemptors = [preemptor for preemptor in self._waiting if preemptor.priority > claim.priority]
        moves = Moves(state.fitter, victims, claim, self.reaches, preemptors)
        found = moves.find(eligible, self.policy.most_moves)
        if found is None:
            self._waiting.append(claim)
            return False
        victims.confirm()
        ahead.move(*found)
        return True

    def _candidates(self, ahead: AfterTerminations) -> Victims:
        if self._victims is None:
            state = self.round
            order = Order.NEWEST if self.policy.order is Order.NEWEST else Order.FEWEST
            policy = VictimPolicy(order, self.policy.min_runtime_s)
            movable = [
                key
                for key, allocation in willing(state.cluster)
                if allocation.is_bound
                and allocation.who.returns
                and key not in ahead.planned
                and self._may_move(allocation)
            ]
            candidates = Candidates(state.cluster, policy, state.now_s, pods=movable)
            self._victims = Victims(state.cluster, state.ledger, candidates)
        return self._victims
