"""Compares how long workloads waited for the quota of each queue with the SLO of the queue, and tells which queue
preempted workloads of which.

The page of queues shows the same lines as `shoal queue`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from decimal import Decimal

import msgspec
from rich.console import Console
from rich.text import Text

from shoal.cost.targets import breaches, wait_target
from shoal.engine.from_api.queues.wait_slo import WaitSlo
from shoal.views.queue_diff import span
from shoal.views.queue_history import QueueHistory, QueuePreemption
from shoal.views.queue_table import NAME, NUMBER, WORDS, Cell, show_table

TITLE = "Waits for quota, of the Workloads that the cluster still has"
_HOUR_S = 3600
_MOST_LINES = 40


class QueueWaitLine(msgspec.Struct, frozen=True, rename="camel"):
    queue: str
    """The ClusterQueue."""
    admitted: int
    """Workloads that got quota."""
    p50_seconds: float
    p95_seconds: float
    slo_seconds: float
    breach: str
    """What a P95 beyond the SLO usually means; empty where the SLO is kept."""
    fault: str
    """Of the annotation with the SLO, where the usual one counts instead of it."""

    @property
    def words(self) -> str:
        verdict = f"longer than the SLO: {self.breach}" if self.breach else "within the SLO"
        return f"{verdict}; {self.fault}" if self.fault else verdict


class PreemptionCount(msgspec.Struct, frozen=True, rename="camel"):
    by_queue: str
    """Empty where the condition of a Workload does not name it."""
    queue: str
    reason: str
    workloads: int


class QueueWaits(msgspec.Struct, frozen=True):
    waits: Sequence[QueueWaitLine] = ()
    preempted: Sequence[QueuePreemption] = ()

    @property
    def counts(self) -> list[PreemptionCount]:
        counts = Counter((one.by_queue, one.queue, one.reason) for one in self.preempted)
        return [PreemptionCount(*key, count) for key, count in sorted(counts.items())]

    def of(self, queues: Container[str]) -> QueueWaits:
        """Those of these ClusterQueues."""
        return QueueWaits(
            [one for one in self.waits if one.queue in queues],
            [one for one in self.preempted if one.queue in queues or one.by_queue in queues],
        )


def queue_waits(history: QueueHistory, goals: Mapping[str, WaitSlo]) -> QueueWaits:
    """`goals`: by ClusterQueue; the usual one for others."""
    hours = {queue: Decimal(str(wait.p95_s)) / _HOUR_S for queue, wait in history.waits.items()}
    found = {queue: goals.get(queue, WaitSlo()) for queue in hours}
    targets = [wait_target(queue, Decimal(str(goal.seconds)) / _HOUR_S) for queue, goal in found.items()]
    missed = {one.figure: one.reading for one in breaches(hours, targets)}
    lines = [
        QueueWaitLine(
            queue,
            wait.admitted,
            wait.p50_s,
            wait.p95_s,
            found[queue].seconds,
            missed.get(queue, ""),
            found[queue].fault,
        )
        for queue, wait in sorted(history.waits.items())
    ]
    return QueueWaits(lines, history.preemptions)


def show_waits(console: Console, found: QueueWaits) -> None:
    if found.waits:
        rows: list[list[Cell]] = [
            [
                one.queue,
                f"{one.admitted:,}",
                *(span(seconds) for seconds in (one.p50_seconds, one.p95_seconds, one.slo_seconds)),
                Text(one.words, "red" if one.breach else "yellow" if one.fault else "green"),
            ]
            for one in found.waits
        ]
        headings = ["queue", "got quota", "P50", "P95", "SLO", "P95 and SLO"]
        _show(console, TITLE, headings, [NAME, NUMBER, NUMBER, NUMBER, NUMBER, WORDS], rows)
    if found.preempted:
        taken: list[list[Cell]] = [
            [one.by_queue or "not known", one.queue, one.reason, f"{one.workloads:,}"] for one in found.counts
        ]
        title = "Which queue reclaims from which"
        _show(console, title, ["queue", "takes from", "reason", "workloads"], [NAME, NAME, WORDS, NUMBER], taken)
        named: list[list[Cell]] = [
            [one.workload, one.queue, one.by_queue or "not known", one.reason, one.at]
            for one in found.preempted[:_MOST_LINES]
        ]
        headings = ["workload", "queue", "for queue", "reason", "at"]
        _show(console, "Preempted Workloads", headings, [NAME, NAME, NAME, WORDS, NUMBER], named)
        if len(found.preempted) > _MOST_LINES:
            more = len(found.preempted) - _MOST_LINES
            console.print(Text(f"and {more:,} more; -o json has them all", "dim"))


def _show(
    console: Console, title: str, headings: Sequence[str], leasts: Sequence[int], rows: Iterable[Sequence[Cell]]
) -> None:
    console.print()
    console.print(Text(title, "bold"))
    show_table(console, headings, leasts, list(rows))
