"""Which part of what a workload holds is borrowed: more than the nominal quota of its queue.

A queue lends to itself first: of its workloads, those that started last hold what exceeds the nominal quota. When an
earlier one ends, a later one holds less of others. The part of a holding is therefore its mean over time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from shoal.cost.records import PPM


class QuotaHolder(msgspec.Struct, frozen=True):
    """A workload with quota of a queue, or a pod where pods have it."""

    key: str
    since_ms: int
    amounts: Mapping[str, int]
    """By what the quota is counted in: a resource, or flavor and resource."""


def borrowed_parts(nominal: Mapping[str, int], holders: Iterable[QuotaHolder]) -> dict[str, int]:
    """Of the holders of one queue, in parts of a million. What `nominal` does not have is not counted."""
    used = dict.fromkeys(nominal, 0)
    found: dict[str, int] = {}
    for one in sorted(holders, key=lambda each: (each.since_ms, each.key)):
        whole = borrowed = 0
        for name, amount in one.amounts.items():
            if name not in used or amount <= 0:
                continue
            used[name] += amount
            whole += amount
            borrowed += min(amount, max(0, used[name] - nominal[name]))
        found[one.key] = PPM * borrowed // whole if whole else 0
    return found


class BorrowedTime(msgspec.Struct, frozen=True):
    """The part that was borrowed, over the time of a holding."""

    start_ms: int
    changed_ms: int
    ppm: int
    """Since then."""
    before: int = 0
    """Parts of a million times milliseconds, until then."""

    def changed(self, at_ms: int, ppm: int) -> BorrowedTime:
        at_ms = max(at_ms, self.changed_ms)
        return BorrowedTime(self.start_ms, at_ms, ppm, self.before + self.ppm * (at_ms - self.changed_ms))

    def mean(self, at_ms: int) -> int:
        at_ms = max(at_ms, self.changed_ms)
        length = at_ms - self.start_ms
        if length <= 0:
            return self.ppm
        return (self.before + self.ppm * (at_ms - self.changed_ms)) // length
