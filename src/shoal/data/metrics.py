"""The metrics that Shoal exports, with their labels and meaning. `python -m tools.metric_subjects` makes the table from
docs/metrics.md; a test compares them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from shoal.data.facts import Fact, load

FILE = "metrics.json"


class ExportedMetric(Fact, frozen=True, array_like=True):
    name: str
    type: str
    labels: str
    text: str


@cache
def exported_metrics() -> Mapping[str, ExportedMetric]:
    return {metric.name: metric for metric in load(FILE, tuple[ExportedMetric, ...])}
