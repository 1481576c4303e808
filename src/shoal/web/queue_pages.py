"""The pages of queues: the quota tree with its backlog and waits, and one queue with its workloads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from shlex import quote as quoted
from statistics import median

import msgspec

from shoal.views.dashboard.facts import DashboardFacts, QueueDetail, QueueFacts, QuotaFacts, WorkloadFacts
from shoal.views.dashboard.lists import in_units, quota_cells
from shoal.views.dashboard.words import age, amount, seconds_since
from shoal.views.queue_diff import span
from shoal.views.queue_history import QueueHistory
from shoal.views.queue_tree import QuotaLine, Tree, TreeNode
from shoal.views.queue_waits import TITLE as WAITS_TITLE
from shoal.views.queue_waits import QueueWaits, queue_waits
from shoal.views.resource_units import figure, title
from shoal.web.markup import Markup, address, element, joined
from shoal.web.page import WebPage
from shoal.web.ports import PageCommands
from shoal.web.tables import DataTable, Heading, TableCell, table_markup
from shoal.web.viewer import Viewer
from shoal.web.workload_pages import gangs_table, subject_address

PATH = "/queues"
_KINDS = {"cohort": "cohort", "clusterQueue": "cluster queue", "localQueue": "local queue"}
_BAR_WIDTH = 120.0
_MOST_DEPTH = 8


class ShownQueues(msgspec.Struct, frozen=True):
    """What the page of queues shows besides the facts."""

    tree: Tree | None
    fault: str
    """Why there is no tree; empty if there is one, or if the cluster has no queues of Kueue."""
    history: QueueHistory
    viewer: Viewer


class QueuePages:
    def __init__(self, commands: PageCommands) -> None:
        self._commands = commands

    def page(self, facts: DashboardFacts, shown: ShownQueues) -> WebPage:
        head, tree = element("h1", "Queues"), shown.tree
        listed = [queue for queue in facts.queues if tree is None or queue.kind != "ClusterQueue"]
        tables = [self._tree(tree, facts)] if tree is not None else []
        tables += [self._list(listed)] if listed or not tables else []
        goals = {queue.name: queue.wait_slo for queue in facts.queues if queue.kind == "ClusterQueue"}
        found = queue_waits(shown.history, goals)
        if found.waits:
            tables.append(self._waits(found))
        if found.preempted:
            tables += [self._between(found), self._preempted(found, shown.viewer, facts)]
        fault = shown.fault
        note = element("p", f"The quota tree cannot be shown: {fault}", class_="fault") if fault else None
        parts = {"head": joined((head, note)), **{f"of-{one.key}": table_markup(one, PATH) for one in tables}}
        return WebPage("Queues", PATH, parts, "queues", tables)

    def refusal(self) -> WebPage:
        refused = "Your account may not list queues (list of clusterqueues.kueue.x-k8s.io), so none are shown."
        return WebPage("Queues", PATH, {"head": joined((element("h1", "Queues"), element("p", refused)))}, "queues")

    def one(self, facts: DashboardFacts, detail: QueueDetail) -> WebPage:
        queue = detail.queue
        path = address("queue", queue.kind, queue.name)
        kind = queue.kind if queue.kind == "ClusterQueue" else f"{queue.kind} queue"
        above = f"{'cohort' if queue.kind == 'ClusterQueue' else 'below'} {queue.parent}" if queue.parent else ""
        fault = element("p", f"It admits nothing: {queue.fault}", class_="fault") if queue.fault else None
        goal = _goal(queue) if queue.kind == "ClusterQueue" else None
        head = joined((element("h1", f"{kind} ", queue.name), element("p", above) if above else None, goal, fault))
        tables = [self._quotas(queue)]
        if detail.gangs or queue.kind != "ClusterQueue":
            tables.append(gangs_table(facts, detail.gangs, self._commands.table(path, "gangs")))
        if queue.kind == "ClusterQueue":
            tables.append(self._workloads("pending", detail.pending, facts, queue.name))
            tables.append(self._workloads("admitted", detail.admitted, facts, queue.name))
        parts = {"queue": head, **{f"of-{one.key}": table_markup(one, path) for one in tables}}
        return WebPage(queue.name, path, parts, "queues", tables)

    def _tree(self, tree: Tree, facts: DashboardFacts) -> DataTable:
        names = [("queue", False), ("kind", False), ("flavor", False), ("resource", False)]
        names += [(name, True) for name in ("nominal", "used", "borrowed", "lent")]
        names += [("use", False), ("requested", True), ("waiting", True), ("inadmissible", True)]
        names += [("median wait", True), ("longest wait", True), ("closed", False)]
        waits = _waits(facts)
        rows = [row for root in tree.all_roots for row in _rows(root, 0, waits)]
        command = self._commands.of("shoal queue")
        empty = "No queue of Kueue is defined."
        return DataTable("tree", "Quota tree", command, [Heading(*name) for name in names], rows, empty)

    def _list(self, queues: Sequence[QueueFacts]) -> DataTable:
        names = [("queue", False), ("kind", False), ("below", False), ("resource", False)]
        names += [(name, True) for name in ("used", "nominal", "borrowed", "pending")]
        rows = []
        for queue in queues:
            for number, quota in enumerate(queue.quotas or (None,)):
                used, nominal, borrowed = (text for text, _ in quota_cells(quota))
                rows.append(
                    [
                        TableCell(queue.name, address("queue", queue.kind, queue.name)),
                        TableCell(queue.kind),
                        TableCell(queue.parent),
                        TableCell("" if quota is None else quota.resource),
                        *(TableCell(text) for text in (used, nominal, borrowed)),
                        TableCell("" if queue.pending is None or number else f"{queue.pending:,}"),
                    ]
                )
        headings = [*(Heading(*name) for name in names), Heading("closed")]
        rows = [[*row, TableCell(fault, style="fault")] for row, fault in zip(rows, _faults(queues), strict=True)]
        empty = "The cluster has no queues of Kueue, Volcano or KAI that are in use."
        return DataTable("queues", "Queues", self._commands.of("shoal queue"), headings, rows, empty)

    def _waits(self, found: QueueWaits) -> DataTable:
        names = [
            ("queue", False),
            *((name, True) for name in ("got quota", "P50", "P95", "SLO")),
            ("P95 and SLO", False),
        ]
        rows = [
            [
                TableCell(one.queue, address("queue", "ClusterQueue", one.queue)),
                TableCell(f"{one.admitted:,}"),
                *(TableCell(span(seconds)) for seconds in (one.p50_seconds, one.p95_seconds, one.slo_seconds)),
                TableCell(one.words, style="fault" if one.breach else "waits" if one.fault else "runs"),
            ]
            for one in found.waits
        ]
        headings = [Heading(*name) for name in names]
        return DataTable(
            "waits", WAITS_TITLE, self._commands.of("shoal queue -o wide"), headings, rows, "None got quota."
        )

    def _between(self, found: QueueWaits) -> DataTable:
        rows = [
            [
                TableCell(one.by_queue or "not known"),
                TableCell(one.queue),
                TableCell(one.reason),
                TableCell(f"{one.workloads:,}"),
            ]
            for one in found.counts
        ]
        headings = [Heading("queue"), Heading("takes from"), Heading("reason"), Heading("Workloads", is_number=True)]
        command = self._commands.of("shoal queue -o wide")
        return DataTable("reclaims", "Which queue reclaims from which", command, headings, rows, "None does.")

    def _preempted(self, found: QueueWaits, viewer: Viewer, facts: DashboardFacts) -> DataTable:
        headings = [Heading("workload"), Heading("queue"), Heading("for queue"), Heading("reason")]
        headings.append(Heading("age", is_number=True))
        rows = [
            [
                TableCell(one.workload),
                TableCell(one.queue),
                TableCell(one.by_queue),
                TableCell(one.reason),
                TableCell(age(one.at, facts.now_s)),
            ]
            for one in found.preempted
            if viewer.sees_workloads(one.namespace)
        ]
        command = self._commands.of("shoal queue -o wide")
        empty = "None of your namespaces."
        return DataTable("preempted", "Preempted Workloads", command, headings, rows, empty)

    def _quotas(self, queue: QueueFacts) -> DataTable:
        names = [("resource", False), ("flavor", False)]
        names += [(name, True) for name in ("used", "nominal", "borrowed", "free")]
        rows = [
            [
                TableCell(quota.resource),
                TableCell(quota.flavor),
                *(TableCell(text) for text, _ in quota_cells(quota)),
                TableCell(_left(quota)),
            ]
            for quota in queue.quotas
        ]
        command = self._commands.of(f"shoal queue --name {quoted(queue.name)}")
        return DataTable("quotas", "Quotas", command, [Heading(*name) for name in names], rows, "It has no quotas.")

    def _workloads(self, key: str, found: Sequence[WorkloadFacts], facts: DashboardFacts, queue: str) -> DataTable:
        headings = [Heading("workload"), Heading("pods", is_number=True), Heading("GPUs", is_number=True)]
        headings += [Heading("age", is_number=True), Heading("local queue"), Heading("reason")]
        rows = [
            [
                TableCell(one.full_name, subject_address("workload", one.namespace, one.name)),
                TableCell(f"{one.pods:,}"),
                TableCell(amount(one.gpus)),
                TableCell(age(one.created, facts.now_s)),
                TableCell(one.queue),
                TableCell(one.why),
            ]
            for one in found
        ]
        command = self._commands.of(f"shoal queue --name {quoted(queue)} --workloads")
        return DataTable(key, f"{key.capitalize()} workloads", command, headings, rows, f"No workload is {key}.")


def _rows(node: TreeNode, depth: int, waits: Mapping[str, tuple[str, str]]) -> Iterator[list[TableCell]]:
    style = f"depth-{min(depth, _MOST_DEPTH)}"
    href = address("queue", "ClusterQueue", node.name) if node.kind == "clusterQueue" else ""
    middle, longest = waits.get(node.name, ("", "")) if node.kind == "clusterQueue" else ("", "")
    for number, line in enumerate(node.quotas or (None,)):
        name = TableCell(node.name or "(no name)", href if not number else "", style)
        backlog = node.waiting
        yield [
            name,
            TableCell(_KINDS[node.kind]),
            *_quota(line),
            TableCell(f"{backlog.workloads:,}" if not number else ""),
            TableCell(f"{backlog.inadmissible:,}" if not number else ""),
            TableCell(middle if not number else ""),
            TableCell(longest if not number else ""),
            TableCell(node.closed if not number else "", style="fault"),
        ]
    for child in node.children:
        yield from _rows(child, depth + 1, waits)


def _quota(line: QuotaLine | None) -> list[TableCell]:
    if line is None:
        return [TableCell("") for _ in range(8)]
    amounts = [line.nominal, line.used, line.borrowed, line.lent]
    return [
        TableCell(line.flavor),
        TableCell(title(line.resource)),
        *(TableCell("" if each is None else figure(line.resource, each)) for each in amounts),
        TableCell("" if not line.nominal else f"{100 * line.used / line.nominal:.0f} %", drawing=_use(line)),
        TableCell("" if line.waiting is None else figure(line.resource, line.waiting)),
    ]


def _use(line: QuotaLine) -> Markup | None:
    """What is used of the nominal quota; what is borrowed is drawn beyond its end, what is lent within it."""
    if not line.nominal:
        return None
    whole = max(line.used, line.nominal) or 1
    scale = _BAR_WIDTH / whole
    own, lent = min(line.used - line.borrowed, line.nominal), line.lent
    parts = [(0.0, line.nominal, "q-nominal"), (0.0, own, "q-used"), (own, lent, "q-lent")]
    parts.append((line.nominal, line.borrowed, "q-borrowed"))
    drawn = [
        element("rect", x=f"{start * scale:.4g}", y=0, width=f"{size * scale:.4g}", height=10, class_=style)
        for start, size, style in parts
        if size > 0
    ]
    label = f"{100 * line.used / line.nominal:.0f} % of the nominal quota"
    return element("svg", *drawn, width=_BAR_WIDTH, height=10, role="img", aria_label=label)


def _goal(queue: QueueFacts) -> Markup:
    words = f"95 of 100 workloads should get quota within {span(queue.wait_slo.seconds)}."
    if not queue.wait_slo.fault:
        return element("p", words)
    return element("p", f"{words} The annotation is not used: {queue.wait_slo.fault}", class_="waits")


def _waits(facts: DashboardFacts) -> dict[str, tuple[str, str]]:
    """By cluster queue, the median and the longest time for which workloads have waited by now."""
    ages: dict[str, list[tuple[int, str]]] = {}
    for one in facts.workloads:
        seconds = seconds_since(one.created, facts.now_s)
        if seconds is not None:
            ages.setdefault(one.cluster_queue, []).append((seconds, one.created))
    return {
        queue: (_time(median(second for second, _ in found)), _time(max(found)[0])) for queue, found in ages.items()
    }


def _time(seconds: float) -> str:
    return age("1970-01-01T00:00:00+00:00", seconds)


def _left(quota: QuotaFacts) -> str:
    return "" if quota.nominal is None else in_units(max(0.0, quota.nominal - quota.used), quota.resource)


def _faults(queues: Sequence[QueueFacts]) -> Iterator[str]:
    """For each row of the list."""
    for queue in queues:
        for number, _ in enumerate(queue.quotas or (None,)):
            yield "" if number else queue.fault
