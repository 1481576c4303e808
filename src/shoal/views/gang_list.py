"""Lists all gangs: pending ones first with the reason, then running ones.

Why one waits is found by trying, a moment each; after the first few dozen the list says no more than that they wait.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from rich.console import Console
from rich.text import Text

from shoal.engine.cluster import Cluster
from shoal.engine.evidence import Evidences
from shoal.engine.fitter import Fitter
from shoal.engine.gang_members import Gang
from shoal.engine.gangs.attempt import is_running
from shoal.engine.gangs.evidence import group_evidence
from shoal.engine.ledger import Ledger
from shoal.engine.placement import Placement
from shoal.engine.reasons import Code
from shoal.views.gangs import gang_code, gang_message, lost_pods, lost_words
from shoal.views.queue_table import KIND, NAME, NUMBER, WORDS, Cell, show_table

_MOST_TRIED = 32
MOST_LINES = 40
_STYLES = {"waits": "red", "queued": "yellow", "nominated": "cyan", "runs": "green", "empty": "dim"}
"""In the order of the list."""


class GangLine(msgspec.Struct, frozen=True):
    gang: str
    state: str
    """`waits`, `queued` (a queue keeps its pods back), `nominated` (preempted pods are leaving its nodes), `runs`, or
    `empty`: none of its pods is there."""
    needs: int
    """Pods that must run together; 0 where nothing says so yet."""
    running: int
    waiting: int
    gpus: float
    """That its pods ask for or hold."""
    queue: str
    nodes: int
    code: str
    """Why it waits, or runs with fewer pods than it needs; empty where it does neither, or where there are too many to
    try all."""
    message: str


def gangs_of(placement: Placement, seed: int) -> list[GangLine]:
    """As the facts are."""
    placement.renew()
    cluster: Cluster = placement.cluster
    fitter = Fitter(placement, Ledger(cluster), seed)
    evidences = Evidences(cluster)
    lines = []
    tried = 0
    for gang in sorted(cluster.gangs, key=lambda each: each.name):
        code = message = ""
        if gang.waiting and not is_running(cluster, gang) and tried < _MOST_TRIED:
            tried += 1
            found = group_evidence(fitter, gang)
            waiting = cluster.pending[found.pod]
            evidence = evidences.of(waiting.charge.ask, waiting.who)
            code, message = str(gang_code(found, evidence)), gang_message(found, evidence)
        elif lost := lost_pods(cluster, gang):
            code, message = str(Code.GANG_TOO_SMALL), lost_words(lost)
        lines.append(_line(cluster, gang, code, message))
    return sorted(lines, key=gang_order)


def gang_order(line: GangLine) -> tuple[int, str]:
    return list(_STYLES).index(line.state), line.gang


def _line(cluster: Cluster, gang: Gang, code: str, message: str) -> GangLine:
    charges = [cluster.pods[pod].charge for pod in gang.running] + [cluster.pending[pod].charge for pod in gang.waiting]
    who = [cluster.pods[pod].who for pod in gang.running] + [cluster.pending[pod].who for pod in gang.waiting]
    is_nominated = any(pod in cluster.nominated for pod in gang.running)
    runs = is_running(cluster, gang) or lost_pods(cluster, gang) > 0
    state = "waits" if not runs else "nominated" if is_nominated else "runs"
    state = state if charges else "empty"
    return GangLine(
        gang=gang.name,
        state=state,
        needs=0 if gang.facts is None else gang.facts.minimum,
        running=len(gang.running),
        waiting=len(gang.waiting),
        gpus=round(sum(charge.gpu_milli for charge in charges) / 1000, 3),
        queue=next((each.queue for each in who if each.queue), ""),
        nodes=len({cluster.pods[pod].row for pod in gang.running}),
        code=code,
        message=message,
    )


def show_gangs(
    console: Console, gangs: Sequence[GangLine], *, is_wide: bool = False, most: int | None = MOST_LINES
) -> None:
    headings = ["gang", "state", "needs", "run", "wait", "GPUs", "because"]
    leasts = [NAME, KIND, NUMBER, NUMBER, NUMBER, NUMBER, WORDS]
    if is_wide:
        # What may be long comes last.
        headings[-1:-1] = ["nodes", "queue"]
        leasts[-1:-1] = [NUMBER, KIND]
    shown = gangs if is_wide else gangs[:most]
    show_table(console, headings, leasts, [_row(gang, is_wide=is_wide) for gang in shown])
    if len(gangs) > len(shown):
        console.print(Text(f"and {len(gangs) - len(shown):,} more; -o wide or -o json has them all", "dim"))


def _row(gang: GangLine, *, is_wide: bool) -> list[Cell]:
    because = f"{gang.code}: {gang.message}" if is_wide and gang.message else gang.code
    if not is_wide and not gang.running and not gang.waiting and gang.needs:
        because = f"{gang.code}, 0 of {gang.needs:,} pods exist".removeprefix(", ")
    elif is_wide and gang.message and not gang.code:
        because = gang.message
    if gang.code == Code.PLACED:
        because = "it fits by now"
    more: list[Cell] = [f"{gang.nodes:,}", gang.queue] if is_wide else []
    return [
        gang.gang,
        Text(gang.state, _STYLES[gang.state]),
        "?" if gang.code == Code.GANG_MALFORMED else f"{gang.needs:,}",
        f"{gang.running:,}",
        f"{gang.waiting:,}",
        f"{gang.gpus:,.2f}".rstrip("0").rstrip("."),
        *more,
        because,
    ]
