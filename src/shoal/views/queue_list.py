"""Local queues in a list: where each leads, who waits in it and who holds quota through it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import msgspec
from rich.console import Console
from rich.text import Text

from shoal.views.queue_table import KIND, NAME, NUMBER, WORDS, Cell, show_table
from shoal.views.queue_tree import Tree, TreeNode
from shoal.views.resource_units import in_order, words

MOST_LINES = 40
_KUEUE = "Kueue"
_USUAL = 5


class QueueLine(msgspec.Struct, frozen=True, rename="camel"):
    queue: str
    """The local queue, or a queue of Volcano or KAI."""
    cluster_queue: str
    """Of a queue of Volcano or KAI its parent."""
    cohort: str
    """The nearest; empty where there is none."""
    waiting: int
    admitted: int | None
    """Workloads that hold quota; None for Volcano and KAI, which have no workloads."""
    uses: dict[str, float]
    """By resource, all flavors together."""
    closed: str
    """Why nothing is admitted."""
    project: str = "Kueue"


def lines_of(tree: Tree, held_by: Iterable[str]) -> list[QueueLine]:
    """`held_by`: the local queue of each workload that holds quota."""
    counts = Counter(held_by)
    found = [line for root in tree.roots for line in _below(root, "", "", "", counts)]
    found += [_line(node, "", "", node.closed, counts) for node in tree.astray]
    return sorted(found, key=lambda line: (-line.waiting, line.queue))


def _below(node: TreeNode, cohort: str, queue: str, closed: str, counts: Counter[str]) -> Iterator[QueueLine]:
    if node.kind == "localQueue":
        yield _line(node, queue, cohort, node.closed or closed, counts)
        return
    cohort = node.name if node.kind == "cohort" else cohort
    queue = node.name if node.kind == "clusterQueue" else queue
    for child in node.children:
        yield from _below(child, cohort, queue, node.closed or closed, counts)


def _line(node: TreeNode, queue: str, cohort: str, closed: str, counts: Counter[str]) -> QueueLine:
    uses: dict[str, float] = {}
    for line in node.quotas:
        uses[line.resource] = uses.get(line.resource, 0) + line.used
    return QueueLine(node.name, queue, cohort, node.waiting.workloads, counts[node.name], uses, closed)


def show_queues(
    console: Console, queues: Sequence[QueueLine], *, is_wide: bool = False, most: int | None = MOST_LINES
) -> None:
    headings = ["queue", "cluster queue", "wait", "admitted", "uses"]
    leasts = [NAME, NAME, NUMBER, NUMBER, WORDS]
    if any(line.project != _KUEUE for line in queues):
        headings[1:2] = ["of", "below"]
        leasts[1:2] = [KIND, NAME]
    has_projects = len(headings) > _USUAL
    if is_wide:
        headings += ["cohort", "closed"]
        leasts += [KIND, WORDS]
    shown = queues if is_wide else queues[:most]
    show_table(console, headings, leasts, [_row(line, has_projects)[: len(headings)] for line in shown])
    if len(queues) > len(shown):
        console.print(Text(f"and {len(queues) - len(shown):,} more; -o wide or -o json has them all", "dim"))


def _row(line: QueueLine, has_projects: bool) -> list[Cell]:
    uses = ", ".join(words(name, line.uses[name]) for name in in_order(line.uses)) or "nothing"
    return [
        Text(line.queue, "red" if line.closed else ""),
        *([line.project] if has_projects else []),
        line.cluster_queue,
        Text(f"{line.waiting:,}", "red" if line.waiting else "dim"),
        "·" if line.admitted is None else f"{line.admitted:,}",
        uses,
        line.cohort,
        line.closed,
    ]
