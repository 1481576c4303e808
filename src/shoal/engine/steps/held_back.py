"""Lets pods ask for a step only after they have waited for some time, in which a node may be provisioned for them.

The time counts from the first cycle in which the pod or gang waits: after a restart of the scheduler it counts anew, so
that a step is never taken too early.
"""

from __future__ import annotations

from shoal.engine.cycle_state import CycleState, Step


class HeldBack:
    """A step; pods that wait for less than the time are kept from it."""

    def __init__(self, step: Step, wait_s: float) -> None:
        self._step = step
        self._wait_s = wait_s
        self._since_s: dict[str, float] = {}
        """By pod, or by gang."""

    def __call__(self, state: CycleState) -> None:
        cluster, now_s = state.cluster, state.now_s
        waiting = [key for key in cluster.pending.in_order() if not cluster.pending[key].who.group]
        waiting += [gang.name for gang in cluster.gangs if gang.waiting]
        self._since_s = {name: self._since_s.get(name, now_s) for name in waiting}
        early = {name for name, since_s in self._since_s.items() if now_s - since_s < self._wait_s}
        if len(early) == len(waiting):
            return
        kept = state.kept
        state.kept = kept | early
        try:
            self._step(state)
        finally:
            state.kept = kept
