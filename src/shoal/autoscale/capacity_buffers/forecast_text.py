"""The annotation of a CapacityBuffer with a forecast of its namespace's demand: how it is written, read, and applied.

A forecast that cannot be read, or whose history ended long ago, keeps no room: nothing is provisioned on its account.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

import msgspec

from shoal.autoscale.demand.forecast import HOURS, DemandForecast
from shoal.units.calendar_windows import zone_of
from shoal.units.errors import UserError, Where

FORECAST: Final = "shoal.dev/buffer-forecast"
LEAD: Final = timedelta(minutes=15)
"""Nodes are requested so long before an hour begins."""
_VALID: Final = timedelta(weeks=2)
_CLOCKS: Final = timedelta(minutes=5)
"""By so much the clocks of the recorder and of this process may differ."""


class WrittenForecast(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Of the demand of one namespace."""

    gpus: tuple[float | None, ...]
    weeks: int
    until: str
    """The end of the history that it is made from."""
    time_zone: str = "UTC"
    mean_error_gpus: float = 0.0
    short_percent: float = 0.0
    """In so many of the predicted hours the demand was higher."""


def forecast_text(found: DemandForecast, until_ms: int, time_zone: str) -> str:
    error = found.error
    written = WrittenForecast(
        gpus=tuple(None if each is None else round(each, 2) for each in found.gpus),
        weeks=found.weeks,
        until=datetime.fromtimestamp(until_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        time_zone=time_zone,
        mean_error_gpus=round(error.mean_gpus, 2),
        short_percent=round(100 * error.short_share, 1),
    )
    return msgspec.json.encode(written).decode()


def read_forecast(text: str, where: Where) -> WrittenForecast:
    """Raises UserError."""
    fix = "write it with `shoal scale forecast`"
    try:
        found = msgspec.json.decode(text.encode(), type=WrittenForecast)
        until = datetime.fromisoformat(found.until)
    except (msgspec.DecodeError, ValueError) as error:
        raise UserError(f"the forecast cannot be read: {error}", where=where, fix=fix) from error
    if until.tzinfo is None:
        raise UserError(f"the end of the history {found.until} has no time zone", where=where, fix=fix)
    if len(found.gpus) != HOURS:
        raise UserError(f"the forecast has {len(found.gpus)} hours instead of {HOURS}", where=where, fix=fix)
    return found


def room_of(found: WrittenForecast, now: datetime, demand_gpus: float, pod_gpus: int, where: Where) -> int:
    """For how many pods with so many GPUs there has to be room beyond the present demand. Raises UserError."""
    until = datetime.fromisoformat(found.until)
    if now - until > _VALID:
        what = f"the history of the forecast ended at {found.until}"
        raise UserError(what, where=where, fix="write it again with `shoal scale forecast`")
    if until - now > _CLOCKS:
        what = f"the history of the forecast ends in the future, at {found.until}"
        raise UserError(what, where=where, fix="write it again with `shoal scale forecast`, and compare the clocks")
    zone = zone_of(found.time_zone)
    predicted = max(predicted_gpus(found, moment, zone) for moment in (now, now + LEAD))
    return math.ceil(max(predicted - demand_gpus, 0.0) / pod_gpus)


def predicted_gpus(found: WrittenForecast, moment: datetime, zone: tzinfo) -> float:
    """None where too few weeks were recorded counts as none."""
    local = moment.astimezone(zone)
    return found.gpus[local.weekday() * 24 + local.hour] or 0.0


def forecast_words(found: WrittenForecast, now: datetime) -> str:
    gpus = predicted_gpus(found, now, zone_of(found.time_zone))
    return (
        f"{gpus:g} GPUs are predicted for this hour from {found.weeks} weeks; "
        f"mean error {found.mean_error_gpus:g} GPUs, demand was higher in {found.short_percent:g}% of hours"
    )
