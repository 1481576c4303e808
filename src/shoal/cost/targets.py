"""Targets of a fleet and its queues, and what missing one of them usually means; presets for budgets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal

import msgspec


class CostTarget(msgspec.Struct, frozen=True):
    figure: str
    about: str
    at_least: Decimal | None = None
    at_most: Decimal | None = None
    below: str = ""
    """What a value below the target usually means."""
    above: str = ""


_LONG_WAITS = "quotas are too small or GPUs are fragmented"
TARGETS = (
    CostTarget(
        "fleet-utilisation",
        "mean utilisation of all GPUs, as a part of 1",
        Decimal("0.65"),
        Decimal("0.85"),
        "GPUs are held without work or are not requested: look at idle holders and at the queues",
        "no capacity is left for new work: waits will grow",
    ),
    CostTarget(
        "pod-memory",
        "mean used part of the GPU memory that a pod holds",
        Decimal("0.80"),
        None,
        "pods hold larger GPUs than they need: use a MIG instance, a share or a smaller model",
    ),
    CostTarget(
        "research-wait-p95",
        "P95 of the wait in queues of research, in hours",
        None,
        Decimal(2),
        "",
        _LONG_WAITS,
    ),
    CostTarget(
        "production-wait-p95",
        "P95 of the wait in queues of production, in hours",
        None,
        Decimal(10) / 60,
        "",
        "production needs a guaranteed quota or preemption",
    ),
    CostTarget(
        "pod-idle",
        "idle part of the time in which a pod holds GPUs",
        None,
        Decimal("0.20"),
        "",
        "the workload waits for data or for people: notebooks, input pipelines",
    ),
)


class Breach(msgspec.Struct, frozen=True):
    figure: str
    value: Decimal
    wanted: str
    reading: str


def wait_target(queue: str, hours: Decimal) -> CostTarget:
    """The SLO of one queue; the figure has its name."""
    return CostTarget(queue, "P95 of the wait for its quota, in hours", at_most=hours, above=_LONG_WAITS)


def breaches(values: Mapping[str, Decimal], targets: Iterable[CostTarget] = TARGETS) -> list[Breach]:
    """The targets that are missed, of the figures that were measured."""
    found = []
    for one in targets:
        value = values.get(one.figure)
        if value is None:
            continue
        if one.at_least is not None and value < one.at_least:
            found.append(Breach(one.figure, value, f"at least {one.at_least.normalize()}", one.below))
        elif one.at_most is not None and value > one.at_most:
            found.append(Breach(one.figure, value, f"at most {round(one.at_most, 2).normalize()}", one.above))
    return found


class BudgetPreset(msgspec.Struct, frozen=True):
    name: str
    layout: str
    per_gpu: int
    spot_percent: int
    capacity: str
    scales_to_zero: bool
    utilisation: tuple[int, int]
    """The range to aim at, in percent."""


PRESETS = (
    BudgetPreset("cost-optimised", "1g.10gb", 7, 90, "90 % spot or more", True, (70, 85)),
    BudgetPreset("balanced", "2g.20gb", 3, 50, "half spot, half on demand", False, (60, 75)),
    BudgetPreset("performance", "whole GPUs", 1, 0, "reserved", False, (40, 60)),
)
