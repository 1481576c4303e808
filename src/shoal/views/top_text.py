"""Prints GPU usage on one screen: totals, then models, then holders, then nodes.

Nodes in trouble come first, then those with most to give. A block is a GPU: full where it is held, half where a part of
it is, a dot where it is free, X where it does not work.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from shoal.views.enumeration import few
from shoal.views.queue_table import KIND, NAME, NUMBER, WORDS, Cell, show_table
from shoal.views.top import HolderTop, ModelTop, NodeTop, Top

MOST_NODES, MOST_HOLDERS = 20, 10
_MOST_TILES = 16
_MOST_NAMES = 2
_HELD, _PART, _FREE, _DEAD = "█", "▄", "·", "X"
_SPARE = ("on one node", "empty", "GiB free", "cores free", "fragments")
"""Columns of which there is no room on narrow terminals."""
_NOTHING = Text("·", "dim")
_STATES = {"not ready": "red", "cordoned": "yellow"}


def show_top(console: Console, top: Top, *, is_wide: bool = False) -> None:
    """`is_wide`: every line, and more columns."""
    console.print(_headline(top))
    lost = sum(model.fragmented for model in top.models)
    free = sum(model.free for model in top.models)
    if round(lost, 2):
        share = f"{number(lost)} of the {number(free)} free GPUs ({lost / free:.0%})"
        pods = "the pods that wait" if top.waiting["gpus"] else "pods like those that run"
        console.print(Text(f"fragments: {share} are of no use to {pods}", "yellow"))
    if top.models:
        _models(console, top.models)
    if top.holders:
        _holders(console, top.holders, None if is_wide else MOST_HOLDERS)
    if top.nodes:
        show_nodes(console, top.nodes, None if is_wide else MOST_NODES, is_wide=is_wide)


def show_nodes(console: Console, nodes: Sequence[NodeTop], most: int | None, *, is_wide: bool = False) -> None:
    console.print()
    headings = ["node", "", "GPUs", "held", "free", "cores free", "GiB free", "pods"]
    leasts = [NAME, KIND, _MOST_TILES, NUMBER, NUMBER, NUMBER, NUMBER, NUMBER]
    if is_wide:
        headings += ["model", "zone", "fragments", "held by"]
        leasts += [KIND, KIND, NUMBER, WORDS]
    shown = nodes[:most]
    show_table(console, headings, leasts, [_node_row(node)[: len(headings)] for node in shown], _SPARE)
    _rest(console, len(nodes) - len(shown))


def number(amount: float) -> str:
    """As short as it is exact."""
    return f"{amount:,.2f}".rstrip("0").rstrip(".")


def _headline(top: Top) -> Text:
    gpus = sum(model.gpus for model in top.models)
    held, free = (sum(getattr(model, name) for model in top.models) for name in ("held", "free"))
    line = Text(f"{len(top.nodes):,} node{'' if len(top.nodes) == 1 else 's'}")
    if gpus:
        line += Text(f", {number(held)} of {gpus:,} GPU{'' if gpus == 1 else 's'} held", "green")
        line += Text(f", {number(free)} free")
    unhealthy = sum(model.unhealthy for model in top.models)
    line += Text(f", {unhealthy:,} unhealthy" if unhealthy else "", "red")
    slices = [each for node in top.nodes for each in node.slices.values()]
    if slices:
        used, total = sum(each.held for each in slices), sum(each.total for each in slices)
        line += Text(f", {used:,} of {total:,} MIG instances held", "green")
    given = [node.claimed for node in top.nodes if node.claimed is not None]
    if given:
        used, total = sum(each.held for each in given), sum(each.total for each in given)
        of = f" of {total:,}" if all(each.total for each in given) else ""
        line += Text(f", {used:,}{of} device{'' if (total or used) == 1 else 's'} held by claims", "green")
    bad = sum(1 for node in top.nodes if node.state == "not ready")
    line += Text(f", {bad:,} not ready" if bad else "", "red")
    return line + Text(_waiting(top), "red")


def _waiting(top: Top) -> str:
    pods, asked, workloads = (top.waiting[name] for name in ("pods", "gpus", "workloads"))
    wanted = f" for {number(asked)} GPU{'' if asked == 1 else 's'}" if asked else ""
    told = f"; {pods:,.0f} pod{' waits' if pods == 1 else 's wait'}{wanted}" if pods else ""
    absent = top.waiting["notCreated"]
    told += f"; {absent:,.0f} pod{' is' if absent == 1 else 's are'} not created yet" if absent else ""
    many = f"{workloads:,.0f} workload{' waits' if workloads == 1 else 's wait'}"
    gangs = top.waiting["gangs"]
    hollow = f"; {gangs:,.0f} gang{' without pods waits' if gangs == 1 else 's without pods wait'}" if gangs else ""
    return told + hollow + (f"; {many} in queues" if workloads else "")


def _models(console: Console, models: Sequence[ModelTop]) -> None:
    console.print()
    headings = ["model", "nodes", "GPUs", "held", "free", "empty", "on one node", "fragments"]
    rows = [
        [
            each.model,
            f"{each.nodes:,}",
            f"{each.gpus:,}",
            *_amounts(each.held, each.free, each.empty, each.most_on_one),
            _amount(each.fragmented, "yellow"),
        ]
        for each in models
    ]
    show_table(console, headings, [NAME, *(NUMBER for _ in headings[1:])], rows, _SPARE)


def _holders(console: Console, holders: Sequence[HolderTop], most: int | None) -> None:
    console.print()
    has_slices = any(each.slices for each in holders)
    headings = ["held by", "GPUs", *(["MIG instances"] if has_slices else []), "pods", "nodes"]
    shown = holders[:most]
    rows: list[list[Cell]] = [
        [
            each.name,
            _amount(each.gpus),
            *([_amount(each.slices)] if has_slices else []),
            f"{each.pods:,}",
            f"{each.nodes:,}",
        ]
        for each in shown
    ]
    show_table(console, headings, [NAME, *(NUMBER for _ in headings[1:])], rows)
    _rest(console, len(holders) - len(shown))


def _node_row(node: NodeTop) -> list[Cell]:
    state = Text("" if node.state == "ready" else node.state, _STATES.get(node.state, ""))
    amounts = _amounts(node.held, node.free) if node.devices else [_NOTHING, _NOTHING]
    return [
        Text(node.name, _STATES.get(node.state, "")),
        state,
        _tiles(node),
        *amounts,
        number(node.cores_free),
        number(round(node.memory_free_gib)),
        f"{node.pods:,}",
        node.model,
        node.zone,
        _amount(node.fragmented, "yellow"),
        few(node.holders, _MOST_NAMES),
    ]


def _tiles(node: NodeTop) -> Text:
    if node.slices:
        return Text(", ".join(f"{name} {each.held}/{each.total}" for name, each in node.slices.items()))
    if node.claimed is not None and not node.devices:
        total = f"/{node.claimed.total}" if node.claimed.total else " held"
        return Text(f"claims {node.claimed.held}{total}")
    if len(node.devices) > _MOST_TILES:
        return Text(f"{len(node.devices):,}")
    line = Text()
    for device, free in enumerate(node.devices):
        if device in node.unhealthy:
            line.append(_DEAD, "red")
            continue
        line.append(*((_FREE, "dim") if free >= 1 else (_HELD, "green") if free <= 0 else (_PART, "yellow")))
    return line if node.devices else _NOTHING


def _amounts(*amounts: float) -> list[Cell]:
    return [_amount(each) for each in amounts]


def _amount(amount: float, style: str = "") -> Text:
    return Text(number(amount), style) if round(amount, 2) else _NOTHING


def _rest(console: Console, more: int) -> None:
    if more > 0:
        console.print(Text(f"and {more:,} more; -o wide or -o json has them all", "dim"))
