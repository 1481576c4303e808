"""Which devices of one node serve all claims of a pod at once: exact, in Kubernetes' order of preference.

Requests are served in the order in which they stand, alternatives in theirs, devices in the node's; whenever a later
request cannot be served, the choice before it is reconsidered. So the answer is the first of all complete ones, and
there is none only if no choice works. Two things keep that short: of devices that differ in nothing that this search
can see, one is tried for all, and a dead end is remembered by what was left when it was reached.

Constraints can be written for which this still takes for ever. After `MOST_STEPS` devices tried, the answer is no and
says so (`gave_up`). Rejected: a time limit, as a decision must not depend on how fast the machine is.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import NamedTuple

from shoal.engine.dra.devices import Amounts, Attribute
from shoal.engine.dra.offers import has_room, is_tainted, matching, share_of
from shoal.engine.dra.pools import Device
from shoal.engine.dra.requests import MOST_RESULTS, ClaimAsk, Constraint, Option, Pick, Picks, Request
from shoal.engine.dra.usage import Usage

MOST_STEPS = 10_000


class Stock(NamedTuple):
    """What a node can use, and what is still free of it."""

    devices: list[Device]
    usage: Usage
    sets: Mapping[str, frozenset[str]]
    is_complete: bool
    """False while some pool is only half published: what "all devices" are is not known then."""


class Finding(NamedTuple):
    picks: tuple[Picks, ...] | None
    """Per claim, or None when they cannot all be served."""
    gave_up: bool = False


def find(claims: Sequence[ClaimAsk], stock: Stock) -> Finding:
    """Devices for all the claims."""
    search = _Search(claims, stock)
    try:
        return Finding(search.picks() if search.serve(0) else None)
    except _TooLongError:
        return Finding(None, True)


class _TooLongError(Exception):
    pass


class _Search:
    def __init__(self, claims: Sequence[ClaimAsk], stock: Stock) -> None:
        self._stock = stock
        self._claims = claims
        self._places = [(number, request) for number, claim in enumerate(claims) for request in claim.requests]
        self._picked: list[tuple[int, Pick]] = []
        self._counts = [0] * len(claims)
        self._shares: dict[str, list[Amounts]] = {}
        """Taken in this search."""
        self._counters: dict[str, dict[tuple[str, str], int]] = {}
        self._values: dict[tuple[int, Constraint], list[Attribute]] = {}
        """What the devices picked so far have of each constrained attribute."""
        self._matching: dict[str, list[Device]] = {}
        self._attributes = sorted({rule.attribute for claim in claims for rule in claim.constraints})
        self._set_names = sorted(
            {option.matching for _, request in self._places for option in request.options},
        )
        self._kinds: dict[Device, Hashable] = {}
        self._dead_ends: set[Hashable] = set()
        self._steps = 0

    def picks(self) -> tuple[Picks, ...]:
        return tuple(
            tuple(pick for number, pick in self._picked if number == claim) for claim in range(len(self._claims))
        )

    def serve(self, place: int) -> bool:
        """Serve this request and all after it."""
        if place == len(self._places):
            return True
        _, request = self._places[place]
        return any(self._serve_with(place, request, option) for option in request.options)

    def _serve_with(self, place: int, request: Request, option: Option) -> bool:
        devices = self._matching.get(option.matching)
        if devices is None:
            wanted = self._stock.sets.get(option.matching, frozenset())
            devices = self._matching[option.matching] = matching(self._stock.devices, wanted)
        if option.count is None:
            return bool(devices) and self._stock.is_complete and self._take_all(place, request, option, devices)
        number, _ = self._places[place]
        if self._counts[number] + option.count > MOST_RESULTS:
            return False
        return self._choose(place, request, option, devices, 0, option.count)

    def _take_all(self, place: int, request: Request, option: Option, devices: list[Device]) -> bool:
        undo: list[Callable[[], None]] = []
        for device in devices:
            taken = self._try(place, request, option, device)
            if taken is None:
                break
            undo.append(taken)
        else:
            if self.serve(place + 1):
                return True
        for taken in reversed(undo):
            taken()
        return False

    def _choose(
        self, place: int, request: Request, option: Option, devices: list[Device], start: int, left: int
    ) -> bool:
        if left == 0:
            return self.serve(place + 1)
        if self._most(devices, start, option) < left:
            return False
        state = (place, option, start, left, self._state())
        if state in self._dead_ends:
            return False
        tried: set[Hashable] = set()
        for index in range(start, len(devices)):
            device = devices[index]
            kind = self._kind(device)
            if kind in tried:
                continue
            taken = self._try(place, request, option, device)
            if taken is None:
                continue
            tried.add(kind)
            # A shared device may serve one request twice; of others each combination is tried in one order only.
            following = index if device.facts.shared and not option.admin else index + 1
            if self._choose(place, request, option, devices, following, left - 1):
                return True
            taken()
        self._dead_ends.add(state)
        return False

    def _most(self, devices: list[Device], start: int, option: Option) -> int:
        """At most so many more can be taken of these, by the counters alone: what shows a hopeless request at once."""
        if option.admin:
            return len(devices) - start
        most = 0
        drawing: dict[tuple[str, str], list[Device]] = {}
        for device in devices[start:]:
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

    def _try(self, place: int, request: Request, option: Option, device: Device) -> Callable[[], None] | None:
        """Take a device, if it can be had; returns what undoes it."""
        self._steps += 1
        if self._steps > MOST_STEPS:
            raise _TooLongError
        number, _ = self._places[place]
        share = share_of(device, option)
        if share is None or self._counts[number] == MOST_RESULTS or is_tainted(device, option):
            return None
        values = self._agreeing(number, request, option, device)
        if values is None:
            return None
        draws = False
        if not option.admin:
            others = self._stock.usage.shares(device.id) + self._shares.get(device.id, [])
            if not has_room(device, share, others):
                return None
            draws = not others and bool(device.facts.consumes)
            if draws and not self._has_counters(device):
                return None
        self._take(number, Pick(request.label(option), device.id, share, option.admin), device, values, draws)
        return lambda: self._undo(number, device, values, draws)

    def _take(
        self,
        number: int,
        pick: Pick,
        device: Device,
        values: list[tuple[list[Attribute], Attribute]],
        draws: bool,
    ) -> None:
        self._picked.append((number, pick))
        self._counts[number] += 1
        for seen, value in values:
            seen.append(value)
        if not pick.admin:
            self._shares.setdefault(device.id, []).append(pick.share)
        if draws:
            self._draw(device, 1)

    def _undo(self, number: int, device: Device, values: list[tuple[list[Attribute], Attribute]], draws: bool) -> None:
        _, pick = self._picked.pop()
        self._counts[number] -= 1
        for seen, _ in values:
            seen.pop()
        if not pick.admin:
            self._shares[device.id].pop()
        if draws:
            self._draw(device, -1)

    def _agreeing(
        self, number: int, request: Request, option: Option, device: Device
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

    def _has_counters(self, device: Device) -> bool:
        left = self._left(device.pool)
        return all(
            left.get((consumption.counter_set, counter), 0) >= amount
            for consumption in device.facts.consumes
            for counter, amount in consumption.counters
        )

    def _draw(self, device: Device, sign: int) -> None:
        left = self._left(device.pool)
        for consumption in device.facts.consumes:
            for counter, amount in consumption.counters:
                left[consumption.counter_set, counter] -= sign * amount

    def _left(self, pool: str) -> dict[tuple[str, str], int]:
        left = self._counters.get(pool)
        if left is None:
            left = self._counters[pool] = self._stock.usage.counters_left(pool)
        return left

    def _kind(self, device: Device) -> Hashable:
        """What this search can see of a device: those of one kind may stand in for each other while free."""
        known = self._kinds.get(device)
        if known is None:
            facts = device.facts
            if facts.shared or self._stock.usage.shares(device.id):
                known = device.id
            else:
                sets = tuple(device.id in self._stock.sets.get(name, ()) for name in self._set_names)
                attributes = tuple(facts.attributes.get(name) for name in self._attributes)
                capacity = tuple((name, has.value.nano) for name, has in sorted(facts.capacity.items()))
                driver = device.pool.partition("/")[0]
                pool = device.pool if facts.consumes else ""
                known = (sets, attributes, capacity, facts.taints, facts.consumes, pool, driver)
            self._kinds[device] = known
        return known

    def _state(self) -> Hashable:
        """All that the rest of the search depends on."""
        taken = frozenset((device, tuple(sorted(shares))) for device, shares in self._shares.items() if shares)
        values = tuple((key, frozenset(seen)) for key, seen in self._values.items() if seen)
        return taken, frozenset(values), tuple(self._counts)
