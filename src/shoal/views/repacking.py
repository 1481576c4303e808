"""Compares the placements of a cluster's pods under several policies: a row for each, and a conclusion in words.

The conclusion names the policy that places most GPUs, then most pods, then costs least, then uses the fewest nodes, and
says what it gains over the present placement and over the next policy. Prices are those of the instance table; a node
without a price counts as a node and not as money.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal

import msgspec
from rich.table import Table
from rich.text import Text

from shoal.data.instances import catalog, find_instance
from shoal.engine.cluster import Cluster
from shoal.views.palette import shade
from shoal.views.top import NodeTop

AS_PLACED = "as placed now"
_TYPE = "node.kubernetes.io/instance-type"
_BEST = "bold green"


class Prices(msgspec.Struct, frozen=True):
    """What nodes cost per hour, by name; nodes without a price are absent."""

    usd: Mapping[str, Decimal]
    lists: Sequence[str] = ()
    """The price lists, each with its date."""

    def of(self, nodes: Iterable[str]) -> Decimal:
        return sum((self.usd.get(node, Decimal(0)) for node in nodes), Decimal(0))


class RepackedRow(msgspec.Struct, frozen=True, rename="camel"):
    policy: str
    placed: int
    waiting: int
    gpus_held: float
    gpus: int
    slices_held: int
    """Fixed MIG instances."""
    slices: int
    devices_held: int
    """Devices that resource claims hold, on nodes whose driver publishes GPUs."""
    devices: int
    """0 where devices overlap, so that their number is not known."""
    nodes_used: int
    """Nodes with GPUs that hold a pod other than those of DaemonSets."""
    nodes: int
    """Nodes with GPUs."""
    usd_per_hour: float
    """The price of the nodes used, as far as it is known."""
    fragmented: float
    """The percentage of the GPUs that is free and of no use to the pods of this cluster."""


class Comparison(msgspec.Struct, frozen=True, rename="camel"):
    pods: int
    clones: int
    held_back: int
    """Pods that gates, queues or admission hold back; no policy places them."""
    rows: list[RepackedRow]
    conclusion: list[str]


def prices_of(nodes: Mapping[str, Mapping[str, str]]) -> Prices:
    """By the instance type in the labels of each node."""
    found = {name: find_instance(labels.get(_TYPE, "")) for name, labels in nodes.items()}
    priced = {name: instance for name, instance in found.items() if instance is not None and instance.usd is not None}
    lists = {instance.prices: catalog().price_lists[instance.prices].date for instance in priced.values()}
    usd = {name: instance.usd for name, instance in priced.items() if instance.usd is not None}
    return Prices(usd, [f"{name} of {day}" for name, day in sorted(lists.items())])


def has_gpus(node: NodeTop) -> bool:
    """Whether it advertises GPUs, or its driver publishes them for resource claims."""
    return bool(node.gpus) or node.claimed is not None


def row_of(policy: str, cluster: Cluster, nodes: Sequence[NodeTop], prices: Prices) -> RepackedRow:
    with_gpus = [node for node in nodes if has_gpus(node)]
    used = [node.name for node in with_gpus if _is_used(cluster, node.name)]
    gpus = sum(node.gpus for node in with_gpus)
    lost = sum(node.fragmented for node in with_gpus)
    slices = [each for node in with_gpus for each in node.slices.values()]
    claimed = [node.claimed for node in with_gpus if node.claimed is not None]
    return RepackedRow(
        policy=policy,
        placed=sum(1 for pod in cluster.pods.values() if not pod.daemon_set),
        waiting=len(cluster.pending),
        gpus_held=round(sum(node.held for node in with_gpus), 3),
        gpus=gpus,
        slices_held=sum(each.held for each in slices),
        slices=sum(each.total for each in slices),
        devices_held=sum(each.held for each in claimed),
        devices=sum(each.total for each in claimed) if all(each.total for each in claimed) else 0,
        nodes_used=len(used),
        nodes=len(with_gpus),
        usd_per_hour=float(prices.of(used)),
        fragmented=round(100 * lost / gpus, 2) if gpus and lost > 0 else 0.0,
    )


def headline(comparison: Comparison) -> str:
    now = comparison.rows[0]
    words = _count(comparison.pods, "pod")
    words += f" and {_count(comparison.clones, 'clone')}" if comparison.clones else ""
    held = f", {_count(comparison.held_back, 'more pod')} held back" if comparison.held_back else ""
    there = [f"{now.gpus:,} GPUs"] if now.gpus or not now.devices else []
    there += [f"{_count(now.devices, 'device')} for claims"] if now.devices else []
    return f"{_count(now.nodes, 'node')} with {' and '.join(there)}, {words} placed anew on them{held}"


def conclusion(rows: Sequence[RepackedRow], prices: Prices) -> list[str]:
    """`rows`: the present placement first, then one row for each policy."""
    now, *policies = rows
    ranked = sorted(policies, key=_rank)
    best = ranked[0]
    lines = [_comparison(now, best, ranked)]
    lines += _gains(now, best, prices)
    unknown = now.nodes - len(prices.usd)
    if prices.usd:
        lines.append(f"Prices: on demand, price list {', '.join(prices.lists)}.")
    if unknown > 0:
        lines.append(f"{_count(unknown, 'node')} {_is(unknown)} without a price: no known {_TYPE}.")
    return lines


def repacking_table(rows: Sequence[RepackedRow]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="dim")
    has_slices = any(row.slices for row in rows)
    has_claims = any(row.devices or row.devices_held for row in rows)
    further = [*(["MIG held"] if has_slices else []), *(["claims"] if has_claims else [])]
    headings = ["placed", "waiting", "GPUs held", *further, "nodes used", "$/h", "frag"]
    best = min(rows, key=_rank)
    table.add_column("policy")
    for heading in headings:
        table.add_column(heading, justify="right")
    for row in rows:
        slices = [f"{row.slices_held:,}/{row.slices:,}"] if has_slices else []
        claims = [f"{row.devices_held:,}" + (f"/{row.devices:,}" if row.devices else "")] if has_claims else []
        cells = [f"{row.placed:,}", f"{row.waiting:,}", f"{_gpus(row.gpus_held)}/{row.gpus:,}", *slices, *claims]
        cells += [f"{row.nodes_used:,}/{row.nodes:,}", _usd(row.usd_per_hour), f"{row.fragmented:.2f}"]
        style = _BEST if _rank(row) == _rank(best) != _rank(rows[0]) else ""
        name = Text(row.policy, style="bold" if row.policy == AS_PLACED else shade(row.policy).dark)
        table.add_row(name, *(Text(cell, style=style) for cell in cells))
    return table


def _comparison(now: RepackedRow, best: RepackedRow, ranked: Sequence[RepackedRow]) -> str:
    on = f"{_pods(best)} on {best.nodes_used:,} of {_count(best.nodes, 'node')}"
    if all(_rank(each) == _rank(best) for each in ranked):
        if _rank(now) == _rank(best):
            return f"No difference on this fleet: every policy places {on}, as now."
        many = f"All {len(ranked)} policies place" if len(ranked) > 1 else f"{best.policy} places"
        return f"{many} {on}; {_now(now)}."
    equal = [each.policy for each in ranked if _rank(each) == _rank(best)]
    other = next(each for each in ranked if _rank(each) != _rank(best))
    named = f"{', '.join(equal[:-1])} and {equal[-1]}" if len(equal) > 1 else best.policy
    following = f"{other.policy} is next{_difference(best, other)}."
    if _rank(now) > _rank(best):
        return f"{named} {'pack' if len(equal) > 1 else 'packs'} best: {on}; {_now(now)}. {following}"
    if _rank(now) == _rank(best):
        return f"No policy packs better than now: {on}, as under {named}. {following}"
    return f"No policy packs better than now: {_now(now)}. The best is {named}: {on}. {following}"


def _now(now: RepackedRow) -> str:
    return f"now it is {_pods(now)} on {now.nodes_used:,}" if now.placed else "now no pod runs"


def _difference(best: RepackedRow, other: RepackedRow) -> str:
    if other.gpus_held < best.gpus_held:
        return f", with {_gpus(best.gpus_held - other.gpus_held)} GPUs less"
    if other.slices_held < best.slices_held:
        return f", with {_count(best.slices_held - other.slices_held, 'MIG instance')} less"
    if other.devices_held < best.devices_held:
        return f", with {_count(best.devices_held - other.devices_held, 'claimed device')} less"
    if other.placed < best.placed:
        return f", with {_count(best.placed - other.placed, 'pod')} less"
    if other.nodes_used > best.nodes_used:
        return f", with {_count(other.nodes_used - best.nodes_used, 'node')} more"
    if other.usd_per_hour > best.usd_per_hour:
        return f", with nodes for ${other.usd_per_hour - best.usd_per_hour:,.2f} more per hour"
    return f", with {other.fragmented:.2f} instead of {best.fragmented:.2f} % of the GPUs in fragments"


def _gains(now: RepackedRow, best: RepackedRow, prices: Prices) -> list[str]:
    if best.gpus_held < now.gpus_held or best.placed < now.placed:
        return ["No policy places all pods that run now, because it places them one by one in the order of the queue."]
    if not now.nodes_used:
        return []
    lines = []
    if best.placed > now.placed:
        gpus = _held(best.gpus_held - now.gpus_held, 0, best.devices_held - now.devices_held)
        started = best.placed - now.placed
        lines.append(f"{_count(started, 'pod')}{f' with {gpus}' if gpus else ''} that {_wait(started)} now would run.")
    freed = now.nodes_used - best.nodes_used
    if freed <= 0:
        lines.append("No node could be freed.")
        return lines
    saved = now.usd_per_hour - best.usd_per_hour
    money = f": ${saved:,.2f} of ${now.usd_per_hour:,.2f} per hour" if prices.usd and saved > 0 else ""
    lines.append(f"{_count(freed, 'node')} could be freed{money}.")
    return lines


def _rank(row: RepackedRow) -> tuple[float, ...]:
    held = (-row.gpus_held, -row.slices_held, -row.devices_held)
    return (*held, -row.placed, row.usd_per_hour, row.nodes_used, row.fragmented)


def _is_used(cluster: Cluster, node: str) -> bool:
    pods = cluster.pods_on(cluster.row_of[node])
    return any(not cluster.pods[pod].daemon_set for pod in pods)


def _pods(row: RepackedRow) -> str:
    held = _held(row.gpus_held, row.slices_held, row.devices_held) or "0 GPUs"
    return f"{_count(row.placed, 'pod')} with {held}"


def _held(gpus: float, slices: int, devices: int) -> str:
    """In words, without what is not positive."""
    parts = [f"{_gpus(gpus)} GPUs"] if gpus > 0 else []
    parts += [_count(slices, "MIG instance")] if slices > 0 else []
    parts += [_count(devices, "claimed device")] if devices > 0 else []
    return f"{', '.join(parts[:-1])} and {parts[-1]}" if len(parts) > 1 else "".join(parts)


def _gpus(amount: float) -> str:
    return f"{amount:,.2f}".rstrip("0").rstrip(".")


def _usd(amount: float) -> str:
    return f"{amount:,.2f}" if amount else "-"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _is(number: int) -> str:
    return "is" if number == 1 else "are"


def _wait(number: int) -> str:
    return "waits" if number == 1 else "wait"
