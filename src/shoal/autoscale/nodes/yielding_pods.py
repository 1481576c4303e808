"""Finds waiting units for which the scheduler will move pods, or will have pods yield, once these have run for the
minimum runtime.

What it can do at once the scheduler has done before it refused a pod. So only where there is a minimum runtime, the
steps of a scheduling cycle are tried as of a later moment, on the ledger of the facts, and everything is rolled back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from shoal.api.run_configuration import FreeingStep
from shoal.autoscale.nodes.before_provisioning import FreeingPolicy, WaitingUnit
from shoal.engine.cluster import Cluster
from shoal.engine.cycle_state import CycleState, Step
from shoal.engine.fitter import Fitter
from shoal.engine.ledger import Ledger
from shoal.engine.placement import Placement
from shoal.engine.plan import Evict, Move, Nominate
from shoal.engine.profile import Profile
from shoal.engine.steps.allocate import allocate
from shoal.engine.steps.consolidate import consolidate
from shoal.engine.steps.preempt import preempt

_MOST_UNITS: Final = 64
"""The others are planned as without a step: the search for victims is the most expensive part of a cycle."""


def freed_by_pods(
    cluster: Cluster, units: Sequence[WaitingUnit], policy: FreeingPolicy, now_s: float
) -> Mapping[FreeingStep, Mapping[str, float]]:
    """By step and name of the unit, when the last of the pods that have to leave may leave."""
    units = [unit for unit in units if unit.is_of(policy.schedulers)][:_MOST_UNITS]
    steps = [(name, step) for name in policy.order if (step := _step(name, policy)) is not None]
    waits = [(name, step) for name, step in steps if any(now_s < u.since_s + policy.timeouts_s[name] for u in units)]
    if not policy.victims.min_runtime_s or not waits:
        return {}
    ledger = Ledger(cluster)
    placement = Placement(cluster, Profile("First"))
    placement.renew()
    try:
        state = CycleState(cluster, placement, ledger, Fitter(placement, ledger, 0), now_s)
        allocate(state)
        asking = {unit.name for unit in units}
        waiting = {*cluster.pending.in_order(), *(gang.name for gang in cluster.gangs)}
        state.kept = frozenset(waiting - asking)
        found: dict[FreeingStep, Mapping[str, float]] = {}
        for name, step in waits:
            state.now_s = now_s + policy.timeouts_s[name]
            before = len(state.intentions)
            step(state)
            found[name] = _due(cluster, units, state.intentions[before:], policy)
        return found
    finally:
        ledger.rollback()


def _step(name: FreeingStep, policy: FreeingPolicy) -> Step | None:
    if name == "reclaim":
        return preempt(policy.victims)
    return consolidate(policy.victims) if name == "consolidate" and policy.has_moves else None


def _due(
    cluster: Cluster, units: Iterable[WaitingUnit], intentions: Iterable[object], policy: FreeingPolicy
) -> dict[str, float]:
    served = {each.pod for each in intentions if isinstance(each, Nominate)}
    leaving: dict[str, float] = {}
    for each in intentions:
        if isinstance(each, Evict | Move):
            may_leave_s = cluster.pods[each.pod].who.since_s + policy.victims.min_runtime_s
            leaving[each.beneficiary] = max(leaving.get(each.beneficiary, 0.0), may_leave_s)
    return {
        unit.name: leaving[unit.name]
        for unit in units
        if unit.name in leaving and any(key in served for key in unit.keys)
    }
