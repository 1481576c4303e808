"""Metrics of what nodes cost and which GPUs pods hold, with the names and labels of OpenCost's exporter."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from typing import NamedTuple

from shoal.cost.budgets import BudgetLine
from shoal.cost.hourly_prices import HeldGpus, HourlyPrice
from shoal.cost.records import Machine
from shoal.prometheus.families import MetricHead, Values
from shoal.prometheus.registry import Registry

_LABELS = ("instance", "node", "instance_type", "region")
_MOST = 20_000


class CostFigures(NamedTuple):
    prices: Sequence[HourlyPrice] = ()
    machines: Sequence[Machine] = ()
    """All nodes, also those without a known price."""
    held: Sequence[HeldGpus] = ()
    budgets: Sequence[BudgetLine] = ()


def measure_prices(registry: Registry, read: Callable[[], CostFigures]) -> None:
    """`read` returns what was computed last, at once."""

    def of_nodes(name: str, help_: str, value: Callable[[HourlyPrice], Decimal | int]) -> None:
        head = MetricHead("gauge", name, help_, _LABELS, most=_MOST)

        def figures() -> Iterator[tuple[Values, float]]:
            for one in read().prices:
                yield (one.node, one.node, one.instance_type, one.region), float(value(one))

        registry.reads(head, figures)

    of_nodes("node_gpu_hourly_cost", "Price of one GPU of the node per hour.", lambda one: one.per_gpu)
    of_nodes("node_cpu_hourly_cost", "Price of one core of the node per hour.", lambda one: one.per_core)
    of_nodes("node_ram_hourly_cost", "Price of one GiB of memory of the node per hour.", lambda one: one.per_gib)
    of_nodes("node_total_hourly_cost", "Price of the node per hour.", lambda one: one.total)
    of_nodes("node_gpu_count", "GPUs of the node.", lambda one: one.gpus)

    def spot() -> Iterator[tuple[Values, float]]:
        for one in read().machines:
            yield (one.name, one.name, one.instance_type, one.region), one.capacity == "spot"

    registry.reads(
        MetricHead("gauge", "kubecost_node_is_spot", "1 for a spot node, else 0.", _LABELS, most=_MOST), spot
    )

    def held() -> Iterator[tuple[Values, float]]:
        for one in read().held:
            yield (one.node, one.namespace, one.node, one.pod, one.team), one.gpus

    head = MetricHead(
        "gauge",
        "container_gpu_allocation",
        "GPUs that a pod holds; parts of a GPU by their share.",
        ("instance", "namespace", "node", "pod", "team"),
        most=100_000,
    )
    registry.reads(head, held)

    def of_budgets(name: str, help_: str, value: Callable[[BudgetLine], Decimal]) -> None:
        def figures() -> Iterator[tuple[Values, float]]:
            for one in read().budgets:
                kind, _, subject = one.subject.partition(" ")
                yield (kind, subject), float(value(one) / one.limit) if one.limit else 0.0

        registry.reads(MetricHead("gauge", name, help_, ("kind", "name"), most=_MOST), figures)

    of_budgets("shoal_budget_spent_ratio", "Spent this month, divided by the budget.", lambda one: one.spent)
    of_budgets(
        "shoal_budget_forecast_ratio", "Forecast of this month, divided by the budget.", lambda one: one.forecast
    )
