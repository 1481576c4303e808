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


def allocate(round_: CycleState) -> None:
    """The step."""
    cluster = round_.cluster
    fitter = round_.fitter
    placed = fitter.pod
    intentions = round_.intentions
    names, allocations = cluster.names, cluster.pods
    line = SchedulingQueue(cluster)
    departures = Departures(cluster)
    while (head := line.first()) is not None and not round_.is_full():
        _, _, key, what = head
        if isinstance(what, Gang):
            _gang(round_, line, what, departures)
        elif placed(key):
            allocation = allocations[key]
            intentions.append(Place(key, names[allocation.row], allocation.grant))
            line.helped()
        elif cluster.terminating and _promise_pod(round_, departures, key):
            line.helped()
        else:
            line.stuck()


def _promise_pod(round_: CycleState, departures: Departures, pod: str) -> bool:
    """Promise the pod the node it was promised before, or else the best that there will be."""
    before = departures.nominated([pod])
    if len(before) and round_.nomination(partial(round_.fitter.pod, pod, before), departures.on(before)):
        return True
    rows = departures.hopeful(round_.cluster.pending[pod].charge)
    return bool(len(rows)) and round_.nomination(partial(round_.fitter.pod, pod, rows), departures.on(rows))


def _gang(round_: CycleState, line: SchedulingQueue, gang: Gang, departures: Departures) -> None:
    cluster = round_.cluster
    phase = gang_phase(cluster, gang)
    if not _step(round_, gang, phase) and not _promise(round_, gang, departures):
        line.stuck()
        return
    if gang.waiting:
        # Pods above the minimum come one by one, after every gang that has not got its minimum.
        line.again(gang_order(cluster, gang, SURPLUS if phase == USUAL else MORE_SURPLUS))
    else:
        line.helped()


def _step(round_: CycleState, gang: Gang, phase: int) -> bool:
    """Place what the gang needs, or one thing more, or, when it comes after all others, all that still fits."""
    if any(pod in round_.cluster.nominated for pod in gang.running):
        # Nothing beyond what it needs may run before that does.
        return False
    mark = round_.ledger.mark()
    attempt = Attempt(round_.fitter, gang)
    helped = _noted(round_, gang, attempt.step())
    if helped and phase == MORE_SURPLUS:
        while gang.waiting and attempt.step() is Code.PLACED:
            pass
    round_.place(round_.ledger.placed_since(mark))
    return helped


def _promise(round_: CycleState, gang: Gang, departures: Departures) -> bool:
    if not round_.cluster.terminating:
        return False
    before = departures.nominated(list(gang.waiting))
    if len(before) and round_.nomination(partial(_tried, round_, gang), departures.on(before)):
        return True
    return round_.nomination(partial(_tried, round_, gang), departures.all_pods())


def _tried(round_: CycleState, gang: Gang) -> bool:
    return _noted(round_, gang, place_gang(round_.fitter, gang))


def _noted(round_: CycleState, gang: Gang, code: Code) -> bool:
    round_.why[gang.name] = code
    return code is Code.PLACED
