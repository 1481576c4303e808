"""What nodes cost now, and whose GPUs do nothing."""

from __future__ import annotations

from shoal.policy.dashboards.grafana import Dashboard, Panel, PanelQuery, Unit, use

_HELD = "container_gpu_allocation * on (node) group_left () node_gpu_hourly_cost"
_ALL = "sum(node_gpu_count * on (node) node_gpu_hourly_cost)"
_HELD_USE = use('pod!=""')
_IDLE = f"(1 - avg by (namespace, pod) {_HELD_USE} / 100)"
_USD: Unit = "currencyUSD"

COST = Dashboard(
    "cost",
    "Cost",
    "Prices of nodes and of what pods hold, per hour. Statements of past months: shoal cost. Needs a history.",
    (
        Panel("Nodes per hour", (PanelQuery("sum(node_total_hourly_cost)"),), "stat", _USD, 6),
        Panel(
            "Nodes per month",
            (PanelQuery("sum(node_total_hourly_cost) * 730"),),
            "stat",
            _USD,
            6,
            "At the number of nodes and the prices of this moment.",
        ),
        Panel("Held GPUs per hour", (PanelQuery(f"sum({_HELD})"),), "stat", _USD, 6),
        Panel("Free GPUs per hour", (PanelQuery(f"{_ALL} - sum({_HELD})"),), "stat", _USD, 6),
        Panel(
            "Held GPUs by namespace",
            (PanelQuery(f"sum by (namespace) ({_HELD})", "{{namespace}}"),),
            unit=_USD,
            is_stacked=True,
            description="Per hour; parts of a GPU by their share.",
        ),
        Panel(
            "Held GPUs by team",
            (PanelQuery(f"sum by (team) ({_HELD})", "{{team}}"),),
            unit=_USD,
            is_stacked=True,
            description="The team of the namespace: its label shoal.dev/team or team.",
        ),
        Panel(
            "Idle part of held GPUs",
            (
                PanelQuery(
                    f"sum by (namespace) (({_HELD}) * on (namespace, pod) group_left () {_IDLE})", "{{namespace}}"
                ),
            ),
            unit=_USD,
            description="The price of what pods hold times the part in which their GPUs do nothing.",
        ),
        Panel(
            "Nodes by instance type",
            (PanelQuery("sum by (instance_type) (node_total_hourly_cost)", "{{instance_type}}"),),
            unit=_USD,
            is_stacked=True,
        ),
        Panel(
            "Spot part of the price",
            (
                PanelQuery(
                    "100 * sum(node_total_hourly_cost and on (node) (kubecost_node_is_spot == 1))"
                    " / sum(node_total_hourly_cost)"
                ),
            ),
            "stat",
            "percent",
        ),
        Panel(
            "Price of a GPU by instance type",
            (PanelQuery("max by (instance_type) (node_gpu_hourly_cost)"),),
            "table",
            _USD,
        ),
    ),
)
