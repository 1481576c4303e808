"""Searches devices of one node that serve all claims of a pod: exact, in Kubernetes' order of preference.

Requests are served in their order, alternatives in theirs, devices in the node's; whenever a later
request cannot be served, the choice before it is reconsidered. So the answer is the first of all complete ones, and
there is none only if no choice works. Two things keep that short: of devices that differ in nothing that this search
can see, one is tried for all, and a dead end is remembered by what was left when it was reached.

Constraints can be written for which this still takes for ever. After `MOST_STEPS` devices tried, the answer is no and
says so (`gave_up`). Rejected: a time limit, as a decision must not depend on how fast the machine is.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple

from shoal.engine.dra.offers import matching
from shoal.engine.dra.pools import PoolDevice
from shoal.engine.dra.requests import MOST_RESULTS, ClaimAsk, Option, Picks, Request
from shoal.engine.dra.trial import Stock, Trial

MOST_STEPS = 10_000


class Finding(NamedTuple):
    picks: tuple[Picks, ...] | None
    """Per claim, or None when they cannot all be served."""
    gave_up: bool = False


def find(claims: Sequence[ClaimAsk], stock: Stock) -> Finding:
    """Devices for all the claims."""
    search = _DeviceSearch(claims, stock)
    try:
        return Finding(search.trial.picks() if search.serve(0) else None)
    except _TooLongError:
        return Finding(None, True)


class _TooLongError(Exception):
    pass


class _DeviceSearch:
    def __init__(self, claims: Sequence[ClaimAsk], stock: Stock) -> None:
        self._stock = stock
        self._places = [(number, request) for number, claim in enumerate(claims) for request in claim.requests]
        self.trial = Trial(claims, stock)
        self._matching: dict[str, list[PoolDevice]] = {}
        self._attributes = sorted({rule.attribute for claim in claims for rule in claim.constraints})
        self._set_names = sorted(
            {option.matching for _, request in self._places for option in request.options},
        )
        self._kinds: dict[PoolDevice, Hashable] = {}
        self._dead_ends: set[Hashable] = set()
        self._steps = 0

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
        if self.trial.counts[number] + option.count > MOST_RESULTS:
            return False
        return self._choose(place, request, option, devices, 0, option.count)

    def _take_all(self, place: int, request: Request, option: Option, devices: list[PoolDevice]) -> bool:
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
        self, place: int, request: Request, option: Option, devices: list[PoolDevice], start: int, left: int
    ) -> bool:
        if left == 0:
            return self.serve(place + 1)
        if self.trial.most(devices[start:], option) < left:
            return False
        state = (place, option, start, left, self.trial.state())
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

    def _try(self, place: int, request: Request, option: Option, device: PoolDevice) -> Callable[[], None] | None:
        """Take a device, if it can be had; returns what undoes it."""
        self._steps += 1
        if self._steps > MOST_STEPS:
            raise _TooLongError
        number, _ = self._places[place]
        return self.trial.take(number, request, option, device)

    def _kind(self, device: PoolDevice) -> Hashable:
        """What this search can see of a device: those of one kind may replace each other while free."""
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
