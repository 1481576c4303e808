"""The lists of the dashboard: what waits, queues, gangs, Events, warnings. Each as a table of a given size."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from shoal.views.dashboard.colours import BROKEN
from shoal.views.dashboard.facts import (
    DashboardFacts,
    DashboardPod,
    EventFacts,
    Fleet,
    GangFacts,
    QueueFacts,
    QuotaFacts,
    WarningFacts,
    WorkloadFacts,
)
from shoal.views.dashboard.rows import event_key, waiting_key
from shoal.views.dashboard.table import Column, Row, Rows, draw_table
from shoal.views.dashboard.words import age, amount, plural

_NAME, _SHORT = 44, 34
_BOUND = 10
"""Columns of the bar of a quota."""
_NO_LIMIT = "no limit"
_INSUFFICIENT = "Insufficient nvidia.com/gpu"
Size = tuple[int, int]
"""Width and height."""


def waiting_table(
    facts: DashboardFacts,
    rows: Sequence[DashboardPod | WorkloadFacts],
    size: Size,
    selected: str = "",
    *,
    is_counted: bool = True,
) -> list[Text]:
    columns = [Column("WAITING", _NAME if size[0] > 100 else _SHORT), Column("GPUs", 6, is_number=True)]
    columns += [Column("AGE", 5, is_number=True)]
    has_queues = size[0] > 100 and any(one.queue for one in rows)
    columns += [Column("QUEUE", 24)] if has_queues else []
    columns += [Column("REASON")]

    def row(one: DashboardPod | WorkloadFacts) -> Row:
        cells = [(_waiter_name(one), ""), (amount(one.gpus), "bold"), (age(one.created, facts.now_s), "")]
        cells += [(one.queue, "")] if has_queues else []
        return Row(waiting_key(one).key, [*cells, (reason(one, facts.fleet), "dim")])

    return draw_table(columns, Rows(rows, lambda one: waiting_key(one).key, row), size, selected, is_counted=is_counted)


def reason(one: DashboardPod | WorkloadFacts, fleet: Fleet) -> str:
    """Why it waits; where GPUs lack, also how many one node could give."""
    if isinstance(one, WorkloadFacts):
        return one.why or "its queue has not tried it yet"
    if _INSUFFICIENT not in one.why:
        return one.why
    name, free = fleet.most_free
    # A viewer who may not list nodes gets no name.
    where = name or "one node"
    return f"most free: {free} on {where}; {one.why}" if free else f"no node has a whole free GPU; {one.why}"


def queue_table(queues: Sequence[QueueFacts], size: Size, selected: str = "", *, is_counted: bool = True) -> list[Text]:
    """A line for each queue: the first of its resources, which is a GPU where it has one."""
    is_wide = size[0] > 100
    columns = [Column("QUEUE", 28), *([Column("KIND", 12), Column("COHORT", 20)] if is_wide else [])]
    columns += [Column("RESOURCE", 24)] if is_wide else []
    columns += [Column(name, 9, is_number=True) for name in ("USED", "NOMINAL", "BORROWED", "PENDING")]
    columns += [Column("")]
    rows = []
    for queue in queues:
        quota = queue.quotas[0] if queue.quotas else None
        cells = [(queue.name, ""), *([(queue.kind, "dim"), (queue.parent, "dim")] if is_wide else [])]
        cells += [(quota.resource if quota is not None else "", "dim")] if is_wide else []
        cells += quota_cells(quota)
        cells += [("" if queue.pending is None else f"{queue.pending:,}", "bold" if queue.pending else "dim")]
        cells += [(f"! {queue.fault}", BROKEN) if queue.fault else (bar(quota), "")]
        rows.append(Row(queue.key, cells))
    return draw_table(columns, rows, size, selected, is_counted=is_counted)


def quota_cells(quota: QuotaFacts | None) -> list[tuple[str, str]]:
    """Used, nominal, borrowed."""
    if quota is None:
        return [("", ""), ("", ""), ("", "")]
    nominal = _NO_LIMIT if quota.nominal is None else in_units(quota.nominal, quota.resource)
    borrowed = in_units(quota.borrowed, quota.resource) if quota.borrowed else "0"
    return [(in_units(quota.used, quota.resource), "bold"), (nominal, ""), (borrowed, "" if quota.borrowed else "dim")]


def in_units(value: float, resource: str) -> str:
    return f"{value / (1 << 30):,.0f}Gi" if resource == "memory" else amount(value)


def bar(quota: QuotaFacts | None) -> str:
    """How much of the quota is used; what is borrowed goes beyond it."""
    if quota is None or not quota.nominal:
        return ""
    own = min(_BOUND, round(_BOUND * (quota.used - quota.borrowed) / quota.nominal))
    beyond = min(_BOUND, round(_BOUND * quota.borrowed / quota.nominal))
    return "▇" * own + "·" * (_BOUND - own) + ("|" + "▇" * beyond if beyond else "")


def gang_table(facts: DashboardFacts, gangs: Sequence[GangFacts], size: Size, selected: str = "") -> list[Text]:
    columns = [Column("GANG", _NAME), Column("NEEDS", 6, is_number=True), Column("RUNNING", 7, is_number=True)]
    columns += [Column("WAITING", 7, is_number=True), Column("GPUs", 6, is_number=True)]
    columns += [Column("AGE", 5, is_number=True), Column("REASON")]
    rows = [
        Row(
            gang.name,
            [
                (gang.name, ""),
                (f"{gang.needs:,}" if gang.needs else "", ""),
                (f"{gang.running:,}", ""),
                (f"{gang.waiting:,}", "bold" if gang.waiting else "dim"),
                (amount(gang.gpus), ""),
                (age(gang.created, facts.now_s), ""),
                (gang.why, "dim"),
            ],
        )
        for gang in gangs
    ]
    return draw_table(columns, rows, size, selected)


def event_table(
    facts: DashboardFacts, events: Sequence[EventFacts], size: Size, selected: str = "", *, is_counted: bool = True
) -> list[Text]:
    columns = [Column("AGE", 5, is_number=True), Column("REASON", 22), Column("OBJECT", _SHORT), Column("MESSAGE")]

    def row(event: EventFacts) -> Row:
        return Row(
            event_key(event).key,
            [
                (age(event.at, facts.now_s), "dim"),
                ((f"! {event.reason}", BROKEN) if event.is_warning else (event.reason, "bold")),
                (event.about, ""),
                (event.message + (f" (x{event.count:,})" if event.count > 1 else ""), "dim"),
            ],
        )

    return draw_table(
        columns, Rows(events, lambda event: event_key(event).key, row), size, selected, is_counted=is_counted
    )


def warning_lines(facts: DashboardFacts, warnings: Sequence[WarningFacts], size: Size) -> list[Text]:
    width, height = size
    lines = [Text(f"{plural(len(warnings), 'warning')}   a acknowledges", style=f"bold {BROKEN}")]
    for one in warnings[: height - 1]:
        line = Text(f"! {one.reason}", style=BROKEN)
        line.append(f" x{one.count:,}  {age(one.at, facts.now_s)} ago  ", style="default")
        line.append(f"{one.about}: ", style="default")
        line.append(one.message, style="dim")
        line.truncate(width, overflow="ellipsis")
        lines.append(line)
    return lines[:height]


def _waiter_name(one: DashboardPod | WorkloadFacts) -> str:
    if isinstance(one, WorkloadFacts):
        return f"{one.full_name} ({plural(one.pods, 'pod')})"
    return one.full_name
