"""Lets the steps of a queue discipline choose nodes by a profile of their own, whatever profile the cycle has.

Volcano and KAI place the pods of their queues by their own scores. The profile applies while a step of the discipline
runs, and to no other step of the cycle.

Guarantees: manifests, a running cluster and a simulation prefer the same nodes, because no caller provides the profile.

Rejected: profiles that requests name. Everything that turns objects into facts would have to find the pods of the
discipline, and report them again when a configuration changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from shoal.engine.cycle_state import CycleState
from shoal.engine.fitter import Fitter
from shoal.engine.placement import Placement
from shoal.engine.profile import Profile


class OwnPreferences:
    """The placement of one discipline."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._placement: Placement | None = None

    def put(self, profile: Profile) -> None:
        """From the next step on."""
        self._profile, self._placement = profile, None

    @contextmanager
    def within(self, state: CycleState) -> Iterator[None]:
        """The placement and the fitter of the cycle are those of the discipline."""
        placement, fitter = state.placement, state.fitter
        state.placement = self._over(placement)
        state.fitter = Fitter(state.placement, state.ledger, fitter.seed)
        try:
            yield
        finally:
            state.placement, state.fitter = placement, fitter

    def _over(self, usual: Placement) -> Placement:
        if self._placement is None or self._placement.cluster is not usual.cluster:
            self._placement = usual.with_profile(self._profile)
        return self._placement
