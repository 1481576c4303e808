"""Reads what the driver says about every GPU of this node, and writes it as text."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from shoal.devices.port import DriverVersions, GpuDriver, GpuReadings, InstalledGpu, LostGpu

_UNKNOWN = "-"


class GpuReport(msgspec.Struct, frozen=True):
    gpu: InstalledGpu
    readings: GpuReadings | None
    """None if the GPU was lost after it was listed."""


class NodeReport(msgspec.Struct, frozen=True):
    versions: DriverVersions
    gpus: tuple[GpuReport, ...]
    lost: tuple[LostGpu, ...]


def node_report(driver: GpuDriver) -> NodeReport:
    listed = driver.gpus()
    found: list[GpuReport] = []
    lost = list(listed.lost)
    for gpu in listed.gpus:
        readings = driver.read(gpu.uuid)
        if isinstance(readings, LostGpu):
            lost.append(readings)
        found.append(GpuReport(gpu, None if isinstance(readings, LostGpu) else readings))
    return NodeReport(driver.versions(), tuple(found), tuple(sorted(lost, key=lambda one: one.index)))


def report_text(report: NodeReport) -> Iterator[str]:
    """One line per GPU and MIG instance."""
    cuda = f", CUDA up to {report.versions.cuda}" if report.versions.cuda else ""
    yield f"driver {report.versions.driver}{cuda}"
    for one in report.gpus:
        if one.readings is not None:
            yield f"GPU {one.gpu.index}: {_gpu(one.gpu, one.readings)}"
        for instance in one.gpu.instances:
            yield f"  MIG {instance.profile} {instance.uuid}"
    for lost in report.lost:
        yield f"GPU {lost.index}: does not respond: {lost.reason}"
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
