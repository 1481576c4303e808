"""Prints charges: what each group pays, and why it is more or less than what it held."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

import msgspec
from rich.console import Console
from rich.text import Text

from shoal.cost.chargeback import Charge, shown_charges
from shoal.units.money import cents
from shoal.views.queue_table import NAME, NUMBER, show_table

NOT_CHARGED = "(not charged)"


class ChargeRow(msgspec.Struct, frozen=True, rename="camel"):
    group: str
    """Empty: what no group is charged."""
    own: str
    idle: str
    discount: str
    refund: str
    amount: str
    """All amounts add up to the invoice."""


def charge_rows(found: Sequence[Charge]) -> list[ChargeRow]:
    amounts = dict(shown_charges(found))
    rows = [
        ChargeRow(
            group=one.group,
            own=f"{cents(one.own):.2f}",
            idle=f"{cents(one.idle):.2f}",
            discount=f"{cents(one.discount):.2f}",
            refund=f"{cents(one.refund):.2f}",
            amount=f"{amounts[one.group]:.2f}",
        )
        for one in found
    ]
    return sorted(rows, key=lambda row: (not row.group, -Decimal(row.amount), row.group))


def show_charges(console: Console, rows: Sequence[ChargeRow], by: str, currency: str) -> None:
    headings = [by, "for what it held", "of what was left", "discount", "refund", currency]
    table = [[row.group or NOT_CHARGED, row.own, row.idle, row.discount, row.refund, row.amount] for row in rows]
    show_table(console, headings, [NAME, *(NUMBER for _ in headings[1:])], table, ("refund", "discount"))
    total = sum((Decimal(row.amount) for row in rows), Decimal(0))
    console.print(Text(f"total {total:,.2f} {currency}", "bold"))
