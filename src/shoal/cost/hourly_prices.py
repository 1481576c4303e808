"""What nodes and the devices of pods cost in this hour, for the metrics that OpenCost's exporter has."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal

import msgspec

from shoal.cost.prices.billing import billing
from shoal.cost.prices.machine_prices import machine_key, machine_prices
from shoal.cost.records import FULL_SHARE, PPM, Holding, Machine
from shoal.cost.report import PriceBasis
from shoal.cost.weights import weights_of
from shoal.units.calendar_windows import HOUR_MS, TimeWindow


class HourlyPrice(msgspec.Struct, frozen=True):
    """Of one node."""

    node: str
    instance_type: str
    region: str
    gpus: int
    per_gpu: Decimal
    per_core: Decimal
    per_gib: Decimal
    total: Decimal


class HeldGpus(msgspec.Struct, frozen=True):
    namespace: str
    pod: str
    node: str
    team: str
    gpus: float


def hourly_prices(machines: Sequence[Machine], basis: PriceBasis, now_ms: int) -> list[HourlyPrice]:
    """Nodes without a known price are left out."""
    prices = machine_prices(machines, basis.file, basis.today, basis.measured_watts)
    known = [one for one in machines if machine_key(one) in prices.by_machine]
    hour = now_ms // HOUR_MS * HOUR_MS
    curves = billing(known, prices, basis.file, TimeWindow(hour, hour + HOUR_MS)).curves
    return [_price(one, curves[one.name].rate(now_ms), basis) for one in known]


def held_gpus(holdings: Iterable[Holding]) -> list[HeldGpus]:
    return [
        HeldGpus(
            one.holder.namespace,
            one.holder.pod,
            one.machine,
            one.holder.team,
            sum(device.share for device in one.devices) / FULL_SHARE,
        )
        for one in holdings
        if one.devices and one.end_ms is None
    ]


def _price(machine: Machine, rate: Decimal, basis: PriceBasis) -> HourlyPrice:
    gpus, weights = (
        len(machine.devices),
        weights_of(machine.model, len(machine.devices), machine.cpu_milli, machine.memory_mib, basis.mode),
    )
    cores, gib = Decimal(machine.cpu_milli) / 1000, Decimal(machine.memory_mib) / 1024
    return HourlyPrice(
        node=machine.name,
        instance_type=machine.instance_type,
        region=machine.region,
        gpus=gpus,
        per_gpu=_part(rate, weights.gpu, Decimal(gpus)),
        per_core=_part(rate, weights.cpu, cores),
        per_gib=_part(rate, weights.memory, gib),
        total=rate,
    )


def _part(rate: Decimal, weight: int, amount: Decimal) -> Decimal:
    return rate * weight / PPM / amount if amount else Decimal(0)
