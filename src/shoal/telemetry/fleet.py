"""Metrics of nodes, GPUs and pending pods, read from the scheduler's facts at each scrape."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

import numpy as np

from shoal.engine.cluster import Cluster
from shoal.engine.facts import GPU_MILLI, GPU_WHOLE
from shoal.engine.gang_members import Gang
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
_GANGS = MetricHead(
    "gauge",
    "shoal_waiting_gangs",
    "Gangs that wait, by whether as many GPUs are free on open nodes as their missing pods need: free, short.",
    ("gpus",),
)
_UNSAVED = MetricHead(
    "gauge",
    "shoal_unsaved_work_seconds",
    "Time since a running pod with GPUs saved its work, of pods that say when or how often they save it.",
    ("namespace", "pod", "node"),
)
_MILLI = 1000


def measure_fleet(
    registry: Registry,
    cluster: Cluster,
    refused: Callable[[], Collection[str]],
    gated: Callable[[], int],
    seconds: Callable[[], float],
) -> None:
    """`refused`: pods that fitted no node; `gated`: the number of pods with scheduling gates; `seconds`: the clock of
    the cluster."""

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

    def gangs() -> Iterator[tuple[Values, float]]:
        is_open = cluster.alive & ~cluster.unschedulable
        free = int(np.maximum(cluster.free[is_open, GPU_MILLI], 0).sum())
        needs = [need for gang in cluster.gangs if (need := _missing_milli(cluster, gang))]
        fitting = sum(1 for need in needs if need <= free)
        yield ("free",), fitting
        yield ("short",), len(needs) - fitting

    def unsaved() -> Iterator[tuple[Values, float]]:
        now_s = seconds()
        for key, held in cluster.pods.items():
            says = held.who.saved_s is not None or held.who.saves_every_s
            if says and held.is_bound and held.ask.gpu_milli:
                namespace, _, name = key.partition("/")
                yield (namespace, name, cluster.names[held.row]), held.who.lost_s(now_s)

    figures = ((_GPUS, gpus), (_NODES, nodes), (_PENDING, pending), (_GANGS, gangs), (_UNSAVED, unsaved))
    for head, read in figures:
        registry.reads(head, read)


def _missing_milli(cluster: Cluster, gang: Gang) -> int:
    """The least compute of GPUs with which the gang has its minimum."""
    asks = sorted(cluster.pending[pod].charge.ask.gpu_milli for pod in gang.waiting if pod in cluster.pending)
    minimum = gang.facts.minimum if gang.facts is not None else 0
    missing = max(minimum - len(gang.running), 1)
    return sum(asks[:missing]) if len(asks) >= missing else 0
