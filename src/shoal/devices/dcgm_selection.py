"""Reads the file that selects the metrics of the DCGM exporter: `FIELD, type, help` in each line.

The messages of refusals are the exporter's. Whether a field exists is checked against DCGM's list of fields, so that a
file is accepted or refused as by the exporter, whether or not Shoal has a value for the field.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

import msgspec

from shoal.data.dcgm_fields import field_numbers, is_profiling
from shoal.units.errors import UserError
from shoal.units.go_csv import CsvError, records

XID_COUNT, CLOCK_EVENTS, HEALTH_STATUS, P2P_STATUS = (
    "DCGM_EXP_XID_ERRORS_COUNT",
    "DCGM_EXP_CLOCK_EVENTS_COUNT",
    "DCGM_EXP_GPU_HEALTH_STATUS",
    "DCGM_EXP_P2P_STATUS",
)
"""Metrics that the exporter computes itself."""
_OWN = frozenset({XID_COUNT, CLOCK_EVENTS, HEALTH_STATUS, P2P_STATUS})
METRIC_TYPES = frozenset({"gauge", "counter", "histogram", "summary", "label"})
_FIELDS = 3

Fault = Literal["syntax", "field-count", "unknown-field", "metric-type", "no-metrics", "configmap"]


class SelectedMetric(msgspec.Struct, frozen=True):
    """One line of the file."""

    field: str
    type: str
    """Of the metric; `label`: the value is a label of the other metrics."""
    help: str


class Selection(msgspec.Struct, frozen=True):
    counters: tuple[SelectedMetric, ...]
    exporter_counters: tuple[SelectedMetric, ...] = ()
    """Metrics that the exporter computes itself."""
    skipped: tuple[str, ...] = ()
    """Profiling fields that the GPUs do not support."""

    @property
    def label_fields(self) -> tuple[str, ...]:
        return tuple(counter.field for counter in self.counters if counter.type == "label")


class SelectionError(UserError):
    """The selection is refused, as the exporter refuses it."""

    def __init__(self, what: str, fault: Fault, *, fix: str = "") -> None:
        super().__init__(what, fix=fix)
        self.fault = fault


def selection_of_file(text: str, profiling: Collection[str]) -> Selection:
    """`profiling`: the profiling fields that the GPUs of the node support."""
    try:
        found = records(text)
    except CsvError as error:
        fault: Fault = "field-count" if "number of fields" in str(error) else "syntax"
        raise SelectionError(str(error), fault, fix="each line has three fields: FIELD, type, help") from error
    return _selection(found, profiling)


def selection_of_config_map(text: str, profiling: Collection[str]) -> Selection:
    """`text`: its key `metrics`. The exporter refuses one without a record, and one whose records it cannot read."""
    try:
        found = records(text)
    except CsvError as error:
        raise _no_metrics(str(error)) from error
    if not found:
        raise _no_metrics("the key metrics has no line with a field")
    return _selection(found, profiling)


def _no_metrics(why: str) -> SelectionError:
    return SelectionError("malformed configmap contents; err: no metrics found", "no-metrics", fix=why)


def config_map_name(text: str) -> tuple[str, str]:
    """The namespace and name in `NAMESPACE:NAME`."""
    namespace, colon, name = text.partition(":")
    if not colon or ":" in name:
        raise SelectionError(f"malformed configmap-data '{text}'", "configmap", fix="write NAMESPACE:NAME")
    return namespace, name


def _selection(found: list[list[str]], profiling: Collection[str]) -> Selection:
    numbers = field_numbers()
    supported = {numbers[name] for name in profiling if name in numbers}
    counters: list[SelectedMetric] = []
    own: list[SelectedMetric] = []
    skipped: list[str] = []
    for index, raw in enumerate(found):
        cells = [cell.strip(" ") for cell in raw]
        if len(cells) != _FIELDS:
            shown = " ".join(cells)
            raise SelectionError(
                f"malformed CSV record; err: failed to parse line {index} (`[{shown}]`), expected {_FIELDS} fields",
                "field-count",
                fix="write FIELD, type, help, and put a help with commas in quotes",
            )
        counter = SelectedMetric(*cells)
        number = numbers.get(counter.field)
        if number is None and counter.field in _OWN:
            own.append(counter)
        elif number is None:
            raise SelectionError(
                f"could not find DCGM field; err: unknown ExporterCounter field '{counter.field}'", "unknown-field"
            )
        elif is_profiling(number) and number not in supported:
            skipped.append(counter.field)
        elif counter.type not in METRIC_TYPES:
            raise SelectionError(
                f"could not find Prometheus metric type '{counter.type}'",
                "metric-type",
                fix=f"one of {', '.join(sorted(METRIC_TYPES))}",
            )
        else:
            counters.append(counter)
    return Selection(tuple(counters), tuple(own), tuple(skipped))
