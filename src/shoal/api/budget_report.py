"""What budgets have spent in a period, as the recorder of the history writes it and admission reads it.

It is a document in the ConfigMap `shoal-budgets`, beside the Lease of Shoal, and an object of snapshots and manifests.
"""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Literal

from msgspec import field

from shoal.api.meta import ObjectMeta
from shoal.api.wire import ApiStruct, Timestamp
from shoal.units.errors import UserError, Where

BudgetKind = Literal["team", "namespace", "queue"]
BUDGET_KINDS: tuple[BudgetKind, ...] = ("team", "namespace", "queue")
Enforcement = Literal["", "spent", "forecast"]
REPORT_VERSION, REPORT_KIND = "config.shoal.dev/v1alpha1", "BudgetReport"
CONFIG_MAP, CONFIG_KEY = "shoal-budgets", "budgets.json"
_TOO_MUCH = Decimal(10**15)
MOST_MONEY = _TOO_MUCH - 1
"""One amount above it makes a report invalid."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class ReportedBudget(ApiStruct, frozen=True, forbid_unknown_fields=True):
    kind: BudgetKind
    name: str
    per_month: Decimal
    spent: Decimal
    forecast: Decimal
    """Of the whole period."""
    enforced: Enforcement = ""


class BudgetReport(ApiStruct, frozen=True):
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    currency: str = "USD"
    period: str = ""
    """2026-11"""
    computed_at: Timestamp = _EPOCH
    resets_at: Timestamp = _EPOCH
    """The end of the period."""
    budgets: tuple[ReportedBudget, ...] = ()


def check_budget_report(report: BudgetReport, where: Where) -> None:
    for at, one in enumerate(report.budgets):
        for name in ("per_month", "spent", "forecast"):
            amount: Decimal = getattr(one, name)
            if not amount.is_finite() or abs(amount) >= _TOO_MUCH:
                raise UserError("is no amount of money", where=where.below(f"budgets[{at}]"))
