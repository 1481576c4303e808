"""Remembers the offerings that had no capacity, or whose nodes did not start, so that plans avoid them for a while.

Each further failure of an offering doubles the time, so that a plan which cannot be fulfilled is not tried and given
up again and again. A node that starts makes its offering usual again.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec.structs import replace

from shoal.autoscale.nodes.instance_types import InstanceType

_FIRST_S: Final = 180.0
_LONGEST_S: Final = 1800.0
_FORGOTTEN_S: Final = 3 * 3600.0

Offer = tuple[str, str, str]
"""Instance type, zone and capacity type."""


class OfferingFailures:
    def __init__(self) -> None:
        self._until_s: dict[Offer, float] = {}
        self._failures: dict[Offer, int] = {}

    def note_failure(self, offer: Offer, now_s: float) -> float:
        """Returns until when plans avoid it."""
        if now_s - self._until_s.get(offer, now_s) > _FORGOTTEN_S:
            self._failures.pop(offer, None)
        if now_s < self._until_s.get(offer, 0.0):
            # Another request that was sent before the first one failed.
            return self._until_s[offer]
        failures = self._failures[offer] = self._failures.get(offer, 0) + 1
        until_s = now_s + min(_FIRST_S * 2.0 ** (failures - 1), _LONGEST_S)
        self._until_s[offer] = until_s
        return until_s

    def note_start(self, offer: Offer) -> None:
        self._failures.pop(offer, None)
        self._until_s.pop(offer, None)

    def is_avoided(self, offer: Offer, now_s: float) -> bool:
        return now_s < self._until_s.get(offer, 0.0)

    def next_s(self, now_s: float) -> float | None:
        """When the next offering may be tried again."""
        return min((until_s for until_s in self._until_s.values() if until_s > now_s), default=None)

    def applied(self, types: Iterable[InstanceType], now_s: float) -> tuple[InstanceType, ...]:
        """The types, with the offerings that are avoided as not available."""
        avoided = {offer for offer, until_s in self._until_s.items() if now_s < until_s}
        return tuple(types) if not avoided else tuple(_without(one, avoided) for one in types)


def _without(one: InstanceType, avoided: set[Offer]) -> InstanceType:
    if not any(offer[0] == one.name for offer in avoided):
        return one
    return replace(
        one,
        offerings=tuple(
            replace(each, is_available=False) if (one.name, each.zone, each.capacity_type) in avoided else each
            for each in one.offerings
        ),
    )
