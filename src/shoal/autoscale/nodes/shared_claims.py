"""Keeps pods that share a resource claim on one node of a plan.

The first pod of a claim decides where its devices are, so all pods of the plan that share it are placed at once, on a
node that takes all of them. Only where none does, they are placed one by one. On nodes that exist the allocator knows
which claims are allocated; planned nodes are compared by the record here, because each of them is tried apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from shoal.autoscale.nodes.pod_variants import PlannedPod
from shoal.engine.cluster import Cluster


class SharedClaimPlaces:
    """Where the shared claims of one planning are."""

    def __init__(self, existing: Cluster) -> None:
        self._existing = existing
        self._peers: dict[str, list[PlannedPod]] = {}
        """By claim."""
        self._home: dict[str, str] = {}
        """The planned node with the claim's devices."""
        self._placed: set[str] = set()
        self._gang: dict[str, int] = {}
        """The number of the gang, of pods that are placed with others or not at all."""

    def begin(self, units: Iterable[Sequence[PlannedPod]]) -> None:
        """Another attempt with these pods."""
        self._peers, self._home, self._placed, self._gang = {}, {}, set(), {}
        for number, unit in enumerate(units):
            for pod in unit:
                if pod.shared_claims and len(unit) > 1:
                    self._gang[pod.key] = number
                for claim in pod.shared_claims:
                    self._peers.setdefault(claim, []).append(pod)

    def is_placed(self, pod: PlannedPod) -> bool:
        """Whether it was placed together with another one."""
        return pod.key in self._placed

    def peers(self, pod: PlannedPod) -> list[PlannedPod]:
        """The pod and those that share a claim with it and are on no node yet; empty if there is nothing to share. A
        member of a gang is placed with the gang.
        """
        claims = [claim for claim in pod.shared_claims if not self._is_allocated(claim)]
        found = {each.key: each for claim in claims for each in self._peers.get(claim, ())}
        found = {key: each for key, each in found.items() if self._gang.get(key) in (None, self._gang.get(pod.key))}
        return list(found.values()) if len(found) > 1 else []

    def refusal(self, pod: PlannedPod, node: str | None) -> str:
        """Why the pod may not be placed on this planned node (None: on one that exists); empty if it may."""
        for claim in pod.shared_claims:
            home = self._home.get(claim)
            if home is not None and home != node:
                return f"claim {claim} is allocated to devices of another planned node"
            if home is None and node is not None and self._is_on_existing(claim):
                return f"claim {claim} is allocated to devices of a node that exists"
        return ""

    def record(self, pod: PlannedPod, node: str | None) -> Callable[[], None]:
        """The pod is placed on a planned node, or on one that exists (None); returns what undoes that."""
        before = dict(self._home) if node is not None and pod.shared_claims else None
        if before is not None and node is not None:
            self._home |= dict.fromkeys(pod.shared_claims, node)
        if pod.shared_claims:
            self._placed.add(pod.key)

        def undo() -> None:
            self._placed.discard(pod.key)
            if before is not None:
                self._home = before

        return undo

    def _is_allocated(self, claim: str) -> bool:
        return claim in self._home or self._is_on_existing(claim)

    def _is_on_existing(self, claim: str) -> bool:
        found = self._existing.dra.shared.find(claim)
        return found is not None and bool(found.uses) and not found.reported
