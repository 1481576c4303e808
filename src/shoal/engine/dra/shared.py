"""Tracks claims that have a name of their own: where each is allocated, and which pods use it.

A claim is allocated as long as its allocation is in use: pods on nodes, by our plan or the world's, and beside
them the reservations and the allocation in its status. With the last of them it is free again. Several
allocations of one claim can be held at a time, while one pod leaves and another was promised its place: a pod with
the claim then has to be where all of them can be used.

Rejected: one allocation and a number of users. Undoing a trial that let the last user go cannot tell what to restore.
"""

from __future__ import annotations

from shoal.engine.dra.requests import ClaimFacts, ClaimGrant, Picks
from shoal.engine.dra.usage import Usage

MOST_CONSUMERS = 256


class SharedClaim:
    """One claim."""

    __slots__ = ("facts", "holders", "is_kept", "reported", "reserved", "uses")

    def __init__(self) -> None:
        self.facts: ClaimFacts | None = None
        self.holders: dict[str, Picks] = {}
        self.reserved: set[str] = set()
        """Pods with a reservation in the status that we do not see on a node."""
        self.is_kept = False
        """It was allocated before it was reserved for a pod, and stays so until the allocation is removed."""
        self.reported: Picks = ()
        """The allocation in the status, while it counts as a use."""
        self.uses: dict[Picks, int] = {}

    @property
    def consumers(self) -> int:
        return len(self.reserved | self.holders.keys())

    def state(self) -> tuple[frozenset[Picks], bool]:
        """All that a further pod has to know; one more user beside the others is no news."""
        return frozenset(self.uses), self.consumers >= MOST_CONSUMERS

    @property
    def allocation(self) -> Picks | None:
        """The one that a further pod shares; None while there is none."""
        if not self.uses:
            return None
        return self.reported or min(self.uses)


class SharedClaims:
    """All of them."""

    def __init__(self, usage: Usage) -> None:
        self._usage = usage
        self._claims: dict[str, SharedClaim] = {}
        self._reserved_by: dict[str, set[str]] = {}
        """Pod -> claims."""
        self.version = 0

    def find(self, key: str) -> SharedClaim | None:
        return self._claims.get(key)

    def put(self, facts: ClaimFacts) -> bool:
        """A claim appeared, or its status changed; whether it is news."""
        claim = self._of(facts.key)
        if claim.facts == facts:
            return False
        self._forget_reservations(facts.key, claim)
        claim.facts = facts
        # A pod that we see with this very allocation needs no reservation to be counted.
        claim.reserved = {pod for pod in facts.reserved if claim.holders.get(pod, ()) != (facts.allocation or ())}
        for pod in claim.reserved:
            self._reserved_by.setdefault(pod, set()).add(facts.key)
        claim.is_kept = facts.allocation is not None and not facts.reserved
        self._update_reported(claim)
        return True

    def drop(self, key: str) -> bool:
        """A claim was deleted; pods that hold it still hold its devices. False when none was known."""
        claim = self._claims.get(key)
        if claim is None or claim.facts is None:
            return False
        self._forget_reservations(key, claim)
        claim.facts = None
        claim.is_kept = False
        self._update_reported(claim)
        self._forget_unused(key, claim)
        return True

    def take(self, pod: str, grant: ClaimGrant) -> None:
        """A pod holds the claim."""
        claim = self._of(grant.shared)
        before = claim.state()
        claim.holders[pod] = grant.picks
        self._use(claim, grant.picks, 1)
        self.version += claim.state() != before

    def give(self, pod: str, grant: ClaimGrant) -> None:
        """Exactly undo `take`."""
        claim = self._claims[grant.shared]
        before = claim.state()
        del claim.holders[pod]
        self._use(claim, grant.picks, -1)
        self._forget_unused(grant.shared, claim)
        self.version += claim.state() != before

    def release_reservations(self, pod: str) -> None:
        """The pod is seen on a node, or is gone: its reservations say nothing any more."""
        for key in self._reserved_by.pop(pod, ()):
            claim = self._claims[key]
            claim.reserved.discard(pod)
            self._update_reported(claim)

    def in_use(self) -> dict[str, tuple[dict[Picks, int], dict[str, Picks]]]:
        """A copy for comparison."""
        return {
            key: (dict(claim.uses), dict(sorted(claim.holders.items()))) for key, claim in sorted(self._claims.items())
        }

    def _of(self, key: str) -> SharedClaim:
        claim = self._claims.get(key)
        if claim is None:
            claim = self._claims[key] = SharedClaim()
        return claim

    def _update_reported(self, claim: SharedClaim) -> None:
        """The allocation of the status counts while a pod outside may be using it."""
        allocation = claim.facts.allocation if claim.facts is not None else None
        reported = (allocation or ()) if claim.reserved or claim.is_kept else ()
        if reported != claim.reported:
            before, claim.reported = claim.reported, reported
            self._use(claim, reported, 1)
            self._use(claim, before, -1)
        self.version += 1

    def _use(self, claim: SharedClaim, picks: Picks, sign: int) -> None:
        if not picks:
            return
        before = claim.uses.get(picks, 0)
        if before + sign:
            claim.uses[picks] = before + sign
        else:
            del claim.uses[picks]
        if before == 0:
            self._usage.take(picks)
        elif before + sign == 0:
            self._usage.give(picks)

    def _forget_reservations(self, key: str, claim: SharedClaim) -> None:
        for pod in claim.reserved:
            claims = self._reserved_by[pod]
            claims.discard(key)
            if not claims:
                del self._reserved_by[pod]
        claim.reserved = set()

    def _forget_unused(self, key: str, claim: SharedClaim) -> None:
        if claim.facts is None and not claim.holders and not claim.reserved:
            del self._claims[key]
