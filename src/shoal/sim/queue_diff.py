"""Two futures side by side: who would start, stop or wait longer.

Compared are workloads that both worlds have. A start counts when it is admitted first, a stop whenever it has to make
room or is stopped. A workload may both start sooner and have to stop later on: it has one line, which names the loss.
Where one future was cut short, only what happens before that is compared.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from shoal.sim.queue_future import Future
from shoal.views.queue_diff import KINDS, Comparison, Fate, Halt, QueueChange

_SAME_S = 0.5
_IF_CUT = {"waits on": "waits longer", "starts": "starts sooner"}
"""A workload that has not started when a future is cut short may start later."""


class Queued(Protocol):
    """A workload, or a gang in a queue of KAI or Volcano."""

    @property
    def key(self) -> str: ...

    @property
    def queue(self) -> str: ...


def compare(now: Future, proposed: Future, before: Sequence[Queued], after: Sequence[Queued]) -> Comparison:
    """`before` and `after` are the workloads of the two worlds."""
    theirs = {facts.key: facts for facts in after}
    both = {facts.key: facts for facts in before if facts.key in theirs}
    changes = list(_changes(now, proposed, both))
    changed = {change.workload for change in changes}
    return Comparison(
        changes,
        unchanged=len(both) - len(changed),
        only_now=sorted(facts.key for facts in before if facts.key not in theirs),
        only_proposed=sorted(key for key in theirs if key not in both),
        complete=now.is_quiet and proposed.is_quiet,
    )


def _changes(now: Future, proposed: Future, both: Mapping[str, Queued]) -> Iterator[QueueChange]:
    until_s = min(now.until_s, proposed.until_s)
    for key, facts in sorted(both.items()):
        fates = _fate(now, key, until_s), _fate(proposed, key, until_s)
        start = _start(*(fate.starts_after_s for fate in fates))
        if until_s < math.inf:
            start = _IF_CUT.get(start, start)
        kinds = {start, _halts(*fates, until_s)}
        told = next((kind for kind in KINDS if kind in kinds), "")
        if told:
            yield QueueChange(key, facts.queue, told, *fates)


def _halts(now: Fate, proposed: Fate, until_s: float) -> str:
    """Of those that start under both; the others have not run, or have nothing to be compared with."""
    if now.starts_after_s is None or proposed.starts_after_s is None:
        return ""
    if not (now.stops and proposed.stops):
        return "stops" if proposed.stops else "runs on" if now.stops else ""
    ends_now, ends_proposed = (fate.stops[-1].back_s is None for fate in (now, proposed))
    if ends_now != ends_proposed and until_s == math.inf:
        return "stays stopped" if ends_proposed else "comes back"
    more = len(proposed.stops) - len(now.stops)
    return "stops more" if more > 0 else "stops less" if more < 0 else ""


def _start(now_s: float | None, proposed_s: float | None) -> str:
    if now_s is None or proposed_s is None:
        return "" if now_s == proposed_s else "starts" if now_s is None else "waits on"
    if abs(now_s - proposed_s) < _SAME_S:
        return ""
    return "starts sooner" if proposed_s < now_s else "waits longer"


def _fate(future: Future, key: str, until_s: float) -> Fate:
    start_s = future.starts.get(key)
    known = [each for each in future.stops.get(key, ()) if each.after_s <= until_s]
    return Fate(
        key in future.ran,
        start_s if start_s is not None and start_s <= until_s else None,
        [Halt(each.after_s, each.beneficiary, each.reason, each.back_s) for each in known],
    )
