"""The invoice that prices and machines give: a curve for each machine, and the lines that belong to no machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal

import msgspec

from shoal.cost.price_curves import PriceCurve, amount
from shoal.cost.prices.commitments import COVERED, blended
from shoal.cost.prices.machine_prices import MachineKey, MachinePrices, Rates, curves_of_names, machine_key
from shoal.cost.prices.on_premises import HOURS_PER_MONTH
from shoal.cost.prices.price_file import PriceFile
from shoal.cost.records import Machine
from shoal.units.calendar_windows import HOUR_MS, TimeWindow


class OtherLine(msgspec.Struct, frozen=True):
    start_ms: int
    kind: str
    name: str
    amount: Decimal


class Billing(msgspec.Struct, frozen=True):
    curves: dict[str, PriceCurve]
    others: list[OtherLine]

    def invoice(self, machines: Sequence[Machine], window: TimeWindow) -> Decimal:
        """The sum of all machines with a price and of other lines, computed without regard to holders."""
        found = sum((one.amount for one in self.others), Decimal(0))
        for machine in machines:
            if machine.name not in self.curves:
                continue
            start = max(machine.start_ms, window.start_ms)
            end = window.end_ms if machine.end_ms is None else min(machine.end_ms, window.end_ms)
            if start < end:
                found += amount(self.curves[machine.name].units(start, end))
        return found


def billing(machines: Sequence[Machine], prices: MachinePrices, file: PriceFile, window: TimeWindow) -> Billing:
    """A machine without a price has no curve, and takes no part in commitments."""
    curves = prices.curves()
    machines = [one for one in machines if one.name in curves]
    others = [
        OtherLine(window.start_ms, "shared", one.name, one.per_month * window.length_ms / HOUR_MS / HOURS_PER_MONTH)
        for one in file.shared_costs
    ]
    if file.reservations or file.savings_plans:
        named = {one.instance_type for one in file.reservations}.union(*(plan.rates for plan in file.savings_plans))
        covered = [one for one in machines if one.instance_type in named and one.capacity in COVERED]
        found = blended(machines, _list_prices(covered, prices), (file.reservations, file.savings_plans), window)
        others += [OtherLine(start, "unused-commitment", name, unused) for start, name, unused in found.unused]
        curves = curves_of_names(prices.by_machine | _covered(machines, found.rates))
    return Billing(curves, others)


def _list_prices(machines: Sequence[Machine], prices: MachinePrices) -> dict[str, PriceCurve]:
    """By instance type: what its machines cost from their start on, as it was recorded of each."""
    moments: dict[str, dict[int, Decimal]] = {}
    for machine in machines:
        found = moments.setdefault(machine.instance_type, {})
        for at_ms, rate in prices.by_machine[machine_key(machine)]:
            if at_ms > machine.start_ms:
                found[at_ms] = rate
            else:
                found[machine.start_ms] = rate
    return {name: PriceCurve(found.items()) for name, found in moments.items()}


def _covered(machines: Sequence[Machine], rates: Mapping[str, Rates]) -> dict[MachineKey, Rates]:
    return {
        machine_key(machine): rates[machine.instance_type]
        for machine in machines
        if machine.capacity in COVERED and machine.instance_type in rates
    }
