"""Prints `nvidia-smi --query-gpu=... --format=csv`: one line per GPU, with the requested fields."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from shoal.data.gpus import find_model
from shoal.embedded.gpus.smi_view import GpuView, Process, SeenGpu

_NONE = "[N/A]"
_Value = str | int | float | None


class QueryError(Exception):
    """An unknown field, with nvidia-smi's message."""


_Get = Callable[[SeenGpu, GpuView], _Value]
_GPU: Mapping[str, tuple[str, _Get]] = {
    "timestamp": ("", lambda _, view: view.at or None),
    "driver_version": ("", lambda _, view: view.driver),
    "count": ("", lambda _, view: len(view.gpus)),
    "name": ("", lambda gpu, _: gpu.name),
    "index": ("", lambda gpu, _: gpu.index),
    "uuid": ("", lambda gpu, _: gpu.uuid),
    "serial": ("", lambda gpu, _: gpu.serial or None),
    "pci.bus_id": ("", lambda gpu, _: gpu.pci),
    "pstate": ("", lambda _g, _s: "P0"),
    "persistence_mode": ("", lambda _g, _s: "Enabled"),
    "compute_mode": ("", lambda _g, _s: "Default"),
    "display_active": ("", lambda _g, _s: "Disabled"),
    "compute_cap": ("", lambda gpu, _: _capability(gpu)),
    "mig.mode.current": ("", lambda gpu, _: _mig_mode(gpu)),
    "mig.mode.pending": ("", lambda gpu, _: _mig_mode(gpu)),
    "ecc.mode.current": ("", lambda _g, _s: "Enabled"),
    "ecc.errors.uncorrected.volatile.total": ("", lambda gpu, _: gpu.double_bit_errors),
    "ecc.errors.corrected.volatile.total": ("", lambda _g, _s: 0),
    "memory.total": ("MiB", lambda gpu, _: gpu.memory_mib),
    "memory.reserved": ("MiB", lambda gpu, _: gpu.reserved_mib),
    "memory.used": ("MiB", lambda gpu, _: gpu.used_mib),
    "memory.free": ("MiB", lambda gpu, _: gpu.memory_mib - gpu.reserved_mib - gpu.used_mib),
    "utilization.gpu": ("%", lambda gpu, _: None if gpu.is_mig else gpu.util_percent),
    "utilization.memory": ("%", lambda gpu, _: None if gpu.is_mig else round(gpu.util_percent * 0.45)),
    "temperature.gpu": ("", lambda gpu, _: gpu.temperature_c),
    "temperature.memory": ("", lambda gpu, _: gpu.memory_temperature_c),
    "power.draw": ("W", lambda gpu, _: gpu.power_w),
    "power.limit": ("W", lambda gpu, _: None if gpu.power_limit_w is None else float(gpu.power_limit_w)),
    "clocks.current.sm": ("MHz", lambda gpu, _: gpu.sm_mhz),
    "clocks.current.memory": ("MHz", lambda gpu, _: gpu.memory_mhz),
    "fan.speed": ("%", lambda _g, _s: None),
}
_ALSO = {
    "gpu_name": "name",
    "gpu_uuid": "uuid",
    "gpu_bus_id": "pci.bus_id",
    "gpu_serial": "serial",
    "clocks.sm": "clocks.current.sm",
    "clocks.mem": "clocks.current.memory",
}
_APP: Mapping[str, tuple[str, Callable[[SeenGpu, Process], _Value]]] = {
    "gpu_name": ("", lambda gpu, _: gpu.name),
    "gpu_uuid": ("", lambda gpu, _: gpu.uuid),
    "gpu_bus_id": ("", lambda gpu, _: gpu.pci),
    "pid": ("", lambda _, one: one.pid),
    "process_name": ("", lambda _, one: one.name),
    "used_gpu_memory": ("MiB", lambda _, one: one.memory_mib),
    "used_memory": ("MiB", lambda _, one: one.memory_mib),
}


def query_gpus(view: GpuView, fields: str, form: Sequence[str]) -> str:
    names = [name.strip() for name in fields.split(",")]
    columns = [_GPU.get(_ALSO.get(name, name)) for name in names]
    found = [column for column in columns if column is not None]
    _require(names, columns)
    head = [_titled(_ALSO.get(name, name), unit) for name, (unit, _) in zip(names, found, strict=True)]
    rows = [[_spelled(get(gpu, view), unit, form) for unit, get in found] for gpu in view.gpus]
    return _csv(head, rows, form)


def query_apps(view: GpuView, fields: str, form: Sequence[str]) -> str:
    names = [name.strip() for name in fields.split(",")]
    columns = [_APP.get(name) for name in names]
    found = [column for column in columns if column is not None]
    _require(names, columns)
    head = [_titled(name, unit) for name, (unit, _) in zip(names, found, strict=True)]
    rows = [[_spelled(get(gpu, one), unit, form) for unit, get in found] for gpu in view.gpus for one in gpu.processes]
    return _csv(head, rows, form)


def _require(names: Sequence[str], columns: Sequence[object]) -> None:
    for name, column in zip(names, columns, strict=True):
        if column is None:
            raise QueryError(f'Field "{name}" is not a valid field to query.\n')


def _titled(name: str, unit: str) -> str:
    return f"{name} [{unit}]" if unit else name


def _spelled(value: _Value, unit: str, form: Sequence[str]) -> str:
    if value is None:
        return _NONE
    text = f"{value:.2f}" if isinstance(value, float) else str(value)
    return f"{text} {unit}" if unit and "nounits" not in form else text


def _csv(head: Sequence[str], rows: Sequence[Sequence[str]], form: Sequence[str]) -> str:
    lines = [*([] if "noheader" in form else [head]), *rows]
    return "".join(f"{', '.join(line)}\n" for line in lines)


def _mig_mode(gpu: SeenGpu) -> str | None:
    model = find_model(gpu.model) if gpu.model else None
    if gpu.is_mig:
        return "Enabled"
    return "Disabled" if model is None or model.mig else None


def _capability(gpu: SeenGpu) -> str | None:
    model = find_model(gpu.model) if gpu.model else None
    return model.compute_capability if model is not None else None
