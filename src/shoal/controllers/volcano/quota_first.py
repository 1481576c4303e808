"""Where nodes are too fragmented for a unit that has quota, the quota alone decides: it may look for a place like any
pod, and the scheduler says what it lacks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from shoal.engine.plan import Place
from shoal.engine.queues.facts import Admission, WorkloadFacts
from shoal.engine.queues.proof import Claim, Proof, Proven


class QuotaFirst:
    """A proof that never says no to a unit for its places; those that it finds are taken."""

    def __init__(self, proof: Proof) -> None:
        self._proof = proof

    def admit(self, facts: WorkloadFacts, admission: Admission, claims: Sequence[Claim] = ()) -> Proven:
        found = self._proof.admit(facts, admission, claims)
        return Proven.UNKNOWN if found is Proven.NO_ROOM else found

    def would_fit(
        self, facts: WorkloadFacts, admission: Admission, gone: Iterable[str], claims: Sequence[Claim] = ()
    ) -> bool:
        return self._proof.would_fit(facts, admission, gone, claims)

    def take(self) -> list[Place]:
        placed, self._proof.placed = self._proof.placed, []
        return placed
