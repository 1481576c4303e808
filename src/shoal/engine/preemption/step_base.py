"""Runs preemption as a step of the cycle: pending pods that may preempt are tried in turn, on the facts after all
terminations.

Shared by preemption and consolidation: the view ahead, opened for the first preemptor and closed after the last. A pod
that fits in it without victims is nominated, or skipped if it would fit now.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from shoal.engine.cycle_state import CycleState
from shoal.engine.preemption.after_terminations import AfterTerminations
from shoal.engine.preemption.capacity_bounds import FeasibleRows
from shoal.engine.preemption.policy import VictimPolicy
from shoal.engine.preemption.preemptor import Preemptor
from shoal.engine.preemption.preemptors import preemptors_in_order


class PreemptionStepBase(ABC):
    """One run of such a step."""

    def __init__(self, round_: CycleState, policy: VictimPolicy) -> None:
        self.round = round_
        self.policy = policy
        self.reaches = FeasibleRows(round_.cluster)
        self._ahead: AfterTerminations | None = None

    def run(self) -> None:
        kept = self.round.kept
        preemptors_in_order(
            self.round.cluster, self.ask, may_ask=lambda claim: claim.name not in kept and self.may_ask(claim)
        )
        self.close()

    def close(self) -> None:
        """What was decided for the preemptors becomes part of the plan."""
        if self._ahead is not None:
            self._ahead.close()

    def may_ask(self, _claim: Preemptor, /) -> bool:
        """Whether the claimant may have capacity made for it at all."""
        return True

    @abstractmethod
    def free_capacity(self, claim: Preemptor, ahead: AfterTerminations) -> bool:
        """Victims are needed for the preemptor; the result is recorded in the view ahead."""

    def ask(self, claim: Preemptor) -> bool:
        """Whether the preemptor was nominated, or fits now."""
        if self._ahead is None:
            self._ahead = AfterTerminations(self.round)
        # An earlier preemptor may have freed more than it needed. Free room is assigned by another step.
        fits = self._ahead.fits(claim)
        return self.free_capacity(claim, self._ahead) if fits is False else fits is True
