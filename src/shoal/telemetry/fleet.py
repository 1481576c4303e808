"""Metrics of nodes, GPUs and pending pods, read from the scheduler's facts at each scrape."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

import numpy as np

from shoal.engine.cluster import Cluster
from shoal.engine.facts import GPU_MILLI, GPU_WHOLE
from shoal.prometheus.families import MetricHead, Values
from shoal.prometheus.registry import Registry

_GPUS = MetricHead(
    "gauge",
    "shoal_gpus",
    "GPUs by state: used, empty (nothing on them), broken_up (what is left of those that are used in part).",
    ("state",),
)
_NODES = MetricHead("gauge", "shoal_nodes", "Nodes by whether pods may be placed there.", ("state",))
_PENDING = MetricHead(
    "gauge",
    "scheduler_pending_pods",
    "Pods that wait: active (not tried yet), backoff (while others leave), unschedulable, gated.",
    ("queue",),
)
_MILLI = 1000


def measure_fleet(
    registry: Registry, cluster: Cluster, refused: Callable[[], Collection[str]], gated: Callable[[], int]
) -> None:
    """`refused`: pods that fitted no node; `gated`: the number of pods with scheduling gates."""

    def gpus() -> Iterator[tuple[Values, float]]:
        alive = cluster.alive
        total = float(cluster.total[alive, GPU_MILLI].sum()) / _MILLI
        free = max(0.0, float(cluster.free[alive, GPU_MILLI].sum()) / _MILLI)
        # Replicas of one device may be counted several times: at most the free capacity is empty.
        empty = min(float(np.maximum(cluster.free[alive, GPU_WHOLE], 0).sum()), free)
        yield ("used",), total - free
        yield ("empty",), empty
        yield ("broken_up",), free - empty

    def nodes() -> Iterator[tuple[Values, float]]:
        closed = int((cluster.alive & cluster.unschedulable).sum())
        yield ("open",), int(cluster.alive.sum()) - closed
        yield ("unschedulable",), closed

    def pending() -> Iterator[tuple[Values, float]]:
        waiting, nominated = cluster.pending, len(cluster.nominated)
        unschedulable = sum(1 for pod in refused() if pod in waiting)
        yield ("active",), max(0, len(waiting) - unschedulable)
        yield ("backoff",), nominated
        yield ("unschedulable",), unschedulable
        yield ("gated",), gated()

    for head, read in ((_GPUS, gpus), (_NODES, nodes), (_PENDING, pending)):
        registry.reads(head, read)
