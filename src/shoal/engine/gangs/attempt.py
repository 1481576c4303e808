"""All or nothing: a gang's missing pods are placed together, or none is."""

from __future__ import annotations

from shoal.engine.fitter import Fitter
from shoal.engine.gangs.members import Gang
from shoal.engine.reasons import Code


def place_gang(fitter: Fitter, gang: Gang) -> Code:
    """Place what the gang needs to run (or, once it runs, one pod more); tells what came of it."""
    if gang.facts is None:
        return Code.GANG_UNKNOWN
    pending = fitter.cluster.pending
    pods = sorted(gang.waiting, key=lambda pod: (pending[pod].who.order, pending[pod].order))
    missing = gang.facts.minimum - len(gang.running)
    if missing > len(pods):
        return Code.GANG_TOO_SMALL
    mark = fitter.ledger.mark()
    placed = 0
    for pod in pods:
        placed += fitter.pod(pod)
        if placed >= max(missing, 1):
            return Code.PLACED
    fitter.ledger.rollback(mark)
    return Code.GANG


def is_running(gang: Gang) -> bool:
    """Whether the gang has all it needs to run."""
    return gang.facts is not None and len(gang.running) >= gang.facts.minimum
