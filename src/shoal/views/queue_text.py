"""The quota tree for a person at a terminal: one line of totals, then the tree, a line per flavor and resource.

Nothing is a dot, so that the eye finds what there is. What a reader looks for first, how many GPUs are used and who
waits for them, comes first in every part.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec import structs
from rich.console import Console
from rich.text import Text

from shoal.views.queue_backlog import Backlog
from shoal.views.queue_table import KIND, NAME, NUMBER, Cell, show_table
from shoal.views.queue_tree import QuotaLine, Tree, TreeNode
from shoal.views.resource_units import figure, in_order, title, words

_NOTHING = Text("·", "dim")
_NUMBERS = ("quota", "used", "borrowed", "lent", "waiting", "share")
_SPARE = ("lent", "borrowed", "share")
_KINDS = {"cohort": "cohort ", "clusterQueue": "", "localQueue": "from "}
_STYLES = {"cohort": "bold cyan", "clusterQueue": "bold", "localQueue": "dim"}


def show_tree(console: Console, tree: Tree) -> None:
    console.print(_headline(tree))
    nodes = tree.all_roots
    if not nodes:
        return
    console.print()
    is_shared = any(node.share is not None for root in nodes for node in _each(root))
    headings = ["queue", "", *(_NUMBERS if is_shared else _NUMBERS[:-1])]
    leasts = [NAME, KIND, *(NUMBER for _ in headings[2:])]
    show_table(console, headings, leasts, [row[: len(headings)] for node in nodes for row in _rows(node, 0)], _SPARE)
    closed = [node for root in nodes for node in _each(root) if node.closed]
    if closed:
        console.print()
    for node in closed:
        console.print(Text(f"{_called(node)} admits no workloads: {node.closed}", "red"))


def _called(node: TreeNode) -> str:
    return f"{_KINDS[node.kind]}{node.name or '(none)'}"


def _headline(tree: Tree) -> Text:
    nodes = [node for root in tree.all_roots for node in _each(root)]
    queues = sum(1 for node in nodes if node.kind == "clusterQueue")
    cohorts = sum(1 for node in nodes if node.kind == "cohort")
    waiting = sum(root.waiting.workloads for root in tree.all_roots)
    counted = f"{queues:,} cluster queue{'' if queues == 1 else 's'}"
    if cohorts:
        counted += f" in {cohorts:,} cohort{'' if cohorts == 1 else 's'}"
    line = Text(counted)
    scarce = _scarcest(tree)
    if scarce:
        lines = [each for root in tree.roots for each in root.quotas if each.resource == scarce]
        used, quota = sum(each.used for each in lines), sum(each.nominal or 0 for each in lines)
        borrowed = _borrowed(tree, scarce)
        line += Text(f", {figure(scarce, used)} of {words(scarce, quota)} used", "green")
        line += Text(f" ({figure(scarce, borrowed)} borrowed)" if borrowed else "", "yellow")
    return line + Text(f", {waiting:,} waiting", "red" if waiting else "dim")


def _scarcest(tree: Tree) -> str:
    return next(iter(in_order({line.resource for root in tree.roots for line in root.quotas})), "")


def _borrowed(tree: Tree, resource: str) -> float:
    queues = (node for root in tree.roots for node in _each(root) if node.kind == "clusterQueue")
    return sum(line.borrowed for node in queues for line in node.quotas if line.resource == resource)


def _each(node: TreeNode) -> Iterator[TreeNode]:
    yield node
    for child in node.children:
        yield from _each(child)


def _rows(node: TreeNode, depth: int) -> Iterator[list[Cell]]:
    indent = "  " * depth
    name = Text(f"{indent}{_called(node)}", _STYLES[node.kind])
    if node.closed:
        name.append(" (closed)", "red")
    share: Cell = "" if node.share is None else _share(node.share.weighted)
    yield [name, "", "", "", "", "", _backlog(node.waiting), share]
    inner = indent + "  "
    flavor = ""
    for line in _sorted(node.quotas):
        shown = Text(f"{inner}{line.flavor}" if line.flavor != flavor else "", "dim")
        flavor = line.flavor
        waiting = _NOTHING if line.waiting is None else _number(line, line.waiting, "red")
        is_over = line.nominal is not None and line.used > line.nominal + line.borrowed
        used = _number(line, line.used, "red" if is_over else "")
        numbers = [used, _number(line, line.borrowed, "yellow"), _number(line, line.lent, "cyan")]
        quota: Cell = "" if line.nominal is None else figure(line.resource, line.nominal)
        if node.kind == "localQueue":
            numbers[1:], waiting = [Text(""), Text("")], Text("")
        yield [shown, title(line.resource), quota, *numbers, waiting, ""]
    yield from _undecided(node, inner)
    for child in node.children:
        # The only local queue of a cluster queue uses what that uses.
        is_reported = node.kind == "clusterQueue" and len(node.children) == 1
        yield from _rows(structs.replace(child, quotas=[]) if is_reported else child, depth + 1)


def _undecided(node: TreeNode, inner: str) -> Iterator[list[Cell]]:
    """What is asked for where several flavors could serve it, or none."""
    if node.kind != "clusterQueue":
        return
    told = {line.resource for line in node.quotas if line.waiting}
    left = [name for name in in_order(node.waiting.amounts) if name not in told]
    for number, name in enumerate(left):
        flavor = Text("" if number else f"{inner}any flavor", "dim")
        yield [flavor, title(name), "", "", "", "", Text(figure(name, node.waiting.amounts[name]), "red"), ""]


def _sorted(lines: Sequence[QuotaLine]) -> Iterable[QuotaLine]:
    order = {name: rank for rank, name in enumerate(in_order({line.resource for line in lines}))}
    return sorted(lines, key=lambda line: (line.flavor, order[line.resource]))


def _number(line: QuotaLine, amount: float, style: str = "") -> Text:
    return Text(figure(line.resource, amount), style) if amount else _NOTHING


def _backlog(backlog: Backlog) -> Cell:
    if not backlog.workloads:
        return ""
    return Text(f"{backlog.workloads:,} wait{'s' if backlog.workloads == 1 else ''}", "red")


def _share(weighted: int | None) -> str:
    return "most" if weighted is None else f"{weighted / 10:.1f} %"
