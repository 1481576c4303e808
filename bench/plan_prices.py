"""Compares the prices of Shoal's plans with the optimum and with both autoscalers' over small random clusters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import mean
from typing import Final, NamedTuple

from bench.random_clusters import Cluster, planning_input, random_cluster
from bench.scaling_oracles import cluster_autoscaler, karpenter, optimum
from shoal.autoscale.nodes.planner import plan_nodes

_ROUNDING: Final = 1e-9


class Prices(NamedTuple):
    """Per hour, of all plans for one cluster."""

    seed: int
    kind: str
    shoal: float
    optimum: float
    karpenter: float
    groups: float


def compared(seed: int) -> Prices:
    cluster: Cluster = random_cluster(seed)
    plan = plan_nodes(planning_input(cluster))
    price = float("inf") if plan.pending else plan.price
    return Prices(seed, cluster.kind, price, optimum(cluster), karpenter(cluster), cluster_autoscaler(cluster))


def price_lines(clusters: int) -> Iterator[str]:
    """The figures over so many clusters, each beside its bar."""
    found = [compared(seed) for seed in range(clusters)]
    over = [each.shoal / each.optimum - 1 for each in found]
    yield (
        f"price over the optimum, {clusters} small clusters: mean {100 * mean(over):.2f} % (bar <= 2 %), "
        f"worst {100 * max(over):.1f} % (bar <= 10 %)"
    )
    if min(over) < -_ROUNDING:
        yield "a plan costs less than the optimum: the planner and the optimum disagree about what a node holds"
    yield from _lines("Karpenter", found, [each.karpenter for each in found])
    yield from _lines("Cluster Autoscaler, least waste", found, [each.groups for each in found])


def _lines(name: str, found: Sequence[Prices], others: Sequence[float]) -> Iterator[str]:
    saved: dict[str, list[float]] = {}
    for each, other in zip(found, others, strict=True):
        saved.setdefault(each.kind, []).append(1 - each.shoal / other)
    shaped = [part for kind, parts in saved.items() if kind != "plain" for part in parts]
    dearer = sum(part < -_ROUNDING for parts in saved.values() for part in parts)
    yield (
        f"price against {name}: {100 * mean(shaped):.1f} % cheaper on average with gangs, fractions or MIG "
        f"(bar >= 8 %), more expensive in {dearer} of {len(found)} (bar 0)"
    )
    yield "  by kind: " + ", ".join(f"{kind} {100 * mean(parts):.1f} %" for kind, parts in saved.items())
