"""Which group pays what: the rows of a statement as charges, whose sum is the invoice in every mode.

    showback    as request, and nothing is booked: no discount, no refund
    request     what a group holds, used or not (the default)
    usage       what a group holds times its utilisation; the rest is not charged to it
    quota       as request, and the holders of quotas pay for free GPUs, so many as the quota that they leave: where it
                is more than what is free, in proportion to it, and where it is less, the rest is left over
    rate-card   GPU-hours at fixed prices; the difference from the cost is the platform's

What is left over (free capacity, unhealthy devices, overhead, unused commitments, shared costs) is divided by `idle`:
`even` or `weighted` among the groups, or it stays with the platform (`platform`) or is only shown (`none`). Borrowed
quota can have a discount, and preempted work can be refunded; the platform carries both. Charging by use makes holding
unused GPUs cheap; see the page on costs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Literal

import msgspec

from shoal.cost.prices.price_file import CardRate
from shoal.cost.records import PPM, Holding, Machine
from shoal.cost.statement import CostRow, GroupOf
from shoal.units.errors import UserError, Where
from shoal.units.money import rounded

ChargeMode = Literal["showback", "request", "usage", "quota", "rate-card"]
IdleMode = Literal["none", "platform", "even", "weighted"]
CHARGE_MODES: tuple[ChargeMode, ...] = ("showback", "request", "usage", "quota", "rate-card")
IDLE_MODES: tuple[IdleMode, ...] = ("none", "platform", "even", "weighted")
HELD = ("allocated-active", "allocated-idle", "allocated-unmeasured", "startup")
_FREE = ("unallocated", "fragmented")
_SEPARATOR = "\x1f"


class ChargePolicy(msgspec.Struct, frozen=True):
    mode: ChargeMode = "request"
    idle: IdleMode = "none"
    borrowed_discount_ppm: int = 0
    refunds_preempted: bool = False
    rate_card: tuple[CardRate, ...] = ()
    quota_hours: Mapping[str, Decimal] = {}
    """GPU-hours of quota by group, in the period."""
    quota_day: int = 0
    """The first part of the period of which quotas are known."""


class Charge(msgspec.Struct, frozen=True, rename="camel"):
    group: str
    """Empty: what no group is charged."""
    own: Decimal
    """For what the group held."""
    idle: Decimal = Decimal(0)
    """Its part of what was left over."""
    discount: Decimal = Decimal(0)
    refund: Decimal = Decimal(0)

    @property
    def amount(self) -> Decimal:
        return self.own + self.idle - self.discount - self.refund


PLATFORM = "platform"


def charged_dimension(by: GroupOf) -> GroupOf:
    """Groups that also tell the model, whether work was preempted, and what part of it was borrowed."""

    def group(held: Holding | None, machine: Machine) -> str:
        preempted = "1" if held is not None and held.is_preempted else ""
        borrowed = str(held.borrowed_ppm) if held is not None else "0"
        queue = held.holder.queue if held is not None else ""
        model, queue = (one.replace(_SEPARATOR, " ") for one in (machine.model, queue))
        return _SEPARATOR.join((by(held, machine), model, preempted, borrowed, queue))

    return group


def charges(rows: Iterable[CostRow], policy: ChargePolicy) -> list[Charge]:
    """`rows`: of a statement by `charged_dimension`. The sum of the charges is the sum of the rows."""
    own: defaultdict[str, Decimal] = defaultdict(Decimal)
    discounts: defaultdict[str, Decimal] = defaultdict(Decimal)
    refunds: defaultdict[str, Decimal] = defaultdict(Decimal)
    hours: defaultdict[str, Decimal] = defaultdict(Decimal)
    spent, free, free_hours = Decimal(0), Decimal(0), Decimal(0)
    for row in rows:
        group, model, preempted, borrowed, queue = _parts(row.group)
        spent += row.amount
        if row.kind in _FREE and row.gpu_hours:
            free += row.amount
            free_hours += row.gpu_hours
        if row.kind not in HELD:
            continue
        charged = _charged(row, policy, model, queue)
        own[group] += charged
        if row.day >= policy.quota_day:
            hours[group] += row.gpu_hours
        if policy.refunds_preempted and preempted:
            refunds[group] += charged
        elif borrowed:
            discounts[group] += charged * borrowed * policy.borrowed_discount_ppm / PPM / PPM
    carried = sum(discounts.values(), Decimal(0)) + sum(refunds.values(), Decimal(0))
    left = spent - sum(own.values(), Decimal(0)) + carried
    shares: dict[str, Decimal] = {}
    if policy.mode == "quota":
        unused = _unused_quota(hours, policy.quota_hours)
        unused_hours = sum(unused.values(), Decimal(0))
        shares = _divided(free * unused_hours / free_hours if unused_hours < free_hours else free, unused)
        left -= sum(shares.values(), Decimal(0))
    for group, share in _idle(left, own, policy).items():
        shares[group] = shares.get(group, Decimal(0)) + share
    groups = sorted(own.keys() | shares.keys())
    zero = Decimal(0)
    return [
        Charge(one, own.get(one, zero), shares.get(one, zero), discounts.get(one, zero), refunds.get(one, zero))
        for one in groups
    ]


def shown_charges(found: Sequence[Charge]) -> list[tuple[str, Decimal]]:
    """Groups and amounts in cents, which add up to the rounded sum."""
    return list(zip((one.group for one in found), rounded([one.amount for one in found]), strict=True))


def _parts(text: str) -> tuple[str, str, bool, int, str]:
    if _SEPARATOR not in text:
        return text, "", False, 0, ""
    # A group may contain the separator: owners of pods have any name.
    group, model, preempted, borrowed, queue = text.rsplit(_SEPARATOR, 4)
    return group, model, bool(preempted), int(borrowed), queue


def _charged(row: CostRow, policy: ChargePolicy, model: str, queue: str) -> Decimal:
    if policy.mode == "usage":
        return row.amount * row.used_amount / row.gpu_amount if row.gpu_amount else Decimal(0)
    if policy.mode == "rate-card":
        return row.gpu_hours * _card_rate(policy.rate_card, model, queue) if row.gpu_hours else Decimal(0)
    return row.amount


def _card_rate(card: Sequence[CardRate], model: str, queue: str) -> Decimal:
    """The entry with the queue and the model, else with one of them, else the one for all."""
    fitting = [one for one in card if one.model in ("", model) and one.queue in ("", queue)]
    if not fitting:
        fix = f"write in the price file rateCard: [{{model: {model or 'MODEL'}, perGpuHour: AMOUNT}}]"
        raise UserError(f"no rate is known of {model or 'GPUs without a model'}", where=Where(path="rateCard"), fix=fix)
    return max(fitting, key=lambda one: (bool(one.queue), bool(one.model))).per_gpu_hour


def _unused_quota(hours: Mapping[str, Decimal], quotas: Mapping[str, Decimal]) -> dict[str, Decimal]:
    return {name: max(Decimal(0), quota - hours.get(name, 0)) for name, quota in quotas.items()}


def _divided(whole: Decimal, by: Mapping[str, Decimal]) -> dict[str, Decimal]:
    total = sum(by.values(), Decimal(0))
    if not total:
        return {}
    found = {name: whole * part / total for name, part in sorted(by.items())}
    # A division leaves a billionth of a billionth; the sum must be exact.
    last = next(reversed(found))
    found[last] += whole - sum(found.values(), Decimal(0))
    return found


def _idle(left: Decimal, own: Mapping[str, Decimal], policy: ChargePolicy) -> dict[str, Decimal]:
    if policy.idle == "platform":
        return {PLATFORM: left}
    groups = [name for name in own if name]
    if policy.idle == "none" or not groups:
        return {"": left}
    weights = {name: Decimal(1 if policy.idle == "even" else own[name]) for name in groups}
    return _divided(left, weights) or {"": left}
