"""A statement of costs: what every group had on every day, by class, and its sum.

    statement(records, curves, period, dimension, "model")

The rows add up to the price of all machines in the period, exactly; `shown` rounds them to cents so that they still do.
Sums are kept as whole numbers for each shape of machine and divided once, at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal

import msgspec

from shoal.cost.node_time import (
    CLASSES,
    CPU,
    GPU,
    GPU_TIME,
    MEMORY,
    USED,
    GroupedHolding,
    NodeTime,
    Shape,
    Sums,
    TimeClass,
    shape_of,
)
from shoal.cost.price_curves import PriceCurve, amount
from shoal.cost.records import FULL_SHARE, PPM, Holder, Holding, Machine, Records, WantedRequest
from shoal.cost.weights import WeightMode, Weights, weights_of
from shoal.units.calendar_windows import HOUR_MS, TimeWindow
from shoal.units.errors import UserError, Where, excerpt
from shoal.units.money import EXACT, cents, rounded

DIMENSIONS = ("team", "namespace", "queue", "job", "gang", "pod", "model", "node")
_LABEL = "label:"
GroupOf = Callable[[Holding | None, Machine], str]
"""The group of what a holding has; of what no pod holds, if there is none."""
UNUSED_COMMITMENT = "unused-commitment"
SHARED = "shared"


class CostRow(msgspec.Struct, frozen=True, rename="camel"):
    """What a group had of one class on one day. The group is empty where no pod held it."""

    group: str
    day: int
    kind: str
    """A class of time, or `unused-commitment` or `shared`, which belong to no machine."""
    amount: Decimal
    gpu_amount: Decimal = Decimal(0)
    cpu_amount: Decimal = Decimal(0)
    memory_amount: Decimal = Decimal(0)
    used_amount: Decimal = Decimal(0)
    """The GPU cost times the mean utilisation."""
    gpu_hours: Decimal = Decimal(0)


class Period(msgspec.Struct, frozen=True):
    window: TimeWindow
    days: tuple[int, ...]
    """When its days begin; the first is the begin of the window."""


def whole_period(window: TimeWindow) -> Period:
    return Period(window, (window.start_ms,))


def dimension(name: str) -> GroupOf:
    """Raises UserError for a name that is none of DIMENSIONS and no `label:KEY`."""
    if name.startswith(_LABEL) and (key := name.removeprefix(_LABEL)):
        return lambda held, _: dict(held.holder.labels).get(key, "") if held is not None else ""
    if name == "model":
        return lambda _, machine: machine.model or machine.instance_type
    if name == "node":
        return lambda _, machine: machine.name
    if name in DIMENSIONS:
        return lambda held, _: _value(held.holder, name) if held is not None else ""
    fix = f"write {', '.join(DIMENSIONS)}, or label:KEY"
    raise UserError(f"{excerpt(name)} is no dimension of costs", where=Where(path="--by"), fix=fix)


def statement(
    records: Records,
    curves: Mapping[str, PriceCurve],
    period: Period,
    group_of: GroupOf,
    mode: WeightMode = "model",
) -> list[CostRow]:
    """`curves`: the price of each machine by its name. A machine without a price has no rows; the caller names it."""
    by_machine: dict[str, list[Holding]] = {}
    for holding in records.holdings:
        by_machine.setdefault(holding.machine, []).append(holding)
    wanted = [one for one in records.wanted if _touches(one, period.window)]
    by_shape: dict[_Shape, Sums] = {}
    for machine in records.machines:
        if machine.name not in curves:
            continue
        held = [GroupedHolding(one, group_of(one, machine)) for one in by_machine.get(machine.name, ())]
        weights = weights_of(machine.model, len(machine.devices), machine.cpu_milli, machine.memory_mib, mode)
        sums = by_shape.setdefault((shape_of(machine), weights), {})
        time = NodeTime(machine, held, curves[machine.name], period.days, period.window.end_ms)
        time.add_to(sums, group_of(None, machine), wanted, records.gaps)
    by_key: dict[tuple[str, int, int], list[tuple[_Shape, list[int]]]] = {}
    for shape, sums in by_shape.items():
        for key, values in sums.items():
            by_key.setdefault(key, []).append((shape, values))
    return [_row(group, day, CLASSES[kind], found) for (group, day, kind), found in sorted(by_key.items())]


def total(rows: Iterable[CostRow]) -> Decimal:
    return EXACT.create_decimal(sum((row.amount for row in rows), Decimal(0)))


def shown(rows: Sequence[CostRow]) -> list[CostRow]:
    """In cents; the amounts still add up to the rounded total. The parts of a row are rounded on their own."""
    amounts = rounded([row.amount for row in rows])
    return [
        msgspec.structs.replace(
            row,
            amount=rounded_amount,
            gpu_amount=cents(row.gpu_amount),
            cpu_amount=cents(row.cpu_amount),
            memory_amount=cents(row.memory_amount),
            used_amount=cents(row.used_amount),
            gpu_hours=cents(row.gpu_hours),
        )
        for row, rounded_amount in zip(rows, amounts, strict=True)
    ]


def merged(rows: Iterable[CostRow], key: Callable[[CostRow], tuple[str, int, str]]) -> list[CostRow]:
    """Rows with equal keys (group, day, class) as one."""
    found: dict[tuple[str, int, str], list[Decimal]] = {}
    for row in rows:
        values = (row.amount, row.gpu_amount, row.cpu_amount, row.memory_amount, row.used_amount, row.gpu_hours)
        known = found.get(key(row))
        found[key(row)] = list(values) if known is None else [a + b for a, b in zip(known, values, strict=True)]
    return [CostRow(*at, *values) for at, values in sorted(found.items())]


_Shape = tuple[Shape, Weights]


def _row(group: str, day: int, kind: TimeClass, found: Iterable[tuple[_Shape, Sequence[int]]]) -> CostRow:
    gpu = cpu = memory = used = hours = Decimal(0)
    for (whole, weights), values in found:
        gpu += amount(values[GPU], weights.gpu, whole.gpu * PPM)
        cpu += amount(values[CPU], weights.cpu, whole.cpu * PPM)
        memory += amount(values[MEMORY], weights.memory, whole.memory * PPM)
        used += amount(values[USED], weights.gpu, whole.gpu * PPM)
        hours += EXACT.divide(Decimal(values[GPU_TIME]), FULL_SHARE * HOUR_MS)
    return CostRow(group, day, kind, gpu + cpu + memory, gpu, cpu, memory, used, hours)


def _value(holder: Holder, name: str) -> str:
    value = getattr(holder, name)
    return f"{holder.namespace}/{value}" if name in ("job", "gang", "pod") and value else str(value)


def _touches(one: WantedRequest, window: TimeWindow) -> bool:
    return (one.start_ms is None or one.start_ms < window.end_ms) and (
        one.end_ms is None or one.end_ms > window.start_ms
    )
