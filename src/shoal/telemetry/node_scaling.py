"""Measures the provisioning of nodes: nodes by phase, their cost, refused requests, and how long nodes start."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from shoal.prometheus.families import MetricHead
from shoal.prometheus.registry import Registry

_START_S = (10.0, 30.0, 60.0, 120.0, 180.0, 300.0, 480.0, 600.0, 900.0, 1800.0)


class NodeFigures(Protocol):
    @property
    def nodes(self) -> Mapping[tuple[str, str], int]: ...

    @property
    def usd_per_hour(self) -> Mapping[tuple[str, str], float]: ...

    @property
    def waiting_pods(self) -> int: ...

    @property
    def unprovided_pods(self) -> int: ...


class NodeCounts(Protocol):
    @property
    def requests_refused(self) -> Mapping[str, int]: ...

    @property
    def nodes_removed(self) -> Mapping[tuple[str, str], int]: ...


def measure_node_scaling(
    registry: Registry, read: Callable[[], NodeFigures], counts: NodeCounts
) -> Callable[[str, str, float], None]:
    """Returns what to call for each phase of a node that has started."""

    def gauge(name: str, words: str, labels: tuple[str, ...] = ()) -> MetricHead:
        return MetricHead("gauge", f"shoal_node_scaling_{name}", words, labels)

    def counter(name: str, words: str, labels: tuple[str, ...]) -> MetricHead:
        return MetricHead("counter", f"shoal_node_scaling_{name}_total", words, labels)

    registry.reads(
        gauge("nodes", "Nodes of NodePools by phase.", ("nodepool", "phase")), lambda: list(read().nodes.items())
    )
    registry.reads(
        gauge("cost_usd_per_hour", "The price of provisioned nodes.", ("nodepool", "capacity_type")),
        lambda: list(read().usd_per_hour.items()),
    )
    registry.reads(gauge("waiting_pods", "Pods that wait for nodes."), lambda: [((), read().waiting_pods)])
    registry.reads(
        gauge("unprovided_pods", "Pods for which no NodePool can provide a node."),
        lambda: [((), read().unprovided_pods)],
    )
    registry.reads(
        counter("refused_requests", "Requests that the cloud refused.", ("reason",)),
        lambda: [((reason,), count) for reason, count in counts.requests_refused.items()],
    )
    registry.reads(
        counter("removed_nodes", "Nodes that were removed.", ("nodepool", "reason")),
        lambda: list(counts.nodes_removed.items()),
    )
    took = registry.histogram(
        "shoal_node_scaling_start_seconds",
        "How long new nodes took, by phase: launch, register, initialize, total.",
        _START_S,
        ("nodepool", "phase"),
    )
    return lambda pool, phase, seconds: took.of(pool, phase).observe(seconds)
