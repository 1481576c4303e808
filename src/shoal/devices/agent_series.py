"""Writes the series that Shoal's exporter adds to those of the DCGM exporter.

The names follow the conventions of Prometheus: base units, and `_total` for counters. The labels are those of the DCGM
exporter for a GPU, so that both can be joined, without the name of the model, which has no place in each series.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from shoal.devices.dcgm_text import Entity, LabelNames, Value, entity_labels, family, spelled

_MODEL = "modelName"


class GpuFigures(msgspec.Struct, frozen=True):
    """The values of one GPU; None: unknown, and without a row."""

    entity: Entity
    responds: bool
    reading_age_s: float | None = None
    allocated_part: float | None = None
    allocated_s: float | None = None
    active_s: float | None = None
    idle_s: float | None = None
    energy_j: float | None = None
    throttled_s: Mapping[str, float] = {}
    """By reason."""
    xids: Mapping[int, int] = {}
    """How often each Xid error occurred since the agent started."""


class Series(msgspec.Struct, frozen=True):
    name: str
    kind: str
    words: str


RESPONDS = Series("shoal_gpu_responding", "gauge", "Whether the GPU responds: 1, or 0 if its last reading is too old.")
AGE = Series("shoal_gpu_last_reading_age_seconds", "gauge", "Time since the last reading of the GPU.")
PART = Series("shoal_gpu_allocated_ratio", "gauge", "The part of the GPU that pods hold.")
ALLOCATED = Series("shoal_gpu_allocated_seconds_total", "counter", "Time for which pods held the GPU, by their part.")
ACTIVE = Series("shoal_gpu_active_seconds_total", "counter", "Time for which the GPU was active.")
IDLE = Series("shoal_gpu_idle_seconds", "gauge", "Time since the GPU was last active.")
ENERGY = Series("shoal_gpu_energy_joules_total", "counter", "Energy that the GPU consumed since the driver was loaded.")
THROTTLED = Series("shoal_gpu_throttled_seconds_total", "counter", "Time for which the clocks were reduced, by reason.")
XIDS = Series("shoal_gpu_xid_errors_total", "counter", "Xid errors since the agent started.")
PODS = Series("shoal_agent_pod_devices_up", "gauge", "Whether the kubelet has answered which pods hold which devices.")
ALL = (RESPONDS, AGE, PART, ALLOCATED, ACTIVE, IDLE, ENERGY, THROTTLED, XIDS, PODS)


def agent_lines(gpus: Sequence[GpuFigures], names: LabelNames, *, has_pods: bool | None) -> list[str]:
    """`has_pods`: None if the kubelet is not asked."""
    labels = {id(gpu): _labels(gpu.entity, names) for gpu in gpus}

    def plain(series: Series, field: str) -> list[str]:
        values = ((labels[id(gpu)], getattr(gpu, field)) for gpu in gpus)
        return _lines(series, [(text, value) for text, value in values if value is not None])

    lines = _lines(RESPONDS, [(labels[id(gpu)], int(gpu.responds)) for gpu in gpus])
    lines += plain(AGE, "reading_age_s") + plain(PART, "allocated_part") + plain(ALLOCATED, "allocated_s")
    lines += plain(ACTIVE, "active_s") + plain(IDLE, "idle_s") + plain(ENERGY, "energy_j")
    lines += _lines(THROTTLED, list(_by_key("reason", [(labels[id(gpu)], gpu.throttled_s) for gpu in gpus])))
    lines += _lines(XIDS, list(_by_key("xid", [(labels[id(gpu)], gpu.xids) for gpu in gpus])))
    if has_pods is not None:
        lines += [f"# HELP {PODS.name} {PODS.words}", f"# TYPE {PODS.name} {PODS.kind}", f"{PODS.name} {int(has_pods)}"]
    return lines


def _labels(entity: Entity, names: LabelNames) -> str:
    return spelled(tuple(label for label in entity_labels(entity, "gpu", names) if label[0] != _MODEL))


def _by_key(
    label: str, found: Sequence[tuple[str, Mapping[str, float] | Mapping[int, int]]]
) -> Iterator[tuple[str, Value]]:
    for text, values in found:
        for key, value in sorted(values.items()):
            yield f"{text},{spelled(((label, str(key)),))}", value


def _lines(series: Series, rows: Sequence[tuple[str, Value]]) -> list[str]:
    return family(series.name, series.kind, series.words, rows) if rows else []
