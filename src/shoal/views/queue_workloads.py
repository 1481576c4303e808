"""Lists workloads that hold quota and workloads that wait for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec
from rich.console import Console
from rich.text import Text

from shoal.engine.queues.clusterqueue import AdmittedWorkload
from shoal.views.decision import Reason
from shoal.views.queue_backlog import Number, Waiter, plain
from shoal.views.queue_table import NAME, WORDS, show_table
from shoal.views.resource_units import in_order, words

MOST_LINES = 40
ADMISSIBLE = "Admissible"
"""The code of those who would be admitted now."""


class Holding(msgspec.Struct, frozen=True):
    flavor: str
    resource: str
    amount: Number


class QuotaHolder(msgspec.Struct, frozen=True, rename="camel"):
    workload: str
    queue: str
    cluster_queue: str
    priority: int
    holds: list[Holding]
    state: str
    """`admitted`, `reserved` (its checks are not passed yet) or `ending`."""


class InLine(msgspec.Struct, frozen=True):
    workload: str
    queue: str
    state: str
    asks: dict[str, Number]
    reason: Reason


class Workloads(msgspec.Struct, frozen=True):
    holding: list[QuotaHolder] = []
    waiting: list[InLine] = []


def workloads_of(
    held: Iterable[AdmittedWorkload], waiters: Iterable[Waiter], reasons: Mapping[str, Reason]
) -> Workloads:
    """`reasons`: by workload, what would become of it now."""
    return Workloads(
        [_holder(each) for each in sorted(held, key=lambda each: (each.queue.name, -each.priority, each.key))],
        [
            InLine(
                each.workload,
                each.queue,
                "active" if each.waiting.state == "active" else "parked",
                {name: plain(name, amount) for name, amount in each.asked.items()},
                reasons[each.workload],
            )
            for each in waiters
        ],
    )


def _holder(held: AdmittedWorkload) -> QuotaHolder:
    state = "ending" if held.evicted else "admitted" if held.facts.admitted else "reserved"
    holds = [Holding(fr[0], fr[1], plain(fr[1], amount)) for fr, amount in sorted(held.usage.items()) if amount]
    return QuotaHolder(held.key, held.facts.queue, held.queue.name, held.priority, holds, state)


def show_workloads(console: Console, workloads: Workloads) -> None:
    if workloads.holding:
        rows = [(each.workload, each.cluster_queue, _held(each)) for each in workloads.holding]
        _table(console, "hold quota", "green", ("workload", "in", "holds"), rows)
    if workloads.waiting:
        waiting = [
            (each.workload, _amounts(each.asks), f"{each.reason.code}: {each.reason.message}")
            for each in workloads.waiting
        ]
        _table(console, "wait", "red", ("workload", "asks", "because"), waiting)


def _table(console: Console, heading: str, style: str, columns: Sequence[str], rows: Sequence[tuple[str, ...]]) -> None:
    console.print()
    console.print(Text(heading, f"bold {style}"))
    shown = [[Text(cell) for cell in row] for row in rows[:MOST_LINES]]
    show_table(console, columns, [NAME, *(WORDS for _ in columns[1:])], shown)
    if len(rows) > MOST_LINES:
        console.print(Text(f"and {len(rows) - MOST_LINES:,} more; -o json has them all", "dim"))


def _held(holder: QuotaHolder) -> str:
    by_flavor: dict[str, dict[str, Number]] = {}
    for each in holder.holds:
        by_flavor.setdefault(each.flavor, {})[each.resource] = each.amount
    parts = [f"{_amounts(amounts)} of {flavor}" for flavor, amounts in by_flavor.items()]
    return "; ".join(parts or ["nothing"]) + ("" if holder.state == "admitted" else f" ({holder.state})")


def _amounts(amounts: Mapping[str, Number]) -> str:
    return ", ".join(words(name, amounts[name]) for name in in_order(amounts)) or "nothing"
