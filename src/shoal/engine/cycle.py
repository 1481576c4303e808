"""Runs one scheduling cycle: the steps of a discipline in order, then a refusal for each pending pod not yet reported.

The facts already count the placements when the plan is handed out ("assumed"), so the next cycle does not give the
same device away again; the world confirms with `PodBound` or takes back with `PodRejected`. Same facts, same seed:
same plan. A cycle in which a step raises an exception decides nothing, and leaves the facts as they were.
"""

from __future__ import annotations

from collections.abc import Sequence

from shoal.engine.cluster import Cluster
from shoal.engine.cycle_state import CycleState, Step
from shoal.engine.fitter import Fitter
from shoal.engine.ledger import Ledger
from shoal.engine.placement import Placement
from shoal.engine.plan import Plan, Refuse, RefuseGroup
from shoal.engine.reasons import Code
from shoal.engine.steps.allocate import allocate
from shoal.engine.steps.consolidate import consolidate
from shoal.engine.steps.preempt import preempt

STEPS: tuple[Step, ...] = (allocate, consolidate(), preempt())
"""The default steps: no pod is preempted where moving other pods suffices."""


def cycle(
    cluster: Cluster,
    placement: Placement,
    *,
    now_s: float,
    seed: int,
    steps: Sequence[Step] = STEPS,
    most: int | None = None,
) -> Plan:
    """Decide for all waiting pods; with `most`, until so many have been placed: the next cycle goes on from there."""
    cluster.refusing.expire(now_s)
    version = cluster.version
    placement.renew()
    ledger = Ledger(cluster)
    try:
        state = CycleState(cluster, placement, ledger, Fitter(placement, ledger, seed), now_s, most=most)
        _withdraw_nominations(state)
        for step in steps:
            if not state.is_cut:
                step(state)
        if not state.is_cut:
            _refuse_pending(state, cluster.pending.take_fresh())
    except Exception:
        # The plan is not returned, so its decisions must not stay in the facts.
        ledger.rollback()
        raise
    ledger.commit()
    return Plan(now_s, version, tuple(state.intentions), state.is_cut)


def _withdraw_nominations(state: CycleState) -> None:
    """Withdraw all nominations, to decide them again: the capacity may be free by now, or on another node."""
    state.renewed = frozenset(state.cluster.nominated)
    for pod in state.renewed:
        state.ledger.withdraw(pod)


def _refuse_pending(state: CycleState, fresh: list[str]) -> None:
    cluster = state.cluster
    code = Code.NOWHERE if cluster.row_of else Code.NO_NODES
    refused: set[str] = set()
    for pod in fresh:
        if pod not in cluster.pending:
            continue
        group = cluster.pending[pod].who.group
        if not group:
            state.intentions.append(Refuse(pod, code))
        elif group not in refused:
            refused.add(group)
            state.intentions.append(RefuseGroup(group, state.why.get(group, Code.GANG)))
