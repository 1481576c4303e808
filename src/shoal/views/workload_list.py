"""Lists workloads in one table: those that hold quota, then those that wait for it, with the reason."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from rich.console import Console
from rich.text import Text

from shoal.views.queue_backlog import Number
from shoal.views.queue_table import KIND, NAME, WORDS, Cell, show_table
from shoal.views.queue_workloads import Holding, Workloads
from shoal.views.resource_units import in_order, words

MOST_LINES = 40
_STYLES = {"admitted": "green", "active": "red", "parked": "red"}
_SHOWN = {"active": "waits", "parked": "inadmissible"}


class WorkloadLine(msgspec.Struct, frozen=True, rename="camel"):
    workload: str
    queue: str
    state: str
    """`admitted`, `reserved` (its checks are not passed yet), `ending`; `active` and `parked` wait."""
    amounts: dict[str, Number]
    """What it holds or asks for, all flavors together."""
    holds: list[Holding]
    """What it holds of each flavor."""
    code: str
    """Why it waits."""
    message: str


def lines_of(workloads: Workloads) -> list[WorkloadLine]:
    found = [
        WorkloadLine(each.workload, each.queue, each.state, _sum(each.holds), each.holds, "", "")
        for each in workloads.holding
    ]
    found += [
        WorkloadLine(each.workload, each.queue, each.state, each.asks, [], each.reason.code, each.reason.message)
        for each in workloads.waiting
    ]
    return found


def show_workload_list(
    console: Console, lines: Sequence[WorkloadLine], *, is_wide: bool = False, most: int | None = MOST_LINES
) -> None:
    shown = lines if is_wide else lines[:most]
    headings = ["workload", "queue", "state", "amounts", "because"]
    rows = [_row(line, is_wide=is_wide) for line in shown]
    show_table(console, headings, [NAME, KIND, KIND, WORDS, WORDS], rows)
    if len(lines) > len(shown):
        console.print(Text(f"and {len(lines) - len(shown):,} more; -o wide or -o json has them all", "dim"))


def _row(line: WorkloadLine, *, is_wide: bool) -> list[Cell]:
    return [
        line.workload,
        line.queue,
        Text(_SHOWN.get(line.state, line.state), _STYLES.get(line.state, "yellow")),
        ", ".join(words(name, line.amounts[name]) for name in in_order(line.amounts)) or "nothing",
        f"{line.code}: {line.message}" if is_wide and line.message else line.code,
    ]


def _sum(holds: Sequence[Holding]) -> dict[str, Number]:
    total: dict[str, Number] = {}
    for each in holds:
        total[each.resource] = total.get(each.resource, 0) + each.amount
    return total
