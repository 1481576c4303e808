"""Shows what other quotas would change, as a document and as a table: workloads that would stop, start, or wait
longer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec
from rich.console import Console
from rich.text import Text

from shoal.views.queue_table import NAME, WORDS, show_table

MOST_LINES = 40
_HEADINGS = ("workload", "", "now", "proposed")
_MINUTE, _HOUR, _DAY = 60, 3600, 86_400
KINDS = {
    "waits on": ("would not start any more", "red"),
    "stops": ("would stop", "red"),
    "stays stopped": ("would stop for good", "red"),
    "stops more": ("would stop more often", "yellow"),
    "waits longer": ("would wait longer", "yellow"),
    "starts": ("would start", "green"),
    "comes back": ("would come back after its stop", "green"),
    "runs on": ("would not be stopped any more", "green"),
    "stops less": ("would stop less often", "green"),
    "starts sooner": ("would start sooner", "green"),
}
"""How a fate may change, in the order in which they are told: losses first."""


class Halt(msgspec.Struct, frozen=True, rename={"after_s": "after", "beneficiary": "for", "back_s": "back"}):
    """It has to stop, after so many seconds."""

    after_s: float
    beneficiary: str
    """The workload it is preempted for; empty if there is none."""
    reason: str
    back_s: float | None = None
    """When it starts again; None where nothing that is known lets it."""


class Fate(msgspec.Struct, frozen=True, rename={"starts_after_s": "startsAfter"}):
    running: bool
    """It runs already."""
    starts_after_s: float | None
    """Seconds from now; None where nothing that is known lets it start."""
    stops: list[Halt]


class QueueChange(msgspec.Struct, frozen=True):
    workload: str
    queue: str
    change: str
    """One of `KINDS`."""
    now: Fate
    proposed: Fate


class Comparison(msgspec.Struct, frozen=True, rename="camel"):
    changes: list[QueueChange]
    unchanged: int
    only_now: list[str]
    only_proposed: list[str]
    complete: bool
    """False where a future was cut short, because too much happened in it."""


def show_comparison(console: Console, comparison: Comparison) -> None:
    console.print(_headline(comparison), soft_wrap=True)
    rank = {kind: number for number, kind in enumerate(KINDS)}
    changes = sorted(comparison.changes, key=lambda each: (rank[each.change], each.workload))
    if changes:
        console.print()
        show_table(console, _HEADINGS, [NAME, WORDS, WORDS, WORDS], _rows(changes[:MOST_LINES]))
    if len(changes) > MOST_LINES:
        console.print(Text(f"and {len(changes) - MOST_LINES:,} more; -o json has them all", "dim"))
    for words, names in (("now", comparison.only_now), ("proposed", comparison.only_proposed)):
        if names:
            console.print(Text(f"{len(names):,} among the {words} manifests only, and not compared", "dim"))
    if not comparison.complete:
        console.print(Text("cut short: there are too many events to show all of them", "yellow"))


def _headline(comparison: Comparison) -> Text:
    counts = Counter(change.change for change in comparison.changes)
    parts = [Text(f"{counts[kind]:,} {words}", style) for kind, (words, style) in KINDS.items() if counts[kind]]
    parts.append(Text(f"{comparison.unchanged:,} as before", "dim"))
    return Text(", ").join(parts)


def _rows(changes: Sequence[QueueChange]) -> list[list[Text]]:
    return [
        [Text(each.workload), Text(*KINDS[each.change]), Text(fate_words(each.now)), Text(fate_words(each.proposed))]
        for each in changes
    ]


def fate_words(fate: Fate) -> str:
    """`starts at once`, `stops in 3 h for team-a/train (...), then waits, no end known`."""
    parts = ([] if fate.running and fate.stops else [_start(fate)]) + ([_stops(fate.stops)] if fate.stops else [])
    return ", ".join(parts)


def _start(fate: Fate) -> str:
    if fate.running:
        return "runs on"
    if fate.starts_after_s is None:
        return "waits, no end known"
    return f"starts {_when(fate.starts_after_s)}"


def _stops(stops: Sequence[Halt]) -> str:
    first, more = stops[0], len(stops) - 1
    cause = f" for {first.beneficiary}" if first.beneficiary else ""
    often = f" and {more:,} more time{'' if more == 1 else 's'}" if more else ""
    end = stops[-1].back_s
    then = "then waits, no end known" if end is None else f"starts again {_when(end)}"
    return f"stops {_when(first.after_s)}{cause} ({first.reason}){often}, {then}"


def _when(after_s: float) -> str:
    return "at once" if after_s < 1 else f"in {span(after_s)}"


def span(seconds: float) -> str:
    """Two units at most: `3 d 4 h`, `5 h 30 min`, `40 s`."""
    whole = round(seconds)
    if whole < _MINUTE:
        return f"{whole} s"
    for size, name, smaller, small in ((_DAY, "d", _HOUR, "h"), (_HOUR, "h", _MINUTE, "min"), (_MINUTE, "min", 1, "s")):
        if whole >= size:
            rest = whole % size // smaller
            return f"{whole // size:,} {name}" + (f" {rest} {small}" if rest else "")
    return f"{whole} s"
