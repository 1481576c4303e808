"""The price file of a user: everything about prices that no catalogue knows.

Amounts are numbers or texts with at most 12 decimals; `from` is a day (2026-10-01) or a moment, and a price without it
has always held. Unknown fields are refused, because a misspelt field would be a price that does not count.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Literal

import msgspec

from shoal.units.errors import UserError, Where, excerpt
from shoal.units.money import MoneyError, money

MigBasis = Literal["memory", "compute"]
ShareBasis = Literal["replica", "use"]
MIG_BASES: tuple[MigBasis, ...] = ("memory", "compute")
SHARE_BASES: tuple[ShareBasis, ...] = ("replica", "use")


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", kw_only=True):
    """A part of the file."""


class MachinePrice(Entry, frozen=True, kw_only=True):
    """The price of a machine by its node, its pool or its instance type; the most special entry holds."""

    per_hour: Decimal
    node: str = ""
    pool: str = ""
    instance_type: str = ""
    from_ms: int | None = msgspec.field(default=None, name="from")


class OnPremises(Entry, frozen=True, kw_only=True):
    """What a machine of one's own costs per hour. Amounts are per GPU of the model."""

    model: str = ""
    pool: str = ""
    purchase: Decimal
    """Of a GPU, with its part of the machine."""
    years: Decimal
    watts: Decimal | None = None
    """Of a GPU with its part of the machine; measured power where it is absent."""
    pue: Decimal = Decimal(1)
    per_kwh: Decimal = Decimal(0)
    other_per_year: Decimal = Decimal(0)


class Reservation(Entry, frozen=True, kw_only=True):
    """Machines that are paid for whether they run or not: reserved instances, capacity blocks."""

    name: str
    instance_type: str
    count: int
    per_hour: Decimal = Decimal(0)
    """Of one machine."""
    upfront: Decimal = Decimal(0)
    """For one machine over all hours of the reservation."""
    from_ms: int | None = msgspec.field(default=None, name="from")
    until_ms: int | None = msgspec.field(default=None, name="until")


class SavingsPlan(Entry, frozen=True, kw_only=True):
    """So much per hour, for usage at the prices of the plan."""

    name: str
    per_hour: Decimal
    rates: dict[str, Decimal]
    """By instance type."""
    from_ms: int | None = msgspec.field(default=None, name="from")
    until_ms: int | None = msgspec.field(default=None, name="until")


class SpotPrice(Entry, frozen=True, kw_only=True):
    instance_type: str
    per_hour: Decimal
    region: str = ""
    from_ms: int | None = msgspec.field(default=None, name="from")


class SharedCost(Entry, frozen=True, kw_only=True):
    """A cost of the cluster that no machine has: support, licences, storage."""

    name: str
    per_month: Decimal


class CardRate(Entry, frozen=True, kw_only=True):
    """A price per GPU-hour that teams are charged instead of the cost."""

    per_gpu_hour: Decimal
    model: str = ""
    queue: str = ""


class Budget(Entry, frozen=True, kw_only=True):
    per_month: Decimal
    team: str = ""
    namespace: str = ""
    queue: str = ""
    """`namespace/name`: the queue of that namespace; a name alone: all queues that are called so."""
    enforce: Literal["", "spent", "forecast"] = ""
    """Whether new work waits once the budget is spent, or is expected to be exceeded."""

    @property
    def subject(self) -> tuple[Literal["team", "namespace", "queue"], str]:
        """Exactly one is set."""
        if self.team:
            return "team", self.team
        return ("namespace", self.namespace) if self.namespace else ("queue", self.queue)


class PriceFile(Entry, frozen=True, kw_only=True):
    currency: str = "USD"
    machines: tuple[MachinePrice, ...] = ()
    on_premises: tuple[OnPremises, ...] = ()
    reservations: tuple[Reservation, ...] = ()
    savings_plans: tuple[SavingsPlan, ...] = ()
    spot: tuple[SpotPrice, ...] = ()
    shared_costs: tuple[SharedCost, ...] = ()
    rate_card: tuple[CardRate, ...] = ()
    budgets: tuple[Budget, ...] = ()
    quotas: dict[str, int] = {}
    """GPUs by queue, for modes in which the holder of a quota pays for what is idle."""
    mig_by: MigBasis = "memory"
    """By what a MIG instance has its part of the price of its GPU."""
    share_by: ShareBasis = "replica"
    """By what pods that share a GPU have theirs."""


_LISTS: Mapping[str, type[Entry]] = {
    "machines": MachinePrice,
    "onPremises": OnPremises,
    "reservations": Reservation,
    "savingsPlans": SavingsPlan,
    "spot": SpotPrice,
    "sharedCosts": SharedCost,
    "rateCard": CardRate,
    "budgets": Budget,
}
_MOMENTS = ("from", "until")
_KEYS = {
    "machines": ("node", "pool", "instanceType"),
    "onPremises": ("model", "pool"),
    "budgets": ("team", "namespace", "queue"),
}
_CURRENCY_LETTERS = 3
_QUEUE = re.compile("[^/]+/[^/]+")


def read_price_file(document: Any, file: str) -> PriceFile:
    """Raises UserError with the field that is wrong."""
    where = Where(file=file)
    if document is None:
        return PriceFile()
    if not isinstance(document, dict):
        raise UserError("is not a map of prices", where=where, fix="write machines: with a list of prices below it")
    found: dict[str, Any] = {}
    for name, value in document.items():
        at = where.with_path(str(name))
        if name in _LISTS:
            if not isinstance(value, list):
                raise UserError("is not a list", where=at)
            found[name] = [_entry(name, one, at.below(f"[{number}]")) for number, one in enumerate(value)]
        else:
            found[name] = value
    currency = found.get("currency", "USD")
    if not (isinstance(currency, str) and len(currency) == _CURRENCY_LETTERS and currency.isupper()):
        fix = "write the three letters of the currency, as in EUR"
        raise UserError("is not a currency", where=where.with_path("currency"), fix=fix)
    prices: PriceFile = _converted(found, PriceFile, where)
    return prices


def _entry(name: str, given: Any, where: Where) -> Any:
    if not isinstance(given, dict):
        raise UserError("is not a map", where=where)
    read = {str(key): _read(str(key), value, where.key(str(key))) for key, value in given.items()}
    found = _converted(read, _LISTS[name], where)
    keys = _KEYS.get(name, ())
    if keys and sum(1 for key in keys if read.get(key)) != 1:
        raise UserError(f"has to name one of {', '.join(keys)}", where=where)
    if isinstance(found, Reservation) and found.count < 1:
        raise UserError("must be at least 1", where=where.with_path(f"{where.path}.count"))
    if isinstance(found, Reservation) and found.upfront and (found.from_ms is None or found.until_ms is None):
        raise UserError("has an upfront price without from and until", where=where, fix="write when it begins and ends")
    if isinstance(found, Budget) and "/" in found.queue and not _QUEUE.fullmatch(found.queue):
        fix = "write namespace/name, or the name alone for all queues that are called so"
        raise UserError(f"{excerpt(found.queue)} is no queue", where=where.key("queue"), fix=fix)
    if isinstance(found, OnPremises) and found.years <= 0:
        raise UserError("must be more than 0", where=where.with_path(f"{where.path}.years"))
    return read


def _read(key: str, value: Any, where: Where) -> Any:
    if key in _MOMENTS:
        return _moment(value, where)
    if isinstance(value, float):
        return _amount(repr(value), where)
    if isinstance(value, dict):
        return {str(name): _read(str(name), one, where.key(str(name))) for name, one in value.items()}
    if isinstance(value, str) and key.startswith(("per", "purchase", "upfront", "other", "years", "watts", "pue")):
        return _amount(value, where)
    if isinstance(value, int) and not isinstance(value, bool) and value < 0:
        raise UserError("is negative", where=where)
    return value


def _amount(text: str, where: Where) -> str:
    try:
        money(text)
    except MoneyError as error:
        raise UserError(f"{excerpt(text)} {error}", where=where) from None
    return text


def _moment(value: Any, where: Where) -> int:
    try:
        found = datetime.fromisoformat(str(value))
        return round((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp() * 1000)
    except (ValueError, OverflowError):
        fix = "write a day or a moment, as in 2026-10-01 or 2026-10-01T06:00:00Z"
        raise UserError(f"{excerpt(str(value))} is not a time", where=where, fix=fix) from None


def _converted(value: Any, wanted: type[Any], where: Where) -> Any:
    try:
        return msgspec.convert(value, wanted)
    except msgspec.ValidationError as error:
        raise UserError(str(error), where=where) from None
