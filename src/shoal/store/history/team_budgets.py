"""Reads the budgets that namespaces have from the kind Team, beside those of the price file.

A budget of the price file replaces that of the same team. An annotation of another form is no budget.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal

import msgspec

from shoal.api.cost_budgets import ENFORCEMENTS, team_label
from shoal.cost.prices.price_file import Budget, PriceFile
from shoal.policy.tenants.labels import BUDGET, BUDGET_ENFORCED
from shoal.units.money import MoneyError, money


class BudgetedNamespace(msgspec.Struct, frozen=True):
    name: str
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}


def with_team_budgets(file: PriceFile, namespaces: Iterable[BudgetedNamespace]) -> PriceFile:
    """A team with several namespaces has the sum of their budgets; it is enforced if one of them is."""
    written = {one.team for one in file.budgets if one.team}
    amounts: dict[str, Decimal] = {}
    enforced: dict[str, str] = {}
    for one in sorted(namespaces, key=lambda each: each.name):
        team, text = team_label(one.labels), one.annotations.get(BUDGET, "")
        amount = _amount(text)
        if not team or team in written or amount is None:
            continue
        amounts[team] = amounts.get(team, Decimal(0)) + amount
        enforced[team] = enforced.get(team, "") or one.annotations.get(BUDGET_ENFORCED, "")
    found = tuple(
        Budget(team=team, per_month=amount, enforce=next((one for one in ENFORCEMENTS if one == enforced[team]), ""))
        for team, amount in sorted(amounts.items())
    )
    return msgspec.structs.replace(file, budgets=(*file.budgets, *found)) if found else file


def _amount(text: str) -> Decimal | None:
    try:
        found = money(text) if text else None
    except MoneyError:
        return None
    return found if found is not None and found >= 0 else None
