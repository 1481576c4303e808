"""The sensor readings of a GPU or of a MIG instance, from which metrics are computed."""

from __future__ import annotations

import msgspec


class Reading(msgspec.Struct, frozen=True):
    """The values of one GPU, or of one MIG instance as far as it has sensors of its own."""

    util: float
    """0 to 1."""
    used_mib: int
    reserved_mib: int
    free_mib: int
    power_w: float
    power_limit_w: int
    temperature_c: int
    memory_temperature_c: int
    sm_mhz: int
    memory_mhz: int
