"""Answers for pages about the recorded history with the code of `shoal cost`, each in a thread of its own.

What was read of a window, and every answer, is kept for half a minute: an open page asks again whenever the cluster
changes. One answer is computed at a time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from msgspec import structs

from shoal.api.budget_report import BUDGET_KINDS
from shoal.cli.cost_source import CostFacts, CostSource
from shoal.client.clock import Clock
from shoal.cost.budgets import BudgetLine, MonthSpending, budget_groups, budget_lines
from shoal.cost.records import Holder, Holding, Machine, Records, Wait
from shoal.cost.report import PriceBasis, cost_report, group_totals
from shoal.cost.statement import dimension, statement
from shoal.store.history.recent_series import recent_series
from shoal.store.history.sample_reader import Series
from shoal.units.calendar_windows import TimeWindow
from shoal.units.errors import UserError
from shoal.views.cost_tables import in_cents
from shoal.views.job_history import JobSubject, pod_attempts
from shoal.views.node_history import NodeRecords, XidChange, node_past, xid_changes
from shoal.views.timelines import gang_timelines, pod_uses
from shoal.web.cost_page import without_namespace
from shoal.web.history_answers import (
    DIMENSIONS,
    TIMELINE_WINDOWS,
    WINDOWS,
    CostAnswer,
    CostQuestion,
    JobHistory,
    NodeHistory,
    TimelineAnswer,
)
from shoal.web.kept_answers import KeptAnswers
from shoal.web.permitted_history import Namespaces, namespaces_in, permitted_records, permitted_waits

T = TypeVar("T")
_KEPT_S = 30.0
_LAST_WEEK = "7d"
"""For what the pages of jobs and nodes tell."""
_RECENT_MS = 10 * 60_000
_COLUMNS = 48
"""Of the map of use."""


@dataclass(frozen=True)
class RecordedWindow:
    """What was read of the history at once, so that the file is closed again."""

    facts: CostFacts
    records: Records
    waits: Sequence[Wait]
    notes: Sequence[str]
    basis: PriceBasis

    @property
    def window(self) -> TimeWindow:
        return self.facts.window


@dataclass(frozen=True)
class HeldWindow:
    """What was held and waited for, without use and prices."""

    holdings: Sequence[Holding]
    waits: Sequence[Wait]
    window: TimeWindow
    notes: Sequence[str]
    machines: Sequence[Machine] = ()


class RecordedHistory:
    """Implements `Histories` with the history in a folder."""

    def __init__(self, source: CostSource, clock: Clock) -> None:
        """`source`: the folder, the prices and the time zone; its window is not used."""
        self._source = source
        self._turn = asyncio.Lock()
        self._kept = KeptAnswers(clock)

    async def namespaces(self, window: str) -> Collection[str]:
        found = await self._window(window)
        return namespaces_in(found.records.holdings, found.waits)

    async def timeline_namespaces(self, window: str) -> Collection[str]:
        found, _ = await self._use(window)
        return namespaces_in(found.holdings, found.waits)

    async def costs(self, question: CostQuestion, seen: Namespaces) -> CostAnswer:
        if question.by not in DIMENSIONS:
            raise UserError("the page has no such dimension", fix=f"choose {', '.join(DIMENSIONS)}")
        found = await self._window(question.window)
        month = await self._window("month") if self._has_budgets(found) else None
        return await self._once(("costs", question, seen), lambda: _costs(found, month, question, seen))

    async def timelines(self, window: str, seen: Namespaces) -> TimelineAnswer:
        found, series = await self._use(window)
        return await self._once(("of", window, seen), lambda: _timelines(found, series, seen))

    async def job(self, subject: JobSubject) -> JobHistory:
        held = await self._held()
        return await self._once(("job", subject), lambda: _job(held, subject))

    async def node_namespaces(self, name: str) -> Collection[str]:
        return namespaces_in([one for one in (await self._held()).holdings if one.machine == name], ())

    async def node(self, name: str, gpus: Sequence[Sequence[str]], seen: Namespaces) -> NodeHistory:
        held = await self._held()
        changes, notes = await self._once("xids", lambda: _read_xids(replace(self._source, window=_LAST_WEEK)))
        records = NodeRecords(name, gpus, held.machines, held.holdings, changes)

        def is_named(holder: Holder) -> bool:
            # What a deleted tenant held has no name.
            return bool(holder.pod) and (seen is None or holder.namespace in seen)

        past = await self._once(("node", name, seen), lambda: node_past(records, is_named))
        return NodeHistory(past, list(dict.fromkeys([*held.notes, *notes])))

    async def _held(self) -> HeldWindow:
        return await self._once("held", lambda: _read_held(replace(self._source, window=_LAST_WEEK)))

    async def temperatures(self) -> Mapping[str, float]:
        return await self._once("temperatures", lambda: _temperatures(self._source))

    async def _use(self, window: str) -> tuple[HeldWindow, Series]:
        if window not in TIMELINE_WINDOWS:
            raise UserError("the page has no such window", fix=f"choose {', '.join(TIMELINE_WINDOWS)}")
        return await self._once(("use", window), lambda: _read_use(replace(self._source, window=window)))

    def _has_budgets(self, found: RecordedWindow) -> bool:
        return bool(found.facts.file.budgets)

    async def _window(self, window: str) -> RecordedWindow:
        if window not in WINDOWS:
            raise UserError("the page has no such window", fix=f"choose {', '.join(WINDOWS)}")
        return await self._once(("window", window), lambda: _read(replace(self._source, window=window)))

    async def _once(self, key: Hashable, compute: Callable[[], T]) -> T:
        async def computed() -> T:
            async with self._turn:
                return await asyncio.to_thread(compute)

        return await self._kept.of(key, _KEPT_S, computed)


def _read(source: CostSource) -> RecordedWindow:
    facts = source.open()
    try:
        by_day = source.window == "month" and bool(facts.file.budgets)
        records = facts.records(by_day=by_day)
        return RecordedWindow(facts, records, facts.waits(), facts.notes(), facts.basis(records.machines))
    finally:
        facts.history.close()


def _read_use(source: CostSource) -> tuple[HeldWindow, Series]:
    facts = source.open()
    history, window = facts.history, facts.window
    try:
        held = list(history.ledger.holdings(window.start_ms, window.end_ms).values())
        series = recent_series(history.measured, "util", window.start_ms, window.end_ms)
        # The notes say what the series do not have.
        return HeldWindow(held, facts.waits(), window, facts.notes()), series
    finally:
        history.close()


def _read_held(source: CostSource) -> HeldWindow:
    facts = source.open()
    history, window = facts.history, facts.window
    try:
        held = list(history.ledger.holdings(window.start_ms, window.end_ms).values())
        machines = history.ledger.machines(window.start_ms, window.end_ms)
        return HeldWindow(held, facts.waits(), window, facts.notes(), machines)
    finally:
        history.close()


def _read_xids(source: CostSource) -> tuple[list[XidChange], list[str]]:
    """Also what is known of the source of the samples once they were asked for."""
    facts = source.open()
    history, window = facts.history, facts.window
    try:
        series = recent_series(history.measured, "xid", window.start_ms, window.end_ms)
        return xid_changes(series.devices, series.times_ms, series.values), facts.notes()
    finally:
        history.close()


def _job(found: HeldWindow, subject: JobSubject) -> JobHistory:
    attempts, count = pod_attempts(found.holdings, found.waits, subject, found.window.end_ms)
    return JobHistory(attempts, count, found.notes)


def _temperatures(source: CostSource) -> dict[str, float]:
    """The last values of the last minutes that were recorded."""
    facts = source.open()
    history, end_ms = facts.history, facts.window.end_ms
    try:
        series = history.measured.series("temperature", end_ms - _RECENT_MS, end_ms)
    finally:
        history.close()
    found = {}
    for name, values in zip(series.devices, series.values, strict=True):
        known = values[~np.isnan(values)]
        if known.size:
            found[name] = float(known[-1])
    return found


def _timelines(found: HeldWindow, series: Series, seen: Namespaces) -> TimelineAnswer:
    held = [one for one in found.holdings if seen is None or one.holder.namespace in seen]
    window = found.window
    gangs, all_gangs = gang_timelines(held, permitted_waits(found.waits, seen), window)
    columns = [window.start_ms + window.length_ms * at // _COLUMNS for at in range(_COLUMNS + 1)]
    uses, all_uses = pod_uses(held, series.devices, series.times_ms, series.values, columns)
    return TimelineAnswer(window, gangs, all_gangs, uses, all_uses, columns, found.notes)


def _costs(found: RecordedWindow, month: RecordedWindow | None, question: CostQuestion, seen: Namespaces) -> CostAnswer:
    records = permitted_records(found.records, seen)
    report = cost_report(records, found.facts.period(by_day=False), dimension(question.by), found.basis)
    rows = [structs.replace(row, group=without_namespace(row.group)) for row in report.rows]
    return CostAnswer(
        groups=in_cents(group_totals(rows)),
        currency=found.facts.file.currency,
        start_ms=found.window.start_ms,
        end_ms=found.window.end_ms,
        budgets=[] if month is None else _budgets(month, seen),
        notes=[*found.notes, *report.notes],
        missing=report.missing,
    )


def _budgets(found: RecordedWindow, seen: Namespaces) -> list[BudgetLine]:
    """Of a team or queue only where the viewer sees all of its namespaces: a part would look as if it were kept."""
    facts = found.facts
    budgets = [one for one in facts.file.budgets if seen is None or one.namespace in seen]
    curves = facts.curves_of(found.records.machines, found.basis)
    period = facts.period(by_day=True)
    rows = {kind: statement(found.records, curves, period, budget_groups(kind)) for kind in BUDGET_KINDS}
    return budget_lines(
        budgets, rows, MonthSpending(period.days, found.window.end_ms, facts.month_end_ms(), (), facts.since_ms)
    )
