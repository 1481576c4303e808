"""Tries waiting pods in order: places those that fit, nominates those that will fit after terminations."""

from __future__ import annotations

from functools import partial

from shoal.engine.cycle_state import CycleState
from shoal.engine.gang_members import Gang
from shoal.engine.gangs.attempt import Attempt, gang_phase, place_gang
from shoal.engine.pending import MORE_SURPLUS, SURPLUS, USUAL
from shoal.engine.plan import Place
from shoal.engine.reasons import Code
from shoal.engine.scheduling_queue import SchedulingQueue, gang_order
from shoal.engine.steps.departures import Departures


def allocate(state: CycleState) -> None:
    """The step."""
    cluster = state.cluster
    fitter = state.fitter
    placed = fitter.pod
    intentions = state.intentions
    names, allocations = cluster.names, cluster.pods
    queue = SchedulingQueue(cluster, state.kept)
    departures = Departures(cluster)
    while (head := queue.first()) is not None and not state.is_full():
        _, _, key, what = head
        if isinstance(what, Gang):
            _gang(state, queue, what, departures)
        elif placed(key):
            allocation = allocations[key]
            intentions.append(Place(key, names[allocation.row], allocation.grant))
            queue.helped()
        elif cluster.terminating and _nominate_pod(state, departures, key):
            queue.helped()
        else:
            queue.stuck()


def _nominate_pod(state: CycleState, departures: Departures, pod: str) -> bool:
    """Nominate the pod for the node of its earlier nomination, or else for the best node after all terminations."""
    before = departures.nominated([pod])
    if len(before) and state.nomination(partial(state.fitter.pod, pod, before), departures.on(before)):
        return True
    rows = departures.hopeful(state.cluster.pending[pod].charge)
    return bool(len(rows)) and state.nomination(partial(state.fitter.pod, pod, rows), departures.on(rows))


def _gang(state: CycleState, queue: SchedulingQueue, gang: Gang, departures: Departures) -> None:
    cluster = state.cluster
    phase = gang_phase(cluster, gang)
    if not _step(state, gang, phase) and not _nominate_gang(state, gang, departures):
        queue.stuck()
        return
    if gang.waiting:
        # Pods above the minimum come one by one, after every gang that has not got its minimum.
        queue.again(gang_order(cluster, gang, SURPLUS if phase == USUAL else MORE_SURPLUS))
    else:
        queue.helped()


def _step(state: CycleState, gang: Gang, phase: int) -> bool:
    """Place what the gang needs, or one thing more, or, when it comes after all others, all that still fits."""
    if any(pod in state.cluster.nominated for pod in gang.running):
        # Nothing beyond what it needs may run before that does.
        return False
    mark = state.ledger.mark()
    attempt = Attempt(state.fitter, gang)
    helped = _noted(state, gang, attempt.step())
    if helped and phase == MORE_SURPLUS:
        while gang.waiting and attempt.step() is Code.PLACED:
            pass
    state.place(state.ledger.placed_since(mark))
    return helped


def _nominate_gang(state: CycleState, gang: Gang, departures: Departures) -> bool:
    if not state.cluster.terminating:
        return False
    before = departures.nominated(list(gang.waiting))
    if len(before) and state.nomination(partial(_tried, state, gang), departures.on(before)):
        return True
    return state.nomination(partial(_tried, state, gang), departures.all_pods())


def _tried(state: CycleState, gang: Gang) -> bool:
    return _noted(state, gang, place_gang(state.fitter, gang))


def _noted(state: CycleState, gang: Gang, code: Code) -> bool:
    state.why[gang.name] = code
    return code is Code.PLACED
