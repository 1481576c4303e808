"""Prints a report of costs: a row for each group, then what no group had, then the invoice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal

import msgspec
from rich.console import Console
from rich.text import Text

from shoal.cost.prices.machine_prices import UnknownPrice
from shoal.cost.report import GroupTotal
from shoal.units.money import rounded
from shoal.views.queue_table import NAME, NUMBER, WORDS, Cell, show_table

_NOTHING = "·"
OF_GROUPS = {
    "allocated-active": "active",
    "allocated-idle": "idle",
    "allocated-unmeasured": "unmeasured",
    "startup": "startup",
    "overhead": "overhead",
}
"""The classes that groups have, and their headings."""
ABOUT_CLASSES = {
    "fragmented": "free, but no request that waits or is usual fits there",
    "unallocated": "free",
    "unhealthy": "GPUs that do not work, nodes that are not ready",
    "overhead": "nodes that start, and what is reserved for the system",
    "unknown": "nothing was recorded; may have been used",
    "unused-commitment": "paid for, and not used",
    "invoice-adjustment": "what the invoice has more or less than was computed",
    "shared": "costs of the cluster that no node has",
}


class MissingPrice(msgspec.Struct, frozen=True, rename="camel"):
    instance_type: str
    spot: bool
    nodes: Sequence[str]
    reason: str
    asked: str
    """What to write in the price file."""


def missing_prices(missing: Sequence[UnknownPrice]) -> list[MissingPrice]:
    return [MissingPrice(one.instance_type, one.is_spot, one.machines, one.reason, one.asked()) for one in missing]


class CostDocument(msgspec.Struct, frozen=True, rename="camel"):
    """A report for programs; amounts are texts with two decimals, whose sum is the invoice."""

    window: Sequence[str]
    currency: str
    by: str
    groups: Sequence[Mapping[str, object]]
    others: Mapping[str, str]
    total: str
    unknown_hours: str
    notes: Sequence[str]
    partial: bool = False
    """Some machines have no price, and are in no sum."""
    missing_prices: Sequence[MissingPrice] = ()


def in_cents(groups: Sequence[GroupTotal]) -> list[GroupTotal]:
    """All amounts in cents; they add up to the rounded total."""
    keys = [(at, kind) for at, group in enumerate(groups) for kind in group.classes]
    amounts = rounded([groups[at].classes[kind] for at, kind in keys])
    classes: list[dict[str, Decimal]] = [{} for _ in groups]
    for (at, kind), amount in zip(keys, amounts, strict=True):
        classes[at][kind] = amount
    return [
        msgspec.structs.replace(group, classes=of_group, total=sum(of_group.values(), Decimal(0)))
        for group, of_group in zip(groups, classes, strict=True)
    ]


def show_costs(
    console: Console, groups: Sequence[GroupTotal], by: str, currency: str, *, is_partial: bool = False
) -> None:
    """`groups` in cents."""
    total = sum((group.total for group in groups), Decimal(0))
    named = [group for group in groups if group.group]
    kinds = [kind for kind in OF_GROUPS if any(group.classes.get(kind) for group in named)]
    if named:
        headings = [by, "GPU hours", *(OF_GROUPS[kind] for kind in kinds), currency, "share"]
        rows: list[list[Cell]] = [
            [
                group.group,
                f"{group.gpu_hours:,.1f}",
                *(_amount(group.classes.get(kind, Decimal(0))) for kind in kinds),
                f"{group.total:,.2f}",
                f"{group.total / total:.1%}" if total else _NOTHING,
            ]
            for group in named
        ]
        show_table(console, headings, [NAME, *(NUMBER for _ in headings[1:])], rows, ("share",))
        console.print()
    others = [group for group in groups if not group.group]
    lines: list[list[Cell]] = [
        [kind, f"{amount:,.2f}", ABOUT_CLASSES.get(kind, "held by pods without this value")]
        for group in others
        for kind, amount in group.classes.items()
        if amount
    ]
    about = f"{currency}, without the nodes whose price is missing" if is_partial else currency
    lines.append([Text("partial total" if is_partial else "total", "bold"), Text(f"{total:,.2f}", "bold"), about])
    show_table(console, ["", currency, ""], [NAME, NUMBER, WORDS], lines)


def document_of(groups: Sequence[GroupTotal]) -> tuple[list[dict[str, object]], dict[str, str]]:
    """The groups, and what no group had."""
    named: list[dict[str, object]] = [
        {
            "group": group.group,
            "gpuHours": f"{group.gpu_hours:.4f}",
            "amounts": {kind: f"{amount:.2f}" for kind, amount in group.classes.items()},
            "total": f"{group.total:.2f}",
        }
        for group in groups
        if group.group
    ]
    others = {kind: f"{amount:.2f}" for group in groups if not group.group for kind, amount in group.classes.items()}
    return named, others


def _amount(amount: Decimal) -> Text:
    return Text(f"{amount:,.2f}") if amount else Text(_NOTHING, "dim")
