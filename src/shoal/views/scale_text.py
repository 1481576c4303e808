"""Prints node plans and pools as text for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from shoal.units.visible_text import visible
from shoal.views.scale_plan import PlannedNodeView, PodRefusalView, PoolView, RemovalView, ScalePlan

_MOST_PODS = 3
_MOST_REFUSALS = 20
_MOST_KEPT = 20


def show_plan(console: Console, plan: ScalePlan) -> None:
    """What would be provisioned or removed, and why."""
    if plan.provision:
        count = sum(len(node.pods) for node in plan.provision)
        nodes = _count(len(plan.provision), "node")
        _say(console, f"Provision {nodes} for {_count(count, 'pod')}, ${plan.usd_per_hour:,.2f}/h:")
        console.print(_nodes_table(plan.provision))
        _show_risks(console, plan.provision)
    for node, pods in sorted(_by_node(plan).items()):
        _say(console, f"Node {node} takes {_names(pods)}.")
    if plan.pending:
        _say(console, f"{_count(len(plan.pending), 'pod')} for which nothing is provisioned:")
        for refusal in plan.pending[:_MOST_REFUSALS]:
            _show_refusal(console, refusal)
        _show_rest(console, len(plan.pending) - _MOST_REFUSALS, "pod")
    for removal in plan.remove:
        _show_removal(console, removal)
    if not plan.provision and not plan.remove:
        _say(console, "No node has to be provisioned or removed.")
    if plan.kept and not plan.provision:
        _say(console, "Nodes that stay:")
        for name, why in sorted(plan.kept.items())[:_MOST_KEPT]:
            _say(console, f"  {name}: {why}")
        _show_rest(console, len(plan.kept) - _MOST_KEPT, "node")
    for note in plan.notes:
        _say(console, note)


def show_pools(console: Console, pools: Sequence[PoolView], *, has_headings: bool = True) -> None:
    """One row for each pool."""
    if not pools:
        _say(console, "no node pools found")
        return
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=has_headings, header_style="dim")
    for name in ("POOL", "WEIGHT", "NODES", "STARTING", "GPUS", "$/H", "TYPES", "CHEAPEST"):
        table.add_column(name, justify="left" if name in ("POOL", "CHEAPEST") else "right")
    for pool in pools:
        table.add_row(
            pool.name,
            str(pool.weight),
            str(pool.nodes),
            str(pool.starting),
            str(pool.gpus),
            f"{pool.usd_per_hour:,.2f}",
            str(pool.instance_types),
            pool.cheapest or "-",
        )
    console.print(table)
    for pool in pools:
        for name, left in pool.limits.items():
            _say(console, f"pool {pool.name}: limit {name}: {left}")
        if pool.disruptions_allowed is not None:
            _say(console, f"pool {pool.name}: {pool.policy}, {pool.disruptions_allowed} at a time")
        if pool.fault:
            _say(console, f"pool {pool.name} can serve no pod: {pool.fault}")


def _say(console: Console, text: str) -> None:
    """Text with brackets is text, and no markup."""
    console.print(visible(text, keeps_blanks=True), markup=False)


def _nodes_table(nodes: Sequence[PlannedNodeView]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for name in ("NODES", "POOL", "TYPE", "ZONE", "CAPACITY", "$/H", "PODS"):
        table.add_column(name, justify="right" if name in ("NODES", "$/H") else "left")
    alike = Counter((node.pool, node.instance_type, node.zone, node.capacity_type, node.usd_per_hour) for node in nodes)
    for (pool, kind, zone, capacity_type, price), count in alike.items():
        pods = [
            pod
            for node in nodes
            if (node.pool, node.instance_type, node.zone, node.capacity_type) == (pool, kind, zone, capacity_type)
            for pod in node.pods
        ]
        table.add_row(str(count), pool, kind, zone, capacity_type, f"{price * count:,.2f}", _names(pods, 1))
    return table


def _show_risks(console: Console, nodes: Sequence[PlannedNodeView]) -> None:
    """What interruptions cost, and what was not chosen because of them."""
    risk = sum(node.interruption_usd_per_hour for node in nodes)
    if risk:
        _say(console, f"Interruptions of these nodes lose work worth ${risk:,.2f}/h in expectation.")
    for words in dict.fromkeys(node.passed_over for node in nodes if node.passed_over):
        _say(console, f"Not chosen: {words}.")


def _show_refusal(console: Console, refusal: PodRefusalView) -> None:
    _say(console, f"  {refusal.pod}" + (f": {refusal.reason}" if refusal.reason else ""))
    for pool, why in sorted(refusal.pools.items()):
        _say(console, f"    pool {pool}: {why}")


def _show_removal(console: Console, removal: RemovalView) -> None:
    saved = removal.saved_usd_per_hour
    money = f"saves ${saved:,.2f}/h" if saved >= 0 else f"costs ${-saved:,.2f}/h"
    _say(console, f"Remove {_names(removal.nodes, 10)}: {removal.why}; {money}.")
    if removal.replacements:
        _say(console, "Before that, provision:")
        console.print(_nodes_table(removal.replacements))


def _show_rest(console: Console, left: int, what: str) -> None:
    if left > 0:
        _say(console, f"  and {_count(left, f'more {what}')}")


def _by_node(plan: ScalePlan) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for pod, node in plan.on_existing.items():
        found.setdefault(node, []).append(pod)
    return found


def _names(names: Sequence[str], most: int = _MOST_PODS) -> str:
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most:,} more"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"
