"""Reads the exposition of a DCGM exporter as samples of devices.

Labels are read as Prometheus' text format defines them. A MIG instance is named by its GPU, its number and its pod, and
`DeviceRow.device` is the GPU; which part the pod holds is known by the ledger. Values that are no number, and metrics
that the history does not store, are ignored.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import msgspec

from shoal.store.history.sample_blocks import METRICS

FIELDS: Mapping[str, tuple[str, ...]] = {
    "util": ("DCGM_FI_DEV_GPU_UTIL",),
    "sm": ("DCGM_FI_PROF_SM_ACTIVE", "DCGM_FI_PROF_GR_ENGINE_ACTIVE"),
    "tensor": ("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE",),
    "dram": ("DCGM_FI_PROF_DRAM_ACTIVE",),
    "memory": ("DCGM_FI_DEV_FB_USED",),
    "power": ("DCGM_FI_DEV_POWER_USAGE",),
    "temperature": ("DCGM_FI_DEV_GPU_TEMP",),
    "xid": ("DCGM_FI_DEV_XID_ERRORS",),
}
"""The fields of each metric; the first that is there counts."""
_PLACE = {field: (METRICS.index(name), at) for name, fields in FIELDS.items() for at, field in enumerate(fields)}
_LONGEST_LINE, _MOST_LINES = 4096, 200_000
_MOST_LABELS = 64


class DeviceRow(msgspec.Struct):
    """The values of one GPU or MIG instance."""

    device: str
    instance: str
    """The number of the MIG instance; empty for a whole GPU."""
    namespace: str
    pod: str
    values: list[float | None]


def device_rows(text: str) -> list[DeviceRow]:
    """One row for each GPU and for each MIG instance; of a GPU that several pods share, the last pod is named."""
    found: dict[tuple[str, str], DeviceRow] = {}
    ranks: dict[tuple[str, str, int], int] = {}
    known: dict[str, dict[str, str]] = {}
    for line in text.splitlines()[:_MOST_LINES]:
        name = line.partition("{")[0]
        if name not in _PLACE or len(line) > _LONGEST_LINE:
            continue
        place, rank = _PLACE[name]
        labels, rest = _known_labels(line[len(name) + 1 :], known)
        device = labels.get("UUID") or labels.get("uuid", "")
        value = _number(rest)
        if not device or value is None:
            continue
        instance = labels.get("GPU_I_ID", "")
        row = found.get((device, instance))
        if row is None:
            row = found[device, instance] = DeviceRow(device, instance, "", "", [None] * len(METRICS))
        if labels.get("pod"):
            row.namespace, row.pod = labels.get("namespace", ""), labels["pod"]
        key = (device, instance, place)
        if rank <= ranks.get(key, rank):
            ranks[key] = rank
            row.values[place] = value
    return list(found.values())


def _number(text: str) -> float | None:
    words = text.split()
    if not words:
        return None
    try:
        value = float(words[0])
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _known_labels(text: str, known: dict[str, dict[str, str]]) -> tuple[dict[str, str], str]:
    """As `_labels`, but read once for all lines that have the same labels, as the metrics of one device mostly have."""
    written, brace, rest = text.rpartition("}")
    labels = known.get(written)
    if labels is not None:
        return labels, rest
    labels, behind = _labels(text)
    # All of `written` is labels, and the last brace closes them.
    if brace and behind == rest and "\\" not in written and written.count('"') % 2 == 0:
        known[written] = labels
    return labels, behind


def _labels(text: str) -> tuple[dict[str, str], str]:
    """The labels up to the closing brace, and what follows it."""
    labels: dict[str, str] = {}
    at = 0
    while at < len(text) and text[at] != "}" and len(labels) < _MOST_LABELS:
        equals = text.find('="', at)
        if equals < 0:
            return labels, ""
        name = text[at:equals].strip(", ")
        value, at = _quoted(text, equals + 2)
        labels[name] = value
        while at < len(text) and text[at] in ", ":
            at += 1
    return labels, text[at + 1 :]


def _quoted(text: str, start: int) -> tuple[str, int]:
    """The value that begins here, and where the text goes on behind its closing quote."""
    end = text.find('"', start)
    plain = text[start:end]
    if end >= 0 and "\\" not in plain:
        # Nearly all values: read at once, because exporters write thousands of lines.
        return plain, end + 1
    parts = list(_characters(text, start))
    return "".join(part for part, _ in parts), (parts[-1][1] if parts else start) + 1


def _characters(text: str, start: int) -> Iterator[tuple[str, int]]:
    at = start
    while at < len(text) and text[at] != '"':
        step = 2 if text[at] == "\\" and at + 1 < len(text) else 1
        found = text[at : at + step]
        at += step
        yield {"\\n": "\n", '\\"': '"', "\\\\": "\\"}.get(found, found), at
