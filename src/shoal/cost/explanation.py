"""Explains the cost of a job: its pods, what they held and when, their classes, and its waits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal

import msgspec

from shoal.cost.price_curves import PriceCurve
from shoal.cost.records import FULL_SHARE, Holding, Machine, Records
from shoal.cost.statement import CostRow, Period, dimension, statement, total
from shoal.cost.weights import WeightMode
from shoal.units.calendar_windows import HOUR_MS


class PodCost(msgspec.Struct, frozen=True, rename="camel"):
    pod: str
    node: str
    devices: list[str]
    gpus: Decimal
    """Whole GPUs and parts of them."""
    start_ms: int
    running_ms: int | None
    end_ms: int | None
    rate: Decimal
    """Of the node per hour, when the pod started."""
    amount: Decimal
    is_preempted: bool


class JobCost(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    pods: list[PodCost]
    classes: dict[str, Decimal]
    gpu_hours: Decimal
    amount: Decimal
    gang_wait_hours: Decimal
    """GPU-hours that members held before the last of the first members had started."""


def names_of(held: Holding) -> set[str]:
    """What a user may call it: its job, gang or pod, with or without the namespace."""
    holder = held.holder
    names = {name for name in (holder.job, holder.gang, holder.pod) if name}
    return names | {f"{holder.namespace}/{name}" for name in names}


def job_cost(
    name: str,
    records: Records,
    curves: Mapping[str, PriceCurve],
    period: Period,
    mode: WeightMode = "model",
) -> JobCost | None:
    """None where the window has no such job."""
    mine = [one for one in records.holdings if name in names_of(one)]
    if not mine:
        return None
    by_pod = statement(records, curves, period, dimension("pod"), mode)
    keys = {f"{one.holder.namespace}/{one.holder.pod}" for one in mine}
    rows = [row for row in by_pod if row.group in keys]
    machines = {one.name: one for one in records.machines}
    pods = [_pod_cost(one, machines, curves, rows) for one in sorted(mine, key=lambda one: one.start_ms)]
    classes: dict[str, Decimal] = {}
    for row in rows:
        classes[row.kind] = classes.get(row.kind, Decimal(0)) + row.amount
    hours = sum((row.gpu_hours for row in rows), Decimal(0))
    return JobCost(name, pods, classes, hours, total(rows), _gang_wait(mine))


def _pod_cost(
    one: Holding, machines: Mapping[str, Machine], curves: Mapping[str, PriceCurve], rows: Sequence[CostRow]
) -> PodCost:
    key = f"{one.holder.namespace}/{one.holder.pod}"
    curve = curves.get(one.machine) if one.machine in machines else None
    return PodCost(
        pod=key,
        node=one.machine,
        devices=[device.part or device.device for device in one.devices],
        gpus=_gpus(one),
        start_ms=one.start_ms,
        running_ms=one.running_ms,
        end_ms=one.end_ms,
        rate=curve.rate(one.start_ms) if curve is not None else Decimal(0),
        amount=total(row for row in rows if row.group == key),
        is_preempted=one.is_preempted,
    )


def _gang_wait(held: Sequence[Holding]) -> Decimal:
    """Members that start together belong together; later ones replace others and are no wait."""
    gangs: dict[str, list[Holding]] = {}
    for one in held:
        if one.holder.gang:
            gangs.setdefault(one.holder.gang, []).append(one)
    waited = Decimal(0)
    for members in gangs.values():
        ends = [one.end_ms for one in members if one.end_ms is not None]
        first_end = min(ends, default=None)
        first = [one for one in members if first_end is None or one.start_ms < first_end]
        last = max((one.start_ms for one in first), default=0)
        for one in first:
            waited += _gpus(one) * Decimal(last - one.start_ms) / HOUR_MS
    return waited


def _gpus(one: Holding) -> Decimal:
    return Decimal(sum(device.share for device in one.devices)) / FULL_SHARE
