"""Metrics of the GPU operator, with the names of NVIDIA's."""

from __future__ import annotations

from collections.abc import Callable

from shoal.operator.progress.figures import OperatorFigures
from shoal.prometheus.families import MetricHead
from shoal.prometheus.registry import Registry

_P = "gpu_operator_"
_METRICS: tuple[tuple[MetricHead, Callable[[OperatorFigures], float]], ...] = (
    (MetricHead("gauge", f"{_P}gpu_nodes_total", "Nodes with GPUs."), lambda found: found.gpu_nodes),
    (
        MetricHead("gauge", f"{_P}reconciliation_status", "1: ready, 0: not ready, -1: no ClusterPolicy."),
        lambda found: found.state,
    ),
    (MetricHead("counter", f"{_P}reconciliation_total", "Passes over the policy."), lambda found: found.passes),
    (
        MetricHead("counter", f"{_P}reconciliation_failed_total", "Passes after which an object was refused or wrong."),
        lambda found: found.failed,
    ),
    (
        MetricHead(
            "gauge", f"{_P}reconciliation_last_success_ts_seconds", "When the policy was found ready last; 0: never."
        ),
        lambda found: found.succeeded_at_s,
    ),
    (
        MetricHead("gauge", f"{_P}reconciliation_has_nfd_labels", "1 if nodes have labels of node feature discovery."),
        lambda found: float(found.has_labels),
    ),
)


def measure_operator(registry: Registry, figures: OperatorFigures) -> None:
    for head, look in _METRICS:
        registry.reads(head, lambda look=look: [((), look(figures))])  # type: ignore[misc]
