"""The report of a window: what every group cost, what no group had, and the invoice that they add up to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal

import msgspec

from shoal.cost.invoices import ADJUSTMENT
from shoal.cost.node_time import CLASSES
from shoal.cost.prices.billing import billing
from shoal.cost.prices.machine_prices import MachineKey, UnknownPrice, machine_prices
from shoal.cost.prices.price_file import PriceFile
from shoal.cost.records import Records
from shoal.cost.statement import CostRow, GroupOf, Period, statement
from shoal.cost.weights import WeightMode
from shoal.units.calendar_windows import TimeWindow
from shoal.units.errors import Where
from shoal.units.money import cents

HELD_KINDS = ("allocated-active", "allocated-idle", "allocated-unmeasured", "startup")


class PriceBasis(msgspec.Struct, frozen=True):
    """The prices of a report."""

    file: PriceFile
    where: Where
    """The price file, for what is asked."""
    today: date
    mode: WeightMode = "model"
    measured_watts: Mapping[MachineKey, Decimal] = {}


class CostReport(msgspec.Struct, frozen=True):
    rows: list[CostRow]
    """Exact; not rounded."""
    invoice: Decimal
    """In whole cents, computed from the machines alone."""
    notes: list[str]
    unknown_hours: Decimal
    """Machine-hours of the window in which nothing was recorded."""
    missing: list[UnknownPrice] = []
    """Machines that are left out of all sums, because they have no price."""

    @property
    def is_partial(self) -> bool:
        return bool(self.missing)


def adjusted(report: CostReport, total: Decimal) -> CostReport:
    """With a line for what an invoice has more or less, so that the rows add up to the invoice."""
    difference = total - sum((row.amount for row in report.rows), Decimal(0))
    rows = [*report.rows, CostRow("", 0, ADJUSTMENT, difference)]
    return msgspec.structs.replace(report, rows=rows, invoice=cents(total))


class GroupTotal(msgspec.Struct, frozen=True, rename="camel"):
    """A group over the whole window; amounts by class."""

    group: str
    gpu_hours: Decimal
    total: Decimal
    classes: dict[str, Decimal]


def cost_report(records: Records, period: Period, group_of: GroupOf, basis: PriceBasis) -> CostReport:
    """Machines without a price are left out. Raises UserError that asks for prices where no machine has one."""
    prices = machine_prices(records.machines, basis.file, basis.today, basis.measured_watts)
    prices.check(basis.where)
    found = billing(records.machines, prices, basis.file, period.window)
    rows = statement(records, found.curves, period, group_of, basis.mode)
    rows += [CostRow("", _day(period, one.start_ms), one.kind, one.amount) for one in found.others]
    return CostReport(
        rows=rows,
        invoice=cents(found.invoice(records.machines, period.window)),
        notes=prices.notes,
        unknown_hours=_unknown(records, period.window),
        missing=prices.unknown,
    )


def group_totals(rows: Sequence[CostRow]) -> list[GroupTotal]:
    """The most expensive first; what no group had comes last."""
    sums: dict[str, dict[str, Decimal]] = {}
    hours: dict[str, Decimal] = {}
    for row in rows:
        classes = sums.setdefault(row.group, {})
        classes[row.kind] = classes.get(row.kind, Decimal(0)) + row.amount
        hours[row.group] = hours.get(row.group, Decimal(0)) + row.gpu_hours
    order: dict[str, int] = {name: at for at, name in enumerate(CLASSES)}
    found = [
        GroupTotal(
            group,
            hours[group],
            sum(classes.values(), Decimal(0)),
            dict(sorted(classes.items(), key=lambda one: order.get(one[0], len(order)))),
        )
        for group, classes in sums.items()
    ]
    return sorted(found, key=lambda one: (not one.group, -one.total, one.group))


def _day(period: Period, at_ms: int) -> int:
    return max(0, sum(1 for start in period.days if start <= at_ms) - 1)


def _unknown(records: Records, window: TimeWindow) -> Decimal:
    total = 0
    for gap in records.gaps:
        start, end = max(gap.start_ms, window.start_ms), min(gap.end_ms or window.end_ms, window.end_ms)
        total += max(0, end - start)
    return Decimal(total) / 3_600_000
