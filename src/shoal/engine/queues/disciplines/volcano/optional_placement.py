"""Wraps the placement proof so that a missing placement does not keep a unit from its quota.

If the nodes are too fragmented for a unit that has quota, the scheduler looks for nodes as for any pod and reports what
is missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from shoal.engine.plan import Place
from shoal.engine.queues.facts import QuotaAssignment, WorkloadFacts
from shoal.engine.queues.proof import Claim, Proof, Proven


class OptionalPlacementProof:
    """A placement proof that never refuses a unit for lack of nodes; the placements that it finds are used."""

    def __init__(self, proof: Proof) -> None:
        self._proof = proof

    def admit(self, facts: WorkloadFacts, admission: QuotaAssignment, claims: Sequence[Claim] = ()) -> Proven:
        found = self._proof.admit(facts, admission, claims)
        return Proven.UNKNOWN if found is Proven.NO_CAPACITY else found

    def would_fit(
        self, facts: WorkloadFacts, admission: QuotaAssignment, ended: Iterable[str], claims: Sequence[Claim] = ()
    ) -> bool:
        return self._proof.would_fit(facts, admission, ended, claims)

    def take(self) -> list[Place]:
        placed, self._proof.placed = self._proof.placed, []
        return placed
