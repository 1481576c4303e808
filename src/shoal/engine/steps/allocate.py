"""Whoever waits is tried in order; what fits is placed, what fits as soon as others have left is promised its place."""

from __future__ import annotations

from functools import partial

from shoal.engine.gangs.attempt import is_running, place_gang
from shoal.engine.gangs.members import Gang
from shoal.engine.line import Line, gang_order
from shoal.engine.pending import MORE_SURPLUS, SURPLUS
from shoal.engine.plan import Place
from shoal.engine.reasons import Code
from shoal.engine.round import Round


def allocate(round_: Round) -> None:
    """The step."""
    cluster = round_.cluster
    fitter = round_.fitter
    placed = fitter.pod
    intentions = round_.intentions
    names, holdings = cluster.names, cluster.pods
    line = Line(cluster)
    while (head := line.first()) is not None:
        _, _, key, what = head
        if isinstance(what, Gang):
            _gang(round_, line, what)
        elif placed(key):
            holding = holdings[key]
            intentions.append(Place(key, names[holding.row], holding.grant))
            line.helped()
        elif cluster.leaving and round_.promise(partial(placed, key), list(cluster.leaving)):
            line.helped()
        else:
            line.stuck()


def _gang(round_: Round, line: Line, gang: Gang) -> None:
    cluster = round_.cluster
    mark = round_.ledger.mark()

    def attempt() -> bool:
        round_.why[gang.name] = code = place_gang(round_.fitter, gang)
        return code is Code.PLACED

    ran = is_running(gang)
    if attempt():
        round_.place(round_.ledger.placed_since(mark))
    elif not (cluster.leaving and round_.promise(attempt, list(cluster.leaving))):
        line.stuck()
        return
    if gang.waiting:
        # Pods above the minimum come one by one, after every gang that has not got its minimum.
        line.again(gang_order(cluster, gang, MORE_SURPLUS if ran else SURPLUS))
    else:
        line.stuck()
