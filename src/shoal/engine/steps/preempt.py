"""Preempts pods of lower priority for waiting pods, as few and as cheap ones as suffice.

No pod is evicted before the whole preemptor has been placed in its capacity, on the ledger, and each victim was found
necessary. The preemptor is nominated, and bound when the victims have gone.

A victim can never come back at its claimant's cost, because priorities are strict; and a claimant that was promised
capacity is held by the facts from then on, so it does not ask again.
"""

from __future__ import annotations

import math

from shoal.engine.cycle_state import CycleState, Step
from shoal.engine.preemption.after_terminations import AfterTerminations
from shoal.engine.preemption.candidates import Candidates
from shoal.engine.preemption.policy import VictimPolicy
from shoal.engine.preemption.preemptor import Preemptor
from shoal.engine.preemption.search import Search
from shoal.engine.preemption.step_base import PreemptionStepBase
from shoal.engine.preemption.victims import Victims

DEFAULT = VictimPolicy()


def preempt(policy: VictimPolicy = DEFAULT) -> Step:
    """The step under a policy."""

    def step(state: CycleState) -> None:
        _Preemption(state, policy).run()

    return step


class _Preemption(PreemptionStepBase):
    """One run of the step. The columns of candidates are created when first needed."""

    def __init__(self, state: CycleState, policy: VictimPolicy) -> None:
        super().__init__(state, policy)
        self._victims: Victims | None = None
        self._lowest: float | None = None

    def may_ask(self, claim: Preemptor, /) -> bool:
        return claim.preempts

    def free_capacity(self, claim: Preemptor, ahead: AfterTerminations) -> bool:
        if claim.priority <= self._floor():
            return False
        state, victims = self.round, self._candidates(ahead)
        eligible = victims.candidates.eligible(claim.priority, claim.queue, claim.name if claim.gang else "")
        if not eligible.any():
            return False
        search = Search(state.fitter, victims, claim, self.reaches)
        found = search.find(eligible, may_break=self.policy.may_break_budgets)
        if found is None:
            return False
        victims.take(found)
        mark = state.ledger.mark()
        if not claim.place(state.fitter):
            # Found by placing pod by pod where the gang's own order finds no way: then it does not help.
            victims.spare(found)
            return False
        ahead.nomination(mark)
        for index in victims.confirm():
            ahead.evict(victims.candidates.keys[index], claim.name)
        return True

    def _floor(self) -> float:
        """No pod is less important than this: most rounds have only equals, and need no columns to see it."""
        if self._lowest is None:
            cluster = self.round.cluster
            of_gangs = [gang.facts.priority for gang in cluster.gangs if gang.facts is not None]
            lowest = min((allocation.priority for allocation in cluster.pods.values()), default=math.inf)
            self._lowest = min([lowest, *(priority for priority in of_gangs if priority is not None)])
        return self._lowest

    def _candidates(self, ahead: AfterTerminations) -> Victims:
        if self._victims is None:
            state = self.round
            candidates = Candidates(state.cluster, self.policy, state.now_s, ahead.planned)
            self._victims = Victims(state.cluster, state.ledger, candidates)
        return self._victims
