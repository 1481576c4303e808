"""One round: the steps of a discipline in order, then word to everybody who still waits and has not been told.

The facts already count the placements when the plan is handed out ("assumed"), so the next round does not give the
same device away again; the world confirms with `PodBound` or takes back with `PodRejected`. Same facts, same seed:
same plan. A round in which a step breaks decides nothing, and leaves the facts as they were.
"""

from __future__ import annotations

from collections.abc import Sequence

from shoal.engine.cluster import Cluster
from shoal.engine.fitter import Fitter
from shoal.engine.ledger import Ledger
from shoal.engine.placement import Placement
from shoal.engine.plan import Plan, Refuse, RefuseGroup
from shoal.engine.reasons import Code
from shoal.engine.round import Round, Step
from shoal.engine.steps.allocate import allocate
from shoal.engine.steps.consolidate import consolidate
from shoal.engine.steps.preempt import preempt

STEPS: tuple[Step, ...] = (allocate, consolidate(), preempt())
"""What a round does by default: nobody is told to yield where moving others does."""


def cycle(
    cluster: Cluster,
    placement: Placement,
    *,
    now_s: float,
    seed: int,
    steps: Sequence[Step] = STEPS,
    most: int | None = None,
) -> Plan:
    """Decide for all waiting pods; with `most`, until so many have been placed: the next round goes on from there."""
    cluster.refusing.expire(now_s)
    version = cluster.version
    placement.renew()
    ledger = Ledger(cluster)
    fresh = cluster.pending.take_fresh()
    try:
        round_ = Round(cluster, placement, ledger, Fitter(placement, ledger, seed), now_s, most=most)
        _look_again_at_promises(round_)
        for step in steps:
            if not round_.is_cut:
                step(round_)
        if round_.is_cut:
            cluster.pending.still_fresh(fresh)
        else:
            _tell(round_, fresh)
    except Exception:
        # Nobody is told of what was decided until then: in the facts it would stand for ever.
        ledger.rollback()
        cluster.pending.still_fresh(fresh)
        raise
    ledger.commit()
    return Plan(now_s, version, tuple(round_.intentions), round_.is_cut)


def _look_again_at_promises(round_: Round) -> None:
    """Whoever was promised room is tried again: the room may be free by now, or somewhere else."""
    round_.renewed = frozenset(round_.cluster.promised)
    for pod in round_.renewed:
        round_.ledger.withdraw(pod)


def _tell(round_: Round, fresh: list[str]) -> None:
    cluster = round_.cluster
    code = Code.NOWHERE if cluster.row_of else Code.NO_NODES
    told: set[str] = set()
    for pod in fresh:
        if pod not in cluster.pending:
            continue
        group = cluster.pending[pod].who.group
        if not group:
            round_.intentions.append(Refuse(pod, code))
        elif group not in told:
            told.add(group)
            round_.intentions.append(RefuseGroup(group, round_.why.get(group, Code.GANG)))
