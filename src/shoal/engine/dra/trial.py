"""Tracks the devices picked during a search, on top of the devices in use: what may be picked next, what is left, and
how each pick is undone.

Picks are undone in reverse order; nothing of them is left in the counts, shares, counters and values then.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import NamedTuple

from shoal.engine.dra.devices import Amounts, Attribute
from shoal.engine.dra.offers import has_capacity, is_tainted, share_of
from shoal.engine.dra.pools import PoolDevice
from shoal.engine.dra.requests import MOST_RESULTS, ClaimAsk, Constraint, Option, Pick, Picks, Request
from shoal.engine.dra.usage import Usage


class Stock(NamedTuple):
    """What a node can use, and what is still free of it."""

    devices: list[PoolDevice]
    usage: Usage
    sets: Mapping[str, frozenset[str]]
    is_complete: bool
    """False while some pool is only half published: what "all devices" are is not known then."""


class Trial:
    def __init__(self, claims: Sequence[ClaimAsk], stock: Stock) -> None:
        self.counts = [0] * len(claims)
        """Devices picked, by claim."""
        self._claims = claims
        self._stock = stock
        self._picked: list[tuple[int, Pick]] = []
        self._shares: dict[str, list[Amounts]] = {}
        self._counters: dict[str, dict[tuple[str, str], int]] = {}
        self._values: dict[tuple[int, Constraint], list[Attribute]] = {}
        """What the devices picked so far have of each constrained attribute."""

    def picks(self) -> tuple[Picks, ...]:
        return tuple(
            tuple(pick for number, pick in self._picked if number == claim) for claim in range(len(self._claims))
        )

    def take(self, number: int, request: Request, option: Option, device: PoolDevice) -> Callable[[], None] | None:
        """Take a device, if it can be had; returns what undoes it."""
        share = share_of(device, option)
        if share is None or self.counts[number] == MOST_RESULTS or is_tainted(device, option):
            return None
        values = self._agreeing(number, request, option, device)
        if values is None:
            return None
        draws = False
        if not option.admin:
            others = self._stock.usage.shares(device.id) + self._shares.get(device.id, [])
            if not has_capacity(device, share, others):
                return None
            draws = not others and bool(device.facts.consumes)
            if draws and not self._has_counters(device):
                return None
        self._note(number, Pick(request.label(option), device.id, share, option.admin), device, values, draws)
        return lambda: self._undo(number, device, values, draws)

    def _note(
        self,
        number: int,
        pick: Pick,
        device: PoolDevice,
        values: list[tuple[list[Attribute], Attribute]],
        draws: bool,
    ) -> None:
        self._picked.append((number, pick))
        self.counts[number] += 1
        for seen, value in values:
            seen.append(value)
        if not pick.admin:
            self._shares.setdefault(device.id, []).append(pick.share)
        if draws:
            self._draw(device, 1)

    def _undo(
        self, number: int, device: PoolDevice, values: list[tuple[list[Attribute], Attribute]], draws: bool
    ) -> None:
        _, pick = self._picked.pop()
        self.counts[number] -= 1
        for seen, _ in values:
            seen.pop()
        if not pick.admin:
            self._shares[device.id].pop()
        if draws:
            self._draw(device, -1)

    def _agreeing(
        self, number: int, request: Request, option: Option, device: PoolDevice
    ) -> list[tuple[list[Attribute], Attribute]] | None:
        """Where to note the device's values, or None when some constraint forbids it."""
        values = []
        for rule in self._claims[number].constraints:
            if not rule.covers(request, option):
                continue
            value = device.facts.attributes.get(rule.attribute)
            seen = self._values.setdefault((number, rule), [])
            if value is None or (seen and (value in seen) is rule.distinct):
                return None
            values.append((seen, value))
        return values

    def _has_counters(self, device: PoolDevice) -> bool:
        left = self._left(device.pool)
        return all(
            left.get((consumption.counter_set, counter), 0) >= amount
            for consumption in device.facts.consumes
            for counter, amount in consumption.counters
        )

    def _draw(self, device: PoolDevice, sign: int) -> None:
        left = self._left(device.pool)
        for consumption in device.facts.consumes:
            for counter, amount in consumption.counters:
                left[consumption.counter_set, counter] -= sign * amount

    def _left(self, pool: str) -> dict[tuple[str, str], int]:
        left = self._counters.get(pool)
        if left is None:
            left = self._counters[pool] = self._stock.usage.counters_left(pool)
        return left

    def most(self, devices: Sequence[PoolDevice], option: Option) -> int:
        """At most so many more can be taken of these, by the counters alone: what shows a hopeless request at once."""
        if option.admin:
            return len(devices)
        most = 0
        drawing: dict[tuple[str, str], list[PoolDevice]] = {}
        for device in devices:
            if device.facts.shared:
                return MOST_RESULTS
            if self._stock.usage.shares(device.id) or self._shares.get(device.id):
                continue
            if device.facts.consumes:
                drawing.setdefault((device.pool, device.facts.consumes[0].counter_set), []).append(device)
            else:
                most += 1
        for (pool, counter_set), together in drawing.items():
            left = self._left(pool)
            least: dict[str, list[int]] = {}
            for device in together:
                for counter, amount in device.facts.consumes[0].counters:
                    least.setdefault(counter, []).append(amount)
            bounds = [
                max(left.get((counter_set, counter), 0), 0) // min(amounts)
                for counter, amounts in least.items()
                if len(amounts) == len(together) and min(amounts) > 0
            ]
            most += min([len(together), *bounds])
        return most

    def state(self) -> Hashable:
        """All that the rest of a search depends on."""
        taken = frozenset((device, tuple(sorted(shares))) for device, shares in self._shares.items() if shares)
        values = tuple((key, frozenset(seen)) for key, seen in self._values.items() if seen)
        return taken, frozenset(values), tuple(self.counts)
