"""Priority classes and pod disruption budgets."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from msgspec import Meta, field

from shoal.api.meta import ObjectMeta
from shoal.api.pod import Priority
from shoal.api.selectors import LabelSelector
from shoal.api.wire import ApiStruct, Timestamp
from shoal.units.errors import UserError, Where, excerpt

_PERCENT = re.compile(r"([0-9]{1,3})%")


class PriorityClass(ApiStruct, frozen=True):
    value: Priority
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    global_default: bool = False
    preemption_policy: Literal["PreemptLowerPriority", "Never"] = "PreemptLowerPriority"


class DisruptionBudgetSpec(ApiStruct, frozen=True):
    min_available: int | str | None = None
    max_unavailable: int | str | None = None
    selector: LabelSelector | None = None


class DisruptionBudgetStatus(ApiStruct, frozen=True):
    disruptions_allowed: Annotated[int, Meta(ge=0)] = 0
    current_healthy: int = 0
    desired_healthy: int = 0
    expected_pods: int = 0
    disrupted_pods: dict[str, Timestamp] = field(default_factory=dict)


class PodDisruptionBudget(ApiStruct, frozen=True):
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: DisruptionBudgetSpec = field(default_factory=DisruptionBudgetSpec)
    status: DisruptionBudgetStatus | None = None

    def allowed(self, healthy: int, expected: int) -> int:
        """Evictions this budget bears with so many healthy pods of so many expected. Percentages round up."""
        if self.spec.max_unavailable is not None:
            needed = max(0, expected - part_of(self.spec.max_unavailable, expected))
        elif self.spec.min_available is not None:
            needed = part_of(self.spec.min_available, expected)
        else:
            return 0
        return max(0, healthy - needed)

    def check(self, where: Where) -> None:
        spec = self.spec
        if spec.min_available is not None and spec.max_unavailable is not None:
            raise UserError("minAvailable and maxUnavailable cannot be both set", where=where.below("spec"))
        for name, amount in (("minAvailable", spec.min_available), ("maxUnavailable", spec.max_unavailable)):
            _check_amount(amount, where.below(f"spec.{name}"))
        if spec.selector is not None:
            spec.selector.check(where.below("spec.selector"))


def part_of(amount: int | str, total: int) -> int:
    """A number, or a percentage rounded up; what is neither is 0."""
    if isinstance(amount, int):
        return amount
    match = _PERCENT.fullmatch(amount)
    return -(-int(match[1]) * total // 100) if match else 0


def _check_amount(amount: int | str | None, where: Where) -> None:
    if isinstance(amount, int) and amount < 0:
        raise UserError(f"must be 0 or more, got {amount}", where=where)
    if isinstance(amount, str):
        match = _PERCENT.fullmatch(amount)
        if match is None or int(match[1]) > 100:
            raise UserError(f"{excerpt(amount)} is neither a whole number nor 0% to 100%", where=where)
