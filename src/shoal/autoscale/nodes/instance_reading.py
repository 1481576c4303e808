"""Reads instance types that a user describes: capacity, overhead, labels, and offerings with their prices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shoal.api.resources import amounts
from shoal.api.wire import to_quantity
from shoal.autoscale.nodes.instance_types import MOST_INTERRUPTIONS, InstanceType, Offering
from shoal.autoscale.requirements.labels import INSTANCE_TYPE_LABEL
from shoal.units.errors import UserError, Where, excerpt

Raw = Mapping[str, Any]


def instance_type_of(raw: Raw, where: Where) -> InstanceType:
    """One instance type; raises UserError with the field that is wrong."""
    name = raw.get("name")
    if not isinstance(name, str) or not name:
        raise UserError("an instance type needs a name", where=where.below("name"))
    labels = {key: _values(value) for key, value in (raw.get("labels") or {}).items()}
    labels.setdefault(INSTANCE_TYPE_LABEL, (name,))
    offerings = tuple(
        _offering(each, where.below(f"offerings[{index}]")) for index, each in enumerate(raw.get("offerings") or ())
    )
    return InstanceType(
        name=name,
        capacity=_amounts(raw.get("capacity"), where.below("capacity")),
        overhead=_amounts(raw.get("overhead"), where.below("overhead")),
        labels=labels,
        offerings=offerings,
    )


def _values(value: Any) -> tuple[str, ...]:
    return tuple(str(each) for each in value) if isinstance(value, list) else (str(value),)


def _amounts(raw: Any, where: Where) -> dict[str, int]:
    found = {}
    for name, value in (raw or {}).items():
        try:
            found[name] = to_quantity(value)
        except UserError as error:
            raise error.at(where.key(name)) from error
    return amounts(found)


def _offering(raw: Raw, where: Where) -> Offering:
    price = raw.get("price")
    if isinstance(price, bool) or not isinstance(price, int | float) or price < 0:
        raise UserError(f"{excerpt(str(price))} is not a price", where=where.below("price"), fix="write 1.25, per hour")
    rate = raw.get("interruptionsPerHour", 0)
    if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 <= rate <= MOST_INTERRUPTIONS:
        here = where.below("interruptionsPerHour")
        raise UserError(f"{excerpt(str(rate))} is no rate per hour", where=here, fix="write for example 0.02")
    for field in ("zone", "capacityType"):
        if not raw.get(field):
            raise UserError(f"an offering needs a {field}", where=where.below(field))
    return Offering(
        zone=str(raw["zone"]),
        capacity_type=str(raw["capacityType"]),
        price=float(price),
        is_available=bool(raw.get("available", True)),
        left=raw.get("left"),
        interruptions_per_hour=float(rate),
    )
