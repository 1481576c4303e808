"""Draws everything that happens by chance in the simulated cloud from its seed and from what it happens to.

A draw depends on nothing else, so that a cluster that is started again, or a test that is repeated, sees the same
prices, outages and interruptions, in whatever order it asks.
"""

from __future__ import annotations

from hashlib import blake2b
from math import log
from typing import Final

from shoal.embedded.cloud.settings import CloudSettings

_OUTAGE_S: Final = 900.0
_HOUR_S: Final = 3600.0
_RANGE: Final = 2.0**64


class Chance:
    def __init__(self, settings: CloudSettings) -> None:
        self._settings = settings

    def has_outage(self, offering: str, now_s: float) -> bool:
        """Whether the offering has no capacity now."""
        return self._share("outage", offering, int(now_s // _OUTAGE_S)) < self._settings.failures.outage

    def registers(self, instance: str) -> bool:
        return self._share("registers", instance) >= self._settings.failures.never_registers

    def loses_response(self, token: str, attempt: int) -> bool:
        return self._share("response", token, attempt) < self._settings.failures.lost_responses

    def price_factor(self, offering: str, now_s: float) -> float:
        """Of the spot price in this hour."""
        share = self._share("price", offering, int(now_s // _HOUR_S))
        return 1.0 + self._settings.spot.price_spread * (2.0 * share - 1.0)

    def lifetime_s(self, instance: str) -> float | None:
        """Of a spot instance; None if it is never interrupted."""
        mean_s = self._settings.spot.mean_lifetime_s
        return None if mean_s is None else -mean_s * log(1.0 - self._share("lifetime", instance))

    def _share(self, *of: str | int) -> float:
        """From 0 to less than 1."""
        text = "/".join((str(self._settings.seed), *map(str, of)))
        return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big") / _RANGE
