"""Decides whether the cost budget of a team, a namespace or a queue lets new work start: facts in, decision out.

A budget refuses only where it says that it is enforced: by what the period has cost (`spent`), or also by what it will
have cost at its end (`forecast`). What was spent is a fact that the history gives. Facts older than an hour, and those
of a period that has ended, refuse nothing: without a history no work is held back. Running work is never concerned.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal

import msgspec

from shoal.api.budget_report import BudgetKind, BudgetReport, Enforcement

ENFORCEMENTS: tuple[Enforcement, ...] = ("", "spent", "forecast")
"""The strictest is the last."""
VALID_S = 3600.0
"""So long facts about budgets hold; the history renews them every few minutes."""
TEAM_LABELS = ("shoal.dev/team", "team")
_KAI_LABELS = ("kai.scheduler/queue", "runai/queue")
_VOLCANO_LABELS = ("volcano.sh/queue-name",)
_KUEUE_LABELS = ("kueue.x-k8s.io/queue-name", "kueue.x-k8s.io/local-queue-name")
"""The second is that of pods of admitted jobs."""
_LABELS_OF = {"kai-scheduler": _KAI_LABELS, "volcano": _VOLCANO_LABELS}
"""By scheduler; Shoal decides about the queues of both."""
_CENT = Decimal("0.01")


class BudgetOwner(msgspec.Struct, frozen=True):
    """Whose budgets concern a workload. `queue` is the name alone."""

    team: str
    namespace: str
    queue: str = ""


class SpentBudget(msgspec.Struct, frozen=True):
    kind: BudgetKind
    name: str
    per_month: Decimal
    spent: Decimal
    forecast: Decimal
    enforced: Enforcement = ""

    @property
    def is_used_up(self) -> bool:
        return self.spent >= self.per_month

    @property
    def refuses(self) -> bool:
        if not self.enforced:
            return False
        return self.is_used_up or (self.enforced == "forecast" and self.forecast > self.per_month)


class OverBudget(msgspec.Struct, frozen=True):
    """The refusal of a workload."""

    budget: SpentBudget
    currency: str
    period: str
    resets_s: float

    @property
    def message(self) -> str:
        one, limit = self.budget, _amount(self.budget.per_month)
        resets = f"it resets at {_moment(self.resets_s)}"
        if one.is_used_up:
            used = f"is spent: {_amount(one.spent)} of {limit} {self.currency} in {self.period}"
        else:
            used = (
                f"will be exceeded: {_amount(one.spent)} of {limit} {self.currency} are spent in {self.period}, "
                f"and {_amount(one.forecast)} are expected"
            )
        return f"The budget of {one.kind} {one.name} {used}; {resets}"


class CostBudgets:
    """The budgets of a period with what was spent of them."""

    def __init__(
        self,
        budgets: tuple[SpentBudget, ...] = (),
        *,
        currency: str = "USD",
        period: str = "",
        computed_s: float = 0.0,
        resets_s: float = 0.0,
    ) -> None:
        self.budgets = budgets
        self.currency, self.period = currency, period
        self.computed_s = computed_s
        self.resets_s = resets_s
        self.until_s = min(resets_s, computed_s + VALID_S)
        """From then on nothing is refused."""
        self.refusing = {(one.kind, one.name): one for one in budgets if one.refuses}

    def refusal(self, owner: BudgetOwner, now_s: float) -> OverBudget | None:
        """Of a workload that would start now."""
        if not self.refusing or now_s >= self.until_s:
            return None
        keys: tuple[tuple[BudgetKind, str], ...] = (
            ("team", owner.team),
            ("namespace", owner.namespace),
            ("queue", f"{owner.namespace}/{owner.queue}"),
            ("queue", owner.queue),
        )
        for key in keys:
            if (found := self.refusing.get(key)) is not None:
                return OverBudget(found, self.currency, self.period, self.resets_s)
        return None

    def at(self, now_s: float) -> CostBudgets:
        """Those of a picture of that moment: what is known in it holds until the period ends, unless it is out of date
        there."""
        if now_s >= self.until_s:
            return NO_BUDGETS
        return CostBudgets(
            self.budgets,
            currency=self.currency,
            period=self.period,
            computed_s=self.resets_s,
            resets_s=self.resets_s,
        )

    def refuses_as(self, other: CostBudgets) -> bool:
        """Whether both refuse the same work for the same reason. Amounts that grow decide nothing anew."""
        mine, theirs = (
            {key: (one.per_month, one.is_used_up) for key, one in each.refusing.items()} for each in (self, other)
        )
        return mine == theirs and (not mine or self.resets_s == other.resets_s)

    @property
    def is_refusing(self) -> bool:
        return bool(self.refusing)


NO_BUDGETS = CostBudgets()


def cost_budgets_of(report: BudgetReport) -> CostBudgets:
    return CostBudgets(
        tuple(
            SpentBudget(one.kind, one.name, one.per_month, one.spent, one.forecast, one.enforced)
            for one in report.budgets
        ),
        currency=report.currency,
        period=report.period,
        computed_s=report.computed_at.timestamp(),
        resets_s=report.resets_at.timestamp(),
    )


def team_of(
    namespace_labels: Mapping[str, str], labels: Mapping[str, str], namespace: str, teams: Collection[str] = ()
) -> str:
    """The team of a pod in costs. Users choose the labels of their pods, administrators those of namespaces.
    `teams`: those of namespaces, which the label of a pod cannot name."""
    if found := team_label(namespace_labels):
        return found
    said = team_label(labels)
    return said if said and said not in teams else namespace


def owner_of(namespace_labels: Mapping[str, str], namespace: str, queue: str) -> BudgetOwner:
    """Whose budgets hold work back: the labels of pods name no team."""
    return BudgetOwner(team_label(namespace_labels) or namespace, namespace, queue)


def queue_of_pod(scheduler: str, labels: Mapping[str, str], of_group: str = "") -> str:
    """The queue that decides about a pod that has no Workload: only labels that its scheduler reads count, after
    `of_group`, the queue of its PodGroup."""
    return of_group or _first(labels, _LABELS_OF.get(scheduler, (*_KAI_LABELS, *_VOLCANO_LABELS)))


def queue_label(scheduler: str, labels: Mapping[str, str]) -> str:
    """The queue that a pod names, where Workloads are not known."""
    own = "" if scheduler in _LABELS_OF else _first(labels, _KUEUE_LABELS)
    return own or queue_of_pod(scheduler, labels)


def _first(labels: Mapping[str, str], keys: Sequence[str]) -> str:
    return next((labels[key] for key in keys if labels.get(key)), "")


def team_label(labels: Mapping[str, str]) -> str:
    return _first(labels, TEAM_LABELS)


def _amount(value: Decimal) -> str:
    return f"{value.quantize(_CENT):,}"


def _moment(at_s: float) -> str:
    return datetime.fromtimestamp(at_s, UTC).isoformat().replace("+00:00", "Z")
