"""Driver upgrades as they are at a moment, under the names of NVIDIA's operator: read at each scrape."""

from __future__ import annotations

from collections.abc import Callable

from shoal.operator.upgrades.figures import UpgradeFigures
from shoal.prometheus.families import MetricHead
from shoal.prometheus.registry import Registry

_FIGURES: tuple[tuple[str, str, Callable[[UpgradeFigures], int]], ...] = (
    ("in_progress", "Nodes whose driver is being upgraded.", lambda found: found.in_progress),
    ("done", "Nodes whose driver is current.", lambda found: found.done),
    ("failed", "Nodes whose driver upgrade has failed.", lambda found: found.failed),
    ("available", "Nodes whose driver upgrade may start now.", lambda found: found.available),
    ("pending", "Nodes whose driver upgrade waits.", lambda found: found.pending),
)


def measure_driver_upgrades(registry: Registry, read: Callable[[], UpgradeFigures]) -> None:
    for name, words, figure in _FIGURES:
        head = MetricHead("gauge", f"gpu_operator_nodes_upgrades_{name}", words)
        registry.reads(head, lambda figure=figure: [((), figure(read()))])  # type: ignore[misc]
