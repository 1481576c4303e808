"""Blends reservations, savings plans and prices on demand to one billing price per instance type and hour.

Order: reservations and capacity blocks first, because they are paid for anyway; then savings plans, those usages first
on which they save most; the rest is paid on demand. All machines of a type have the same blended price in an hour. What
of a commitment was not used in its hour is a line of its own. Spot machines and own machines take no part.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal

import msgspec

from shoal.cost.price_curves import PriceCurve
from shoal.cost.prices.price_file import Reservation, SavingsPlan
from shoal.cost.records import Machine
from shoal.units.calendar_windows import HOUR_MS, TimeWindow

COVERED = ("on-demand", "reserved")


class Blended(msgspec.Struct, frozen=True):
    rates: dict[str, list[tuple[int, Decimal]]]
    """By instance type: a price for every hour in which machines of the type ran."""
    unused: list[tuple[int, str, Decimal]]
    """Begin of the hour, name of the commitment, amount."""


def blended(
    machines: Iterable[Machine],
    list_prices: Mapping[str, PriceCurve],
    commitments: tuple[Sequence[Reservation], Sequence[SavingsPlan]],
    window: TimeWindow,
) -> Blended:
    """`list_prices`: prices on demand of the instance types that commitments name. Hours are those of the clock in UTC;
    the first and the last of the window may be parts of hours, in which commitments count in part too."""
    reservations, plans = commitments
    hours = list(_hours(window))
    of_types = [machine for machine in machines if machine.instance_type in list_prices]
    usage = _usage(of_types, window, len(hours))
    found = Blended({}, [])
    for at, (start, end) in enumerate(hours):
        length = Decimal(end - start) / HOUR_MS
        list_rates = {name: list_prices[name].rate(start) for name in usage}
        left = {name: used[at] for name, used in usage.items() if used[at]}
        costs: dict[str, Decimal] = dict.fromkeys(left, Decimal(0))
        for one in reservations:
            if _holds(one, start):
                _reserve(one, (start, length), left, costs, found.unused)
        for plan in plans:
            if _holds(plan, start):
                _spend(plan, (start, length), list_rates, left, costs, found.unused)
        for name, remaining in left.items():
            cost = costs[name] + list_rates[name] * remaining
            found.rates.setdefault(name, []).append((start, cost / usage[name][at]))
    return found


def hourly_price(one: Reservation) -> Decimal:
    """The amortised price of one machine of a reservation."""
    if not one.upfront or one.from_ms is None or one.until_ms is None:
        return one.per_hour
    return one.per_hour + one.upfront / (Decimal(one.until_ms - one.from_ms) / HOUR_MS)


def _reserve(
    one: Reservation,
    hour: tuple[int, Decimal],
    left: dict[str, Decimal],
    costs: dict[str, Decimal],
    unused: list[tuple[int, str, Decimal]],
) -> None:
    start, length = hour
    paid, price = one.count * length, hourly_price(one)
    used = min(paid, left.get(one.instance_type, Decimal(0)))
    if used:
        left[one.instance_type] -= used
        costs[one.instance_type] += used * price
    if paid > used and price:
        unused.append((start, one.name, (paid - used) * price))


def _spend(
    plan: SavingsPlan,
    hour: tuple[int, Decimal],
    list_rates: Mapping[str, Decimal],
    left: dict[str, Decimal],
    costs: dict[str, Decimal],
    unused: list[tuple[int, str, Decimal]],
) -> None:
    start, length = hour
    budget = plan.per_hour * length
    order = sorted((rate / list_rates[name], name) for name, rate in plan.rates.items() if left.get(name))
    for _, name in order:
        rate = plan.rates[name]
        covered = min(left[name], budget / rate) if rate else left[name]
        left[name] -= covered
        costs[name] += covered * rate
        budget -= covered * rate
    if budget > 0:
        unused.append((start, plan.name, budget))


def _holds(one: Reservation | SavingsPlan, start_ms: int) -> bool:
    return (one.from_ms is None or one.from_ms <= start_ms) and (one.until_ms is None or start_ms < one.until_ms)


def _hours(window: TimeWindow) -> Iterable[tuple[int, int]]:
    start = window.start_ms
    while start < window.end_ms:
        end = min(window.end_ms, (start // HOUR_MS + 1) * HOUR_MS)
        yield start, end
        start = end


def _usage(machines: Iterable[Machine], window: TimeWindow, hours: int) -> dict[str, list[Decimal]]:
    """Machine-hours by instance type in every hour of the window."""
    first = window.start_ms // HOUR_MS
    sums: dict[str, list[int]] = {}
    for machine in machines:
        if machine.capacity not in COVERED:
            continue
        start = max(machine.start_ms, window.start_ms)
        end = window.end_ms if machine.end_ms is None else min(machine.end_ms, window.end_ms)
        if start >= end:
            continue
        of_type = sums.setdefault(machine.instance_type, [0] * hours)
        begin, last = start // HOUR_MS - first, (end - 1) // HOUR_MS - first
        for at in range(begin, last + 1):
            hour = (first + at) * HOUR_MS
            of_type[at] += min(end, hour + HOUR_MS) - max(start, hour)
    return {name: [Decimal(one) / HOUR_MS for one in of_type] for name, of_type in sums.items()}
