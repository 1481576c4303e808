"""Advice that saves money, each with its evidence and what it saves in the window.

Only what was measured or recorded is advised: without samples of a workload there is no advice about its size, without
a price of a commitment or of spot capacity none about these.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal

import msgspec

from shoal.cost.price_curves import PriceCurve
from shoal.cost.prices.price_file import PriceFile
from shoal.cost.records import Machine, Records
from shoal.cost.right_size import SliceAdvice, cheaper_model, is_underused, slice_for
from shoal.cost.savings import commitment_level
from shoal.cost.statement import CostRow
from shoal.data.gpu_prices import usd_of_model
from shoal.data.gpus import Model, find_model
from shoal.data.instances import catalog, find_instance
from shoal.units.calendar_windows import HOUR_MS, TimeWindow
from shoal.units.money import cents

_LEAST = Decimal("0.01")
_IDLE_SHARE = Decimal("0.50")
_FEW_GPUS = Decimal("0.25")
_LEAST_HOURS = 6
_GIB_PER_GB = Decimal(2**30) / 10**9


class CostAdvice(msgspec.Struct, frozen=True):
    about: str
    """`job team-a/train`, `node n1`, `instance type p5.48xlarge`."""
    what: str
    evidence: str
    saving: Decimal
    """In the window."""


class MeasuredUse(msgspec.Struct, frozen=True):
    """Of a job: over all its devices."""

    model: str
    memory_gib: Decimal
    """The peak of one device."""
    utilisation: Decimal
    """The mean, as a part of 1."""
    activity: Decimal
    """The peak of an hour's mean, as a part of 1."""


class RightSize(msgspec.Struct, frozen=True):
    """What would hold a job of which the use is measured."""

    model: Model
    """Its GPUs today."""
    evidence: str
    instance: SliceAdvice | None
    """The smallest MIG instance; None where only the whole GPU suffices."""
    saved: Decimal
    """The part of the GPU that the instance leaves to others."""
    cheaper: Model | None


def job_advice(rows: Iterable[CostRow], measured: Mapping[str, MeasuredUse]) -> list[CostAdvice]:
    """`rows`: of a statement by job, over the whole window."""
    found = []
    costs: dict[str, dict[str, Decimal]] = {}
    for row in rows:
        if row.group:
            classes = costs.setdefault(row.group, {})
            classes[row.kind] = classes.get(row.kind, Decimal(0)) + row.amount
    for job, classes in sorted(costs.items()):
        active, idle = (classes.get(f"allocated-{kind}", Decimal(0)) for kind in ("active", "idle"))
        use = measured.get(job)
        if idle + active and idle / (idle + active) >= _IDLE_SHARE:
            share = idle / (idle + active)
            evidence = f"its GPUs did nothing in {share:.0%} of the measured time"
            found.append(CostAdvice(f"job {job}", "stop it while it is idle", evidence, idle))
        if use is not None and is_underused(use.utilisation):
            found += _smaller(job, use, idle + active)
    return _worth_it(found)


def node_advice(rows: Iterable[CostRow], machines: Sequence[Machine], window: TimeWindow) -> list[CostAdvice]:
    """`rows`: of a statement by node. Nodes that are kept for a few pods that would fit on others."""
    held: dict[str, Decimal] = {}
    totals: dict[str, Decimal] = {}
    for row in rows:
        totals[row.group] = totals.get(row.group, Decimal(0)) + row.amount
        if row.kind.startswith("allocated") or row.kind == "startup":
            held[row.group] = held.get(row.group, Decimal(0)) + row.gpu_hours
    found = []
    for machine in machines:
        hours = _hours(machine, window) * len(machine.devices)
        used = held.get(machine.name, Decimal(0))
        if hours < _LEAST_HOURS or not used or used / hours > _FEW_GPUS:
            continue
        free = sum(
            (_hours(one, window) * len(one.devices) - held.get(one.name, Decimal(0)) for one in machines), Decimal(0)
        ) - (hours - used)
        if free < used:
            continue
        evidence = f"pods held {used / hours:.0%} of its GPUs, and other nodes had {free:,.0f} free GPU-hours"
        found.append(
            CostAdvice(
                f"node {machine.name}", "move its pods and remove it", evidence, totals.get(machine.name, _LEAST)
            )
        )
    return _worth_it(found)


def commitment_advice(
    machines: Sequence[Machine], curves: Mapping[str, PriceCurve], window: TimeWindow
) -> list[CostAdvice]:
    """For instance types of which the catalogue has an example of a discount for a year."""
    discounts = {
        find.type: one.discount
        for one in catalog().commitments
        if one.years == 1 and (find := find_instance(one.instance)) is not None
    }
    found = []
    for name, discount in sorted(discounts.items()):
        of_type = [
            one for one in machines if one.instance_type == name and one.capacity == "on-demand" and one.name in curves
        ]
        load = _load(of_type, window)
        if not load or not any(load):
            continue
        first = of_type[0]
        by_hour = curves[first.name].rate(max(window.start_ms, first.start_ms))
        level = commitment_level(load, by_hour * (1 - discount), by_hour)
        if level.nodes:
            what = f"commit to {level.nodes} of up to {max(load)} nodes for a year, and pay the rest by the hour"
            evidence = f"{level.nodes} ran in nearly every hour; a year took {discount:.0%} off the list price once"
            found.append(CostAdvice(f"instance type {name}", what, evidence, level.on_demand_only - level.cost))
    return _worth_it(found)


def spot_advice(
    rows: Iterable[CostRow], records: Records, file: PriceFile, restartable: Iterable[str]
) -> list[CostAdvice]:
    """`rows`: of a statement by job; `restartable`: jobs that write checkpoints. Where a spot price is known."""
    able = set(restartable)
    types = {one.name: one for one in records.machines}
    rates = {one.instance_type: one.per_hour for one in file.spot}
    places: dict[str, Machine] = {}
    for held in records.holdings:
        machine = types.get(held.machine)
        if machine is not None and machine.capacity == "on-demand" and machine.instance_type in rates:
            places[f"{held.holder.namespace}/{held.holder.job}"] = machine
    spent: dict[str, Decimal] = {}
    for row in rows:
        if row.kind.startswith("allocated") and row.group in able & places.keys():
            spent[row.group] = spent.get(row.group, Decimal(0)) + row.amount
    found = []
    for job, amount in sorted(spent.items()):
        instance = find_instance(places[job].instance_type)
        listed = instance.usd if instance is not None else None
        if listed is not None and rates[places[job].instance_type] < listed:
            part = 1 - rates[places[job].instance_type] / listed
            evidence = f"it writes checkpoints, and spot capacity costs {part:.0%} less"
            found.append(CostAdvice(f"job {job}", "run it on spot nodes", evidence, amount * part))
    return _worth_it(found)


def right_size(use: MeasuredUse) -> RightSize | None:
    """None if the model of GPU is not known."""
    model = find_model(use.model)
    if model is None:
        return None
    used_gb = use.memory_gib * _GIB_PER_GB
    evidence = f"{use.utilisation:.0%} utilisation, at most {use.memory_gib:,.0f} GiB of {model.memory_gb} GB"
    layout = model.mig_layout()
    advised = slice_for(layout, Decimal(model.memory_gb), used_gb, use.activity) if layout is not None else None
    part = Decimal(0)
    if advised is not None and layout is not None and (profile := layout.profile(advised.profile)) is not None:
        part = 1 - Decimal(profile.width) / layout.memory_slices
    return RightSize(model, evidence, advised, part, cheaper_model(model, used_gb, use.utilisation))


def _smaller(job: str, use: MeasuredUse, spent: Decimal) -> Iterable[CostAdvice]:
    found = right_size(use)
    if found is None:
        return
    if found.instance is not None:
        what = f"give it a {found.instance.profile} instead of a GPU ({found.instance.per_gpu} fit a GPU)"
        yield CostAdvice(f"job {job}", what, found.evidence, spent * found.saved)
    elif found.cheaper is not None:
        part = 1 - usd_of_model(found.cheaper) / usd_of_model(found.model)
        yield CostAdvice(f"job {job}", f"run it on {found.cheaper.name}", found.evidence, spent * part)


def _load(machines: Iterable[Machine], window: TimeWindow) -> list[int]:
    """Machines in each whole hour of the window."""
    hours = window.length_ms // HOUR_MS
    load = [0] * hours
    for machine in machines:
        end = window.end_ms if machine.end_ms is None else min(machine.end_ms, window.end_ms)
        first = max(0, machine.start_ms - window.start_ms) // HOUR_MS
        for hour in range(first, min(hours, -(-(end - window.start_ms) // HOUR_MS))):
            load[hour] += 1
    return load


def _hours(machine: Machine, window: TimeWindow) -> Decimal:
    end = window.end_ms if machine.end_ms is None else min(machine.end_ms, window.end_ms)
    return Decimal(max(0, end - max(machine.start_ms, window.start_ms))) / HOUR_MS


def _worth_it(found: Iterable[CostAdvice]) -> list[CostAdvice]:
    return sorted(
        (one for one in found if cents(one.saving) >= _LEAST), key=lambda one: (-one.saving, one.about, one.what)
    )
