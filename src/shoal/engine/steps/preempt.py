"""Whoever still waits and may, makes others of lower priority yield, as few and as cheap ones as will do.

Nobody is made to yield before the whole claimant has been placed where they stood, on the ledger, and every victim has
been found necessary. The claimant is promised the room; it is bound when they have left.

A victim can never come back at its claimant's cost, because priorities are strict; and a claimant that was promised
room is held by the facts from then on, so it does not ask again.
"""

from __future__ import annotations

import math

from shoal.engine.preemption.aftermath import Aftermath
from shoal.engine.preemption.candidates import Candidates
from shoal.engine.preemption.claim import Claim
from shoal.engine.preemption.claims import hear
from shoal.engine.preemption.policy import VictimPolicy
from shoal.engine.preemption.reach import Reaches
from shoal.engine.preemption.search import Search
from shoal.engine.preemption.victims import Victims
from shoal.engine.round import Round, Step

DEFAULT = VictimPolicy()


def preempt(policy: VictimPolicy = DEFAULT) -> Step:
    """The step under a policy."""

    def step(round_: Round) -> None:
        _Preemption(round_, policy).run()

    return step


class _Preemption:
    """One run of the step. The view ahead and the columns are made when somebody first needs them."""

    def __init__(self, round_: Round, policy: VictimPolicy) -> None:
        self._round = round_
        self._policy = policy
        self._ahead: Aftermath | None = None
        self._victims: Victims | None = None
        self._lowest: float | None = None
        self._reaches = Reaches(round_.cluster)

    def run(self) -> None:
        hear(self._round.cluster, self._ask, may_ask=lambda claim: claim.preempts)
        if self._ahead is not None:
            self._ahead.close()

    def _floor(self) -> float:
        """No pod is less important than this: most rounds have only equals, and need no columns to see it."""
        if self._lowest is None:
            cluster = self._round.cluster
            of_gangs = [gang.facts.priority for gang in cluster.gangs if gang.facts is not None]
            lowest = min((holding.priority for holding in cluster.pods.values()), default=math.inf)
            self._lowest = min([lowest, *(priority for priority in of_gangs if priority is not None)])
        return self._lowest

    def _ask(self, claim: Claim) -> bool:
        round_ = self._round
        if self._ahead is None:
            self._ahead = Aftermath(round_)
        # Somebody before may have freed more than it needed.
        fits = self._ahead.fits(claim)
        if fits is not False:
            # Where there is room now, nobody need yield: that is for another step to give away.
            return fits is True
        victims = self._victims
        if claim.priority <= self._floor():
            return False
        if victims is None:
            candidates = Candidates(round_.cluster, self._policy, round_.now_s, self._ahead.planned)
            victims = self._victims = Victims(round_.cluster, round_.ledger, candidates)
        eligible = victims.candidates.eligible(claim.priority, claim.queue, claim.name if claim.gang else "")
        if not eligible.any():
            return False
        search = Search(round_.fitter, victims, claim, self._reaches)
        found = search.find(eligible, may_break=self._policy.may_break_budgets)
        if found is None:
            return False
        victims.take(found)
        mark = round_.ledger.mark()
        if not claim.place(round_.fitter):
            # Found by placing pod by pod where the gang's own order finds no way: then it does not help.
            victims.spare(found)
            return False
        self._ahead.promise(mark)
        for index in victims.settle():
            self._ahead.evict(victims.candidates.keys[index], claim.name)
        return True
