"""Reads what the driver and the kernel log say about every GPU of this node, and writes it as text with advice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec

from shoal.agent.health.kernel_log import LoggedXid, of_address
from shoal.agent.patient_call import SilentDriverError
from shoal.devices.device_health import DeviceHealth, HealthCause, NodeHealth
from shoal.devices.port import DriverVersions, GpuDriver, GpuReadings, InstalledGpu, LostGpu
from shoal.devices.xids import ADVICE, xid_of

_UNKNOWN = "-"


class LoggedError(msgspec.Struct, frozen=True):
    xid: int
    times: int
    meaning: str
    advice: str


class GpuReport(msgspec.Struct, frozen=True):
    gpu: InstalledGpu
    readings: GpuReadings | None
    """None if the GPU was lost after it was listed."""
    causes: tuple[HealthCause, ...]
    """Why it is unhealthy, and warnings."""
    logged: tuple[LoggedError, ...]
    """The Xids of the kernel log since the machine started. The GPU can have recovered from them."""


class NodeReport(msgspec.Struct, frozen=True):
    versions: DriverVersions
    gpus: tuple[GpuReport, ...]
    lost: tuple[LostGpu, ...]

    @property
    def is_healthy(self) -> bool:
        return not self.lost and not any(cause.is_unhealthy for one in self.gpus for cause in one.causes)


def node_report(driver: GpuDriver, log: Sequence[LoggedXid] = ()) -> NodeReport:
    listed = driver.gpus()
    readings = {gpu.uuid: _read(driver, gpu) for gpu in listed.gpus}
    health = NodeHealth()
    health.update(listed, readings, 0.0)
    lost = [*listed.lost, *(one for one in readings.values() if isinstance(one, LostGpu))]
    found = tuple(_report(gpu, readings[gpu.uuid], health.of(gpu.uuid), log) for gpu in listed.gpus)
    return NodeReport(driver.versions(), found, tuple(sorted(lost, key=lambda one: one.index)))


def _read(driver: GpuDriver, gpu: InstalledGpu) -> GpuReadings | LostGpu:
    try:
        return driver.read(gpu.uuid)
    except SilentDriverError as error:
        return LostGpu(gpu.index, gpu.uuid, error.what)


def _report(
    gpu: InstalledGpu, readings: GpuReadings | LostGpu, health: DeviceHealth, log: Sequence[LoggedXid]
) -> GpuReport:
    counted = Counter(one.xid for one in of_address(gpu.pci, log))
    return GpuReport(
        gpu=gpu,
        readings=None if isinstance(readings, LostGpu) else readings,
        causes=health.causes,
        logged=tuple(
            LoggedError(number, times, xid_of(number).meaning, xid_of(number).advice)
            for number, times in counted.items()
        ),
    )


def report_text(report: NodeReport) -> Iterator[str]:
    """One line per GPU, MIG instance and fault."""
    cuda = f", CUDA up to {report.versions.cuda}" if report.versions.cuda else ""
    yield f"driver {report.versions.driver}{cuda}"
    for one in report.gpus:
        if one.readings is not None:
            yield f"GPU {one.gpu.index}: {_gpu(one.gpu, one.readings)}"
            for cause in one.causes:
                yield f"  {'unhealthy' if cause.is_unhealthy else 'warning'}: {cause.message}: {cause.advice}"
        for error in one.logged:
            times = f" ({error.times} times)" if error.times > 1 else ""
            yield f"  in the kernel log: Xid {error.xid}{times}: {error.meaning}: {error.advice}"
        for instance in one.gpu.instances:
            yield f"  MIG {instance.profile} {instance.uuid}"
    for lost in report.lost:
        yield f"GPU {lost.index}: does not respond: {lost.reason}: {ADVICE['power-cycle']}"
    if not report.gpus and not report.lost:
        yield "this machine has no NVIDIA GPU"


def _gpu(gpu: InstalledGpu, readings: GpuReadings) -> str:
    memory = f"{_number(readings.used_mib)} of {_number(gpu.memory_mib)} MiB"
    heat = f"{_number(readings.temperature_c)} C"
    power = f"{_number(None if readings.power_w is None else round(readings.power_w))} W"
    mode = ", MIG" if gpu.is_mig else ""
    return f"{gpu.name} {gpu.uuid} at {gpu.pci}{mode}: {memory}, {heat}, {power}"


def _number(value: int | None) -> str:
    return _UNKNOWN if value is None else str(value)
