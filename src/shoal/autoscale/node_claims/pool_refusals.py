"""Remembers the pools whose requests the cloud refuses as wrong, so that plans use other pools meanwhile.

What is refused is a fault of the pool or of its node class, and no offering is at fault: offerings stay usable for
other pools. Each further refusal doubles the time until the pool is tried again. A pool that names another node class
is tried at once.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec
from msgspec.structs import replace

from shoal.autoscale.nodes.instance_types import InstanceType

_FIRST_S: Final = 30.0
_LONGEST_S: Final = 600.0


class PoolRefusal(msgspec.Struct, frozen=True):
    """The last refusal of a pool."""

    node_class: str
    words: str
    until_s: float
    delay_s: float


class PoolRefusals:
    def __init__(self) -> None:
        self._refusals: dict[str, PoolRefusal] = {}

    def note_refusal(self, pool: str, node_class: str, words: str, now_s: float) -> float:
        """Returns until when plans leave the pool out."""
        known = self._refusals.get(pool)
        if known is None or known.node_class != node_class:
            delay_s = _FIRST_S
        elif now_s < known.until_s:
            # Another request that was sent before the first one was refused.
            return known.until_s
        else:
            delay_s = min(2 * known.delay_s, _LONGEST_S)
        self._refusals[pool] = PoolRefusal(node_class, words, now_s + delay_s, delay_s)
        return now_s + delay_s

    def note_grant(self, pool: str) -> None:
        self._refusals.pop(pool, None)

    def words(self, pool: str, node_class: str) -> str:
        """What the cloud said; empty if its last request for the pool was not refused."""
        known = self._refusals.get(pool)
        return known.words if known is not None and known.node_class == node_class else ""

    def next_s(self, now_s: float) -> float | None:
        """When the next pool may be tried again."""
        return min((each.until_s for each in self._refusals.values() if each.until_s > now_s), default=None)

    def applied(
        self, pool: str, node_class: str, types: Iterable[InstanceType], now_s: float
    ) -> tuple[InstanceType, ...]:
        """The types of the pool; none of their offerings is available while the pool is left out."""
        known = self._refusals.get(pool)
        if known is None or known.node_class != node_class or now_s >= known.until_s:
            return tuple(types)
        return tuple(
            replace(one, offerings=tuple(replace(each, is_available=False) for each in one.offerings)) for one in types
        )
