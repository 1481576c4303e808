"""Checks names of time zones.

The names come from the zone data that Python ships with or finds; a name is asked for once.
"""

from __future__ import annotations

from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError


@lru_cache(maxsize=1024)
def time_zone_faults(name: str) -> tuple[str, ...]:
    if name == "":
        return ("timeZone must be nil or non-empty string",)
    if name.lower() == "local":
        return ("timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones",)
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return (f"unknown time zone {name}",)
    return ()
