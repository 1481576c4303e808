"""The pages of one node, pod, gang or queue: all that the dashboard knows of it, as lines that scroll."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from shoal.units.errors import one_line
from shoal.views.dashboard.colours import BROKEN, Colours
from shoal.views.dashboard.facts import (
    DashboardFacts,
    DashboardPod,
    Detail,
    GangDetail,
    GpuSlot,
    NodeDetail,
    PageSubject,
    PodDetail,
    QueueDetail,
    WorkloadFacts,
)
from shoal.views.dashboard.lists import gang_table, in_units, quota_cells, reason
from shoal.views.dashboard.table import Column, Row, draw_table
from shoal.views.dashboard.words import age, amount, plural

_ALL = 100_000
"""More lines than any page has: pages scroll as a whole."""
_NAME = 50


def detail_lines(subject: PageSubject, facts: DashboardFacts, colours: Colours, width: int) -> list[Text]:
    detail: Detail | None = facts.detail
    if isinstance(detail, NodeDetail):
        return _node(detail, colours, width)
    if isinstance(detail, PodDetail):
        return _pod(detail, facts, width)
    if isinstance(detail, GangDetail):
        return _gang(detail, facts, width)
    if isinstance(detail, QueueDetail):
        return _queue(detail, facts, width)
    return [_title(subject.kind, subject.name.removeprefix("ClusterQueue/")), Text("The cluster no longer has it.")]


def _node(detail: NodeDetail, colours: Colours, width: int) -> list[Text]:
    tile, node = detail.tile, detail.tile.node
    state = ", ".join([*([] if node.is_ready else ["not ready"]), *(["cordoned"] if node.is_cordoned else [])])
    lines = [_title("Node", node.name)]
    lines += [Text(f"{node.kind}   {amount(tile.held)} of {plural(node.gpus, 'GPU')} held   {state or 'ready'}")]
    lines += [Text(text, style=BROKEN) for text in detail.conditions] + [Text()]
    rows = []
    for index, parts in enumerate(tile.parts):
        health = detail.faults.get(index, "unhealthy") if index in node.broken else "healthy"
        for number, part in enumerate(parts):
            rows.append(Row("", _gpu_cells(index, number, part, (health, len(parts)), colours)))
    columns = [Column("GPU", 4, is_number=True), Column("", 2), Column("HEALTH", 14), Column("PART", 8)]
    columns += [Column("LOAD", 5, is_number=True), Column("HELD BY", _NAME), Column("DEVICE")]
    lines += draw_table(columns, rows, (width, _ALL))
    if detail.pods:
        columns = [Column("POD", _NAME), Column("GPUs", 6, is_number=True), Column("PHASE", 10), Column("GANG")]
        rows = [Row("", [(p.full_name, ""), (amount(p.gpus), ""), (p.phase, ""), (p.gang, "dim")]) for p in detail.pods]
        lines += [Text(), *draw_table(columns, rows, (width, _ALL))]
    if detail.labels:
        rows = [Row("", [(key, ""), (value, "dim")]) for key, value in detail.labels]
        lines += [Text(), *draw_table([Column("LABEL", 60), Column("VALUE")], rows, (width, _ALL))]
    return lines


def _gpu_cells(
    index: int, number: int, part: GpuSlot, state: tuple[str, int], colours: Colours
) -> list[tuple[str, str]]:
    health, parts = state
    is_well = health == "healthy"
    letter = "X" if not is_well else "▇" if part.owner else "·"
    style = BROKEN if not is_well else colours.of(part.owner)
    return [
        (f"{index}" if not number else "", ""),
        (letter, style),
        (health if not number else "", "" if is_well else BROKEN),
        ("" if parts == 1 else f"{100 * part.width:.0f} %", "dim"),
        ("" if part.load is None else f"{part.load} %", ""),
        (part.pod or ("free" if is_well else ""), style if part.owner else "dim"),
        ("" if part.device.startswith("#") else one_line(part.device), "dim"),
    ]


def _pod(detail: PodDetail, facts: DashboardFacts, width: int) -> list[Text]:
    pod = detail.pod
    lines = [_title("Pod", pod.full_name)]
    lines += _pairs(
        ("asks for", plural(pod.gpus, "GPU")),
        ("phase", pod.phase),
        ("age", age(pod.created, facts.now_s)),
        ("node", pod.node),
        ("gang", pod.gang),
        ("queue", pod.queue),
    )
    if pod.waits and not pod.node:
        lines += [Text(), Text("WHY IT WAITS", style="dim"), *_wrapped(reason(pod, facts.fleet), width)]
        lines += [Text(), Text(f"shoal why pod/{pod.name} -n {pod.namespace}", style="bold")]
        lines += _wrapped("This command tries what would help: nodes, quota and preemption.", width)
    if detail.events:
        lines += [Text(), Text("EVENTS", style="dim")]
        for event in detail.events:
            text = f"{age(event.at, facts.now_s):>4}  {event.reason}: {event.message}"
            lines += _wrapped(text, width, BROKEN if event.is_warning else "")
    return lines


def _gang(detail: GangDetail, facts: DashboardFacts, width: int) -> list[Text]:
    gang = detail.gang
    lines = [_title("Gang", gang.name)]
    lines += _pairs(
        ("needs", f"{plural(gang.needs, 'pod')} that run together" if gang.needs else ""),
        ("pods", f"{gang.running:,} running, {gang.waiting:,} waiting, on {plural(gang.nodes, 'node')}"),
        ("asks for", plural(gang.gpus, "GPU")),
        ("queue", gang.queue),
    )
    if gang.why:
        lines += [Text(), Text("WHY IT WAITS", style="dim"), *_wrapped(gang.why, width)]
    return [*lines, Text(), *_pods(detail.pods, facts, width)]


def _pods(pods: Sequence[DashboardPod], facts: DashboardFacts, width: int) -> list[Text]:
    columns = [Column("POD", _NAME), Column("PHASE", 10), Column("GPUs", 6, is_number=True)]
    columns += [Column("AGE", 5, is_number=True), Column("NODE", 34), Column("REASON")]
    rows = []
    for pod in pods:
        is_waiting = pod.waits and not pod.node
        cells = [(pod.full_name, ""), (pod.phase, "bold" if is_waiting else ""), (amount(pod.gpus), "")]
        cells += [(age(pod.created, facts.now_s), ""), (pod.node, "")]
        rows.append(Row("", [*cells, (reason(pod, facts.fleet) if is_waiting else "", "dim")]))
    return draw_table(columns, rows, (width, _ALL))


def _queue(detail: QueueDetail, facts: DashboardFacts, width: int) -> list[Text]:
    queue = detail.queue
    lines = [_title(queue.kind if queue.kind == "ClusterQueue" else f"{queue.kind} queue", queue.name)]
    lines += _pairs(
        ("cohort" if queue.kind == "ClusterQueue" else "parent", queue.parent),
        ("pending", "" if queue.pending is None else f"{queue.pending:,}"),
        ("admitted", "" if queue.admitted is None else f"{queue.admitted:,}"),
    )
    if queue.fault:
        lines += _wrapped(f"It admits nothing: {queue.fault}", width, BROKEN)
    columns = [Column("RESOURCE", 30), Column("FLAVOR", 24)]
    columns += [Column(name, 10, is_number=True) for name in ("USED", "NOMINAL", "BORROWED", "FREE")]
    rows = []
    for quota in queue.quotas:
        left = "" if quota.nominal is None else in_units(max(0.0, quota.nominal - quota.used), quota.resource)
        rows.append(Row("", [(quota.resource, ""), (quota.flavor, "dim"), *quota_cells(quota), (left, "")]))
    lines += [Text(), *draw_table(columns, rows, (width, _ALL))]
    if detail.gangs:
        lines += [Text(), *gang_table(facts, detail.gangs, (width, _ALL))]
    lines += _workloads("PENDING", detail.pending, facts, width)
    return lines + _workloads("ADMITTED", detail.admitted, facts, width)


def _workloads(heading: str, found: Sequence[WorkloadFacts], facts: DashboardFacts, width: int) -> list[Text]:
    if not found:
        return []
    columns = [Column(heading, _NAME), Column("PODS", 6, is_number=True), Column("GPUs", 6, is_number=True)]
    columns += [Column("AGE", 5, is_number=True), Column("QUEUE", 24), Column("REASON" if found[0].why else "")]
    rows = [
        Row(
            "",
            [
                (one.full_name, ""),
                (f"{one.pods:,}", ""),
                (amount(one.gpus), ""),
                (age(one.created, facts.now_s), ""),
                (one.queue, "dim"),
                (one.why, "dim"),
            ],
        )
        for one in found
    ]
    return [Text(), *draw_table(columns, rows, (width, _ALL))]


def _title(kind: str, name: str) -> Text:
    return Text.assemble((f"{kind} ", "dim"), (name, "bold"))


def _pairs(*pairs: tuple[str, str]) -> list[Text]:
    return [Text.assemble((f"{name:<10}", "dim"), value) for name, value in pairs if value]


def _wrapped(text: str, width: int, style: str = "") -> list[Text]:
    """At words, so that nothing of a reason is cut off."""
    lines: list[str] = []
    line = ""
    for word in text.split():
        if line and Text(f"{line} {word}").cell_len > width:
            lines.append(line)
            line = word
        else:
            line = f"{line} {word}".lstrip()
    return [Text(each, style=style) for each in [*lines, line]]
