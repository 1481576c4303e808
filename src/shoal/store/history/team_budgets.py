"""Reads the budgets that namespaces have from the kind Team, beside those of the price file.

The recorder keeps them in the history, so that commands and pages that read it need no cluster.

A budget of the price file replaces that of the same team. An annotation of another form is no budget.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal

import msgspec

from shoal.api.budget_report import MOST_MONEY
from shoal.api.cost_budgets import ENFORCEMENTS, TEAM_LABELS, team_label
from shoal.api.meta import ObjectMeta
from shoal.cost.prices.price_file import Budget, PriceFile
from shoal.policy.tenants.labels import BUDGET, BUDGET_ENFORCED
from shoal.store.history.tables import StoredRow, Tables
from shoal.units.money import MoneyError, money


class BudgetedNamespace(msgspec.Struct, frozen=True):
    name: str
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}


class TeamBudgetRows:
    """A row for each namespace with a budget."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def read(self) -> list[BudgetedNamespace]:
        return [msgspec.msgpack.decode(row.data, type=BudgetedNamespace) for row in self._tables.open("budget")]

    def write(self, present: Sequence[BudgetedNamespace], now_ms: int) -> None:
        """`present`: all that there are now."""
        known = {row.key: row.data for row in self._tables.open("budget")}
        wanted = {one.name: msgspec.msgpack.encode(one) for one in present}
        gone = [name for name in known if name not in wanted]
        changed = [
            StoredRow(name, now_ms, None, name, data) for name, data in wanted.items() if known.get(name) != data
        ]
        if gone or changed:
            with self._tables.transaction():
                self._tables.delete("budget", gone)
                self._tables.put("budget", changed)


def budgeted(namespaces: Iterable[ObjectMeta]) -> list[BudgetedNamespace]:
    """Those with a budget, with the labels and annotations that say whose it is and how much."""
    return [
        BudgetedNamespace(
            one.name,
            {key: text for key, text in one.labels.items() if key in TEAM_LABELS},
            {key: text for key, text in one.annotations.items() if key in (BUDGET, BUDGET_ENFORCED)},
        )
        for one in namespaces
        if one.annotations.get(BUDGET)
    ]


def with_team_budgets(file: PriceFile, namespaces: Iterable[BudgetedNamespace]) -> PriceFile:
    """A team with several namespaces has the sum of their budgets; it is enforced as the strictest of them says."""
    written = {one.team for one in file.budgets if one.team}
    amounts: dict[str, Decimal] = {}
    enforced: dict[str, int] = {}
    for one in sorted(namespaces, key=lambda each: each.name):
        team, text = team_label(one.labels), one.annotations.get(BUDGET, "")
        amount = _amount(text)
        if not team or team in written or amount is None:
            continue
        # Two amounts that are valid may be too large together, and a report with such a budget would hold nothing back.
        amounts[team] = min(amounts.get(team, Decimal(0)) + amount, MOST_MONEY)
        enforced[team] = max(enforced.get(team, 0), _strictness(one.annotations.get(BUDGET_ENFORCED, "")))
    found = tuple(
        Budget(team=team, per_month=amount, enforce=ENFORCEMENTS[enforced[team]])
        for team, amount in sorted(amounts.items())
    )
    return msgspec.structs.replace(file, budgets=(*file.budgets, *found)) if found else file


def _strictness(text: str) -> int:
    """An annotation of another form enforces nothing."""
    return next((at for at, one in enumerate(ENFORCEMENTS) if one == text), 0)


def _amount(text: str) -> Decimal | None:
    try:
        found = money(text) if text else None
    except MoneyError:
        return None
    return found if found is not None and found >= 0 else None
