"""`Histories` and `Alerts` whose answers a test knows."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from decimal import Decimal

from shoal.cost.budgets import BudgetLine
from shoal.cost.report import GroupTotal
from shoal.units.calendar_windows import TimeWindow
from shoal.units.errors import UserError
from shoal.views.active_alerts import ActiveAlert, AlertsAnswer
from shoal.views.job_history import JobSubject, PodAttempt
from shoal.views.node_history import FormerHolder, NodePast, SeenXid
from shoal.views.timelines import GangTimeline, PodUse, Stretch
from shoal.web.history_answers import CostAnswer, CostQuestion, JobHistory, NodeHistory, TimelineAnswer
from shoal.web.permitted_history import Namespaces


class KnownHistories:
    """`Histories` whose answers a test knows."""

    def __init__(self, name: str = "vision", fault: str = "") -> None:
        self.name, self.fault = name, fault
        self.asked: list[tuple[object, Namespaces]] = []

    async def namespaces(self, window: str) -> Collection[str]:
        return {"vision", "hidden"}

    async def timeline_namespaces(self, window: str) -> Collection[str]:
        return {"vision", "hidden"}

    async def job(self, subject: JobSubject) -> JobHistory:
        if self.fault:
            raise UserError(self.fault)
        attempt = PodAttempt(
            f"{self.name}-0", "main", 0, 60_000, ["NoDeviceFits"], "n-0", ["GPU-a"], 60_000, 90_000, 120_000
        )
        return JobHistory([attempt], 3, ["the history begins late"])

    async def node_namespaces(self, name: str) -> Collection[str]:
        return {"vision", "hidden"}

    async def node(self, name: str, gpus: Sequence[Sequence[str]], seen: Namespaces) -> NodeHistory:
        self.asked.append((name, seen))
        if self.fault:
            raise UserError(self.fault)
        former = FormerHolder(f"vision/{self.name}-0", "ring", ["0-3"], 0, 3_600_000, 4.0, is_preempted=True)
        xid = SeenXid(3, "a", 79, 1_800_000, is_first=False, pods=[f"vision/{self.name}-0"], unnamed=1)
        return NodeHistory(NodePast([former], 7, 2, 1.5, [xid]), ["the history begins late"])

    async def temperatures(self) -> dict[str, float]:
        return {"a": 51.0, "b-part": 90.0}

    async def costs(self, question: CostQuestion, seen: Namespaces) -> CostAnswer:
        self.asked.append((question, seen))
        if self.fault:
            raise UserError(self.fault, fix="write it in the price file for node n-0")
        hours = Decimal(10)
        classes = {"allocated-active": Decimal(30), "allocated-idle": Decimal(10)}
        named = GroupTotal(self.name, hours, Decimal(40), classes)
        free = GroupTotal("", Decimal(0), Decimal("60.50"), {"unallocated": Decimal("60.50")})
        budget = BudgetLine(f"team {self.name}", Decimal(50), Decimal(40), Decimal(60), "at risk")
        return CostAnswer([named, free], "EUR", 0, 3_600_000, [budget], ["the history begins late"])

    async def timelines(self, window: str, seen: Namespaces) -> TimelineAnswer:
        self.asked.append((window, seen))
        stretches = [Stretch("waits", 0, 600_000), Stretch("runs", 600_000, 3_600_000)]
        line = GangTimeline(
            f"vision/{self.name}", "gang", "vision", "main", 2, 16, 600_000, 3_000_000, stretches, is_open=True
        )
        use = PodUse(f"vision/{self.name}-0", "vision", "n-0", [None, 30.0, 55.0, 90.0, 99.0])
        return TimelineAnswer(TimeWindow(0, 3_600_000), [line], 7, [use], 1, [0, 1, 2, 3, 4, 5])


class KnownAlerts:
    def __init__(self, *alerts: ActiveAlert, fault: str = "") -> None:
        self.answer = AlertsAnswer("http://prometheus:9090", alerts, fault)

    async def active(self) -> AlertsAnswer:
        return self.answer
