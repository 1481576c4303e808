"""Reads how the simulated cloud behaves: boot times, capacity, the spot market, failures; and the seed of all chance.

seed: 7
boot: [0s, 1m, 2m, 5m, 8m, 10m]
zones: 3
capacity:
- {instanceType: p5.48xlarge, zone: us-east-1a, capacityType: on-demand, instances: 4}
spot: {meanLifetime: 6h, notice: 2m, priceSpread: 0.2}
failures: {outage: 0.05, neverRegisters: 0.01, lostResponses: 0.02}
requestsPerSecond: 20
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any, Final, TypeVar

import msgspec

from shoal.autoscale.nodes.pool_reading import duration_s
from shoal.units.errors import UserError, Where, excerpt
from shoal.units.near_texts import near_texts

PHASES: Final = ("requested", "running", "registered", "ready", "devices", "startup-done")
"""What has happened at each of the boot times."""
T = TypeVar("T")
_BOOT_S: Final = (0.0, 60.0, 120.0, 300.0, 480.0, 600.0)


class CapacityRule(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """How many instances of an offering exist; empty fields match every offering."""

    instances: int
    instance_type: str = ""
    zone: str = ""
    capacity_type: str = ""

    def matches(self, instance_type: str, zone: str, capacity_type: str) -> bool:
        pairs = ((self.instance_type, instance_type), (self.zone, zone), (self.capacity_type, capacity_type))
        return all(not wanted or wanted == given for wanted, given in pairs)


class SpotMarket(msgspec.Struct, frozen=True):
    mean_lifetime_s: float | None = None
    """How long a spot instance lives on average; None: it is never interrupted."""
    notice_s: float = 120.0
    price_spread: float = 0.0
    """By which part the price of each hour may be above or below the usual one."""


class CloudFailures(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Probabilities from 0 to 1."""

    outage: float = 0.0
    """That an offering has no capacity for a quarter of an hour."""
    never_registers: float = 0.0
    """Of an instance."""
    lost_responses: float = 0.0
    """Of a request that was carried out."""


class CloudSettings(msgspec.Struct, frozen=True):
    seed: int = 1
    boot_s: tuple[float, ...] = _BOOT_S
    """Seconds after the request, one for each of the phases."""
    zones: int = 3
    """In how many zones of its region each type is offered, for pools that do not name zones."""
    capacity: tuple[CapacityRule, ...] = ()
    spot: SpotMarket = SpotMarket()
    failures: CloudFailures = CloudFailures()
    requests_per_second: float = 20.0

    def at_s(self, phase: str) -> float:
        return self.boot_s[PHASES.index(phase)]


_FIELDS: Final = ("seed", "boot", "zones", "capacity", "spot", "failures", "requestsPerSecond")
_SPOT_FIELDS: Final = ("meanLifetime", "notice", "priceSpread")
_MOST_ZONES: Final = 6


def cloud_settings(raw: Any, where: Where) -> CloudSettings:
    """Raises UserError with the field that is wrong."""
    given = _map(raw, where, _FIELDS)
    defaults = CloudSettings()
    return CloudSettings(
        seed=_whole(given, "seed", where, 1, 0, 2**31),
        boot_s=_boot(given["boot"], where.below("boot")) if "boot" in given else defaults.boot_s,
        zones=_whole(given, "zones", where, defaults.zones, 1, _MOST_ZONES),
        capacity=tuple(
            _converted(each, CapacityRule, where.below(f"capacity[{index}]"))
            for index, each in enumerate(_list(given.get("capacity"), where.below("capacity")))
        ),
        spot=_spot(given.get("spot"), where.below("spot")),
        failures=_failures(given.get("failures"), where.below("failures")),
        requests_per_second=_positive(given.get("requestsPerSecond", 20.0), where.below("requestsPerSecond")),
    )


def _boot(raw: Any, where: Where) -> tuple[float, ...]:
    listed = _list(raw, where)
    if len(listed) != len(PHASES):
        raise UserError(f"has {len(listed)} times", where=where, fix=f"write {len(PHASES)}, for {', '.join(PHASES)}")
    found = tuple(duration_s(each, where.below(f"[{index}]")) or 0.0 for index, each in enumerate(listed))
    if any(later < earlier for earlier, later in pairwise(found)):
        raise UserError("the times must not decrease", where=where, fix="write for example 0s, 1m, 2m, 5m, 8m, 10m")
    return found


def _spot(raw: Any, where: Where) -> SpotMarket:
    given = _map(raw, where, _SPOT_FIELDS)
    spread = given.get("priceSpread", 0.0)
    if isinstance(spread, bool) or not isinstance(spread, int | float) or not 0 <= spread < 1:
        raise UserError("must be from 0 to less than 1", where=where.below("priceSpread"))
    notice_s = duration_s(given.get("notice", "2m"), where.below("notice"))
    lifetime_s = duration_s(given.get("meanLifetime"), where.below("meanLifetime"))
    return SpotMarket(lifetime_s, notice_s or 0.0, float(spread))


def _failures(raw: Any, where: Where) -> CloudFailures:
    found = _converted(raw or {}, CloudFailures, where)
    for name in ("outage", "never_registers", "lost_responses"):
        if not 0 <= getattr(found, name) <= 1:
            raise UserError("must be from 0 to 1", where=where.below(name))
    return found


def _map(raw: Any, where: Where, known: tuple[str, ...]) -> Mapping[str, Any]:
    if raw is None:
        return {}
    if not isinstance(raw, dict):
        raise UserError("must be a map", where=where)
    unknown = next((key for key in raw if key not in known), None)
    if unknown is not None:
        near = near_texts(str(unknown), known)
        fix = f"did you mean {near[0]}?" if near else f"use {', '.join(known)}"
        raise UserError(f"unknown field {excerpt(str(unknown))}", where=where, fix=fix)
    return raw


def _list(raw: Any, where: Where) -> list[Any]:
    if raw is None:
        return []
    if not isinstance(raw, list):
        raise UserError("must be a list", where=where)
    return raw


def _converted(raw: Any, wanted: type[T], where: Where) -> T:
    try:
        return msgspec.convert(raw, wanted)
    except msgspec.ValidationError as error:
        raise UserError(str(error), where=where) from error


def _whole(given: Mapping[str, Any], name: str, where: Where, usual: int, least: int, most: int) -> int:
    value = given.get(name, usual)
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise UserError(f"must be a whole number from {least} to {most}", where=where.below(name))
    return value


def _positive(value: Any, where: Where) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
        raise UserError("must be more than 0", where=where)
    return float(value)
