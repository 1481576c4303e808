"""Declares what pages ask of the recorded history, and the answers."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from decimal import Decimal
from typing import Protocol

import msgspec

from shoal.cost.budgets import BudgetLine
from shoal.cost.prices.machine_prices import UnknownPrice
from shoal.cost.report import GroupTotal
from shoal.units.calendar_windows import TimeWindow
from shoal.views.job_history import JobSubject, PodAttempt
from shoal.views.node_history import NodePast
from shoal.views.timelines import GangTimeline, PodUse
from shoal.web.permitted_history import Namespaces

WINDOWS = ("today", "24h", "7d", "30d", "month", "lastmonth", "90d")
"""Those of the page of costs, so that a viewer cannot have every possible one computed."""
TIMELINE_WINDOWS = ("1h", "6h", "24h", "7d")
DIMENSIONS = ("team", "namespace", "queue", "job", "model", "node")


class CostQuestion(msgspec.Struct, frozen=True):
    by: str = "team"
    window: str = "30d"


class CostAnswer(msgspec.Struct, frozen=True):
    """As `shoal cost` prints it; amounts in cents, which add up to the invoice."""

    groups: Sequence[GroupTotal]
    currency: str
    start_ms: int
    end_ms: int
    budgets: Sequence[BudgetLine] = ()
    notes: Sequence[str] = ()
    missing: Sequence[UnknownPrice] = ()
    """Nodes without a price, which are in no sum."""

    @property
    def total(self) -> Decimal:
        return sum((group.total for group in self.groups), Decimal(0))


class TimelineAnswer(msgspec.Struct, frozen=True):
    window: TimeWindow
    gangs: Sequence[GangTimeline]
    all_gangs: int
    """How many there are; the page has the newest."""
    uses: Sequence[PodUse]
    all_uses: int
    columns: Sequence[int]
    """Where each column of the map of use begins, and where the last one ends."""
    notes: Sequence[str] = ()


class JobHistory(msgspec.Struct, frozen=True):
    """What a history knows of one job; `fault` where it knows nothing."""

    attempts: Sequence[PodAttempt] = ()
    all_attempts: int = 0
    notes: Sequence[str] = ()
    fault: str = ""


class NodeHistory(msgspec.Struct, frozen=True):
    """What a history knows of one node; `fault` where it knows nothing."""

    past: NodePast = NodePast()
    notes: Sequence[str] = ()
    fault: str = ""


class Histories(Protocol):
    """All raise ShoalError where there is no history, or a price is missing."""

    async def namespaces(self, window: str) -> Collection[str]:
        """Those of what was recorded in the window, also of namespaces that are gone."""
        ...

    async def costs(self, question: CostQuestion, seen: Namespaces) -> CostAnswer: ...

    async def temperatures(self) -> Mapping[str, float]:
        """Of each device or MIG instance by its name, as it was measured last, in degrees Celsius."""
        ...

    async def timeline_namespaces(self, window: str) -> Collection[str]: ...

    async def job(self, subject: JobSubject) -> JobHistory:
        """Of the last 7 days. The caller has checked that the viewer may list its namespace."""
        ...

    async def node_namespaces(self, name: str) -> Collection[str]:
        """Those whose pods held GPUs of the node in the last 7 days."""
        ...

    async def node(self, name: str, gpus: Sequence[Sequence[str]], seen: Namespaces) -> NodeHistory:
        """Of the last 7 days. `gpus`: the names under which each of its GPUs is measured."""
        ...

    async def timelines(self, window: str, seen: Namespaces) -> TimelineAnswer: ...
