"""Budgets of a month: what was spent, what the month will come to, and whether that is too much.

The forecast adds, for the rest of the month, the mean of the last seven whole days that were recorded; before there is
a whole day, the mean of the time so far. A month in which clocks change has an hour less or more, which counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Literal

import msgspec

from shoal.api.budget_report import BudgetKind
from shoal.cost.prices.machine_prices import UnknownPrice, missing_note
from shoal.cost.prices.price_file import Budget
from shoal.cost.records import Holding, Machine
from shoal.cost.statement import CostRow, GroupOf, dimension
from shoal.units.calendar_windows import TimeWindow, rfc3339
from shoal.units.money import cents

BudgetState = Literal["kept", "at risk", "exceeded"]
_DAYS = 7


class MonthSpending(msgspec.Struct, frozen=True):
    """By day of the month until now."""

    starts_ms: Sequence[int]
    """When each day begins; the last one is not over."""
    now_ms: int
    end_ms: int
    """Of the month."""
    amounts: Sequence[Decimal]
    since_ms: int = 0
    """When the history began: days before that say nothing about what a day costs."""


class BudgetLine(msgspec.Struct, frozen=True, rename="camel"):
    subject: str
    """`team red`."""
    limit: Decimal
    spent: Decimal
    forecast: Decimal
    state: BudgetState
    enforce: Literal["", "spent", "forecast"] = ""
    """Whether new work waits for it."""


class MonthBudgets(msgspec.Struct, frozen=True):
    """The budgets of a month, as far as it was recorded."""

    lines: list[BudgetLine]
    month: TimeWindow
    computed_ms: int
    missing: list[UnknownPrice] = []
    """Nodes without a price, which count nothing."""
    deleted_ms: int = 0
    """The history has deleted what was held before, because of its age."""

    def notes(self) -> list[str]:
        """Why more was spent than the budgets say."""
        found = [missing_note(self.missing)] if self.missing else []
        if self.deleted_ms > self.month.start_ms:
            retention = "--history-retention with ledger=32d or more keeps a month"
            found.append(f"the history before {rfc3339(self.deleted_ms)} is deleted: {retention}")
        return found


def forecast(month: MonthSpending) -> Decimal:
    """What the whole month will have cost."""
    spent = sum(month.amounts, Decimal(0))
    left = month.end_ms - month.now_ms
    ends = [*month.starts_ms[1:], month.now_ms]
    days = [at for at in range(len(ends) - 1) if month.starts_ms[at] >= month.since_ms][-_DAYS:]
    whole = [(month.amounts[at], ends[at] - month.starts_ms[at]) for at in days]
    if not whole:
        length = month.now_ms - max(month.starts_ms[0], month.since_ms)
        whole = [(spent, length)]
    amount = sum((part for part, _ in whole), Decimal(0))
    length = sum(part for _, part in whole)
    return spent + amount * left / length if length > 0 else spent


def budget_groups(kind: BudgetKind) -> GroupOf:
    """By what the costs of budgets of a kind are grouped. Queues have their namespace, because each has its own."""
    return _namespaced_queue if kind == "queue" else dimension(kind)


def _namespaced_queue(held: Holding | None, _: Machine) -> str:
    return "" if held is None or not held.holder.queue else f"{held.holder.namespace}/{held.holder.queue}"


def budget_lines(
    budgets: Iterable[Budget], rows_by: Mapping[BudgetKind, Sequence[CostRow]], month: MonthSpending
) -> list[BudgetLine]:
    """`rows_by`: rows by day of statements by the groups of `budget_groups`. `month` has the days; its amounts are
    replaced by those of each subject."""
    found = []
    for budget in budgets:
        kind, name = budget.subject
        amounts = [Decimal(0)] * len(month.starts_ms)
        for row in rows_by.get(kind, ()):
            if row.group == name or (kind == "queue" and row.group.partition("/")[2] == name):
                amounts[row.day] += row.amount
        of_subject = msgspec.structs.replace(month, amounts=amounts)
        spent, expected = sum(amounts, Decimal(0)), forecast(of_subject)
        state = _state(budget, spent, expected)
        found.append(BudgetLine(f"{kind} {name}", budget.per_month, spent, expected, state, budget.enforce))
    return found


def _state(budget: Budget, spent: Decimal, expected: Decimal) -> BudgetState:
    """An enforced budget refuses by the same amounts: those in cents, of which nothing is left."""
    if cents(spent) >= budget.per_month:
        return "exceeded"
    return "at risk" if cents(expected) > budget.per_month else "kept"
