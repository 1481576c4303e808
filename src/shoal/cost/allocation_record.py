"""The record of OpenCost's API for one allocation, and the exact sums from which it is written.

Shoal measures the use of GPUs and not that of CPUs and memory, so use and efficiency of these are absent, and never 0.
"""

from __future__ import annotations

from decimal import Decimal

import msgspec

from shoal.cost.statement import CostRow
from shoal.units.calendar_windows import HOUR_MS, rfc3339

_BYTES_PER_MIB = 2**20
_MINUTE_MS = 60_000
_ACTIVE, _IDLE_HELD = "allocated-active", "allocated-idle"


class AllocationProperties(msgspec.Struct, omit_defaults=True, rename="camel"):
    cluster: str = ""
    node: str = ""
    namespace: str = ""
    controller_kind: str = ""
    controller: str = ""
    pod: str = ""
    team: str = ""
    queue: str = ""
    gang: str = ""
    model: str = ""
    labels: dict[str, str] = {}


class SetWindow(msgspec.Struct, frozen=True):
    start: str
    end: str


class Allocation(msgspec.Struct, rename="camel"):
    """As OpenCost writes it. None: not measured."""

    name: str
    properties: AllocationProperties
    window: SetWindow
    start: str = ""
    end: str = ""
    minutes: float = 0.0
    cpu_cores: float = 0.0
    cpu_core_request_average: float = 0.0
    cpu_core_usage_average: float | None = None
    cpu_core_hours: float = 0.0
    cpu_cost: float = 0.0
    cpu_cost_adjustment: float = 0.0
    cpu_cost_idle: float = 0.0
    cpu_efficiency: float | None = None
    gpu_count: float = 0.0
    gpu_hours: float = 0.0
    gpu_request_average: float = 0.0
    gpu_usage_average: float | None = None
    gpu_cost: float = 0.0
    gpu_cost_adjustment: float = 0.0
    gpu_cost_idle: float = 0.0
    gpu_efficiency: float | None = None
    ram_bytes: float = 0.0
    ram_byte_request_average: float = 0.0
    ram_byte_usage_average: float | None = None
    ram_byte_hours: float = 0.0
    ram_cost: float = 0.0
    ram_cost_adjustment: float = 0.0
    ram_cost_idle: float = 0.0
    ram_efficiency: float | None = None
    pv_cost: float = 0.0
    network_cost: float = 0.0
    load_balancer_cost: float = 0.0
    shared_cost: float = 0.0
    external_cost: float = 0.0
    total_cost: float = 0.0
    total_efficiency: float | None = None


AllocationSet = dict[str, Allocation]


class AllocationSums:
    """The exact amounts of an allocation while it is added up."""

    def __init__(self) -> None:
        self.properties: AllocationProperties | None = None
        self.start_ms, self.end_ms = 0, 0
        self.core_ms = self.mib_ms = 0
        self.cpu = self.gpu = self.ram = self.shared = self.external = Decimal(0)
        self.gpu_hours = self.used = self.measured = self.held_idle = Decimal(0)

    @property
    def total(self) -> Decimal:
        return self.cpu + self.gpu + self.ram + self.shared + self.external

    def cover(self, start_ms: int, end_ms: int) -> None:
        self.start_ms = min(self.start_ms, start_ms) if self.end_ms else start_ms
        self.end_ms = max(self.end_ms, end_ms)

    def describe(self, found: AllocationProperties) -> None:
        self.properties = found if self.properties is None else _common(self.properties, found)

    def add_row(self, row: CostRow) -> None:
        self.cpu += row.cpu_amount
        self.gpu += row.gpu_amount
        self.ram += row.memory_amount
        self.gpu_hours += row.gpu_hours
        if row.kind in (_ACTIVE, _IDLE_HELD):
            self.measured += row.gpu_amount
            self.used += row.used_amount
        if row.kind == _IDLE_HELD:
            self.held_idle += row.gpu_amount


def allocation_of(
    name: str,
    sums: AllocationSums,
    window: SetWindow,
    span: tuple[int, int],
    idle: tuple[Decimal, Decimal, Decimal] | None,
) -> Allocation:
    start, end = (sums.start_ms, sums.end_ms) if sums.end_ms else span
    length = max(end - start, 1)
    cpu, gpu, ram = idle or (Decimal(0), Decimal(0), Decimal(0))
    gpus = float(sums.gpu_hours) * HOUR_MS / length
    efficiency = float(sums.used / sums.measured) if sums.measured else None
    cores, ram_bytes = sums.core_ms / 1000 / length, sums.mib_ms * _BYTES_PER_MIB / length
    return Allocation(
        name=name,
        properties=sums.properties or AllocationProperties(),
        window=window,
        start=rfc3339(start),
        end=rfc3339(end),
        minutes=length / _MINUTE_MS,
        cpu_cores=cores,
        cpu_core_request_average=cores,
        cpu_core_hours=sums.core_ms / 1000 / HOUR_MS,
        cpu_cost=float(sums.cpu + cpu),
        cpu_cost_idle=float(cpu),
        gpu_count=gpus,
        gpu_hours=float(sums.gpu_hours),
        gpu_request_average=gpus,
        gpu_usage_average=None if efficiency is None else gpus * efficiency,
        gpu_cost=float(sums.gpu + gpu),
        gpu_cost_idle=float(sums.held_idle + gpu),
        gpu_efficiency=efficiency,
        ram_bytes=ram_bytes,
        ram_byte_request_average=ram_bytes,
        ram_byte_hours=sums.mib_ms * _BYTES_PER_MIB / HOUR_MS,
        ram_cost=float(sums.ram + ram),
        ram_cost_idle=float(ram),
        shared_cost=float(sums.shared),
        external_cost=float(sums.external),
        total_cost=float(sums.total + cpu + gpu + ram),
        total_efficiency=efficiency,
    )


def _common(one: AllocationProperties, other: AllocationProperties) -> AllocationProperties:
    """Those in which both agree."""
    return AllocationProperties(
        **{
            name: getattr(one, name)
            for name in AllocationProperties.__struct_fields__
            if getattr(one, name) == getattr(other, name)
        }
    )
