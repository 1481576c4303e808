"""The prices that a recorder stores with machines: what each cost per hour when it was recorded.

A price is made once for all machines that are alike, and again only when a price with a date begins; reading a node
again costs a look-up. A price that depends on measured power is not recorded; where another one was before, a price
without a currency ends it.
"""

from __future__ import annotations

from bisect import bisect_right
from decimal import Decimal

import msgspec

from shoal.cost.prices.machine_prices import ALWAYS, PresentRates, present_rates
from shoal.cost.prices.price_file import PriceFile
from shoal.cost.records import Machine, RecordedPrice
from shoal.units.calendar_windows import HOUR_MS

_LABELLED_MS = HOUR_MS
"""So long after its start a node gets labels that say what it is."""


class PriceRecorder:
    """`file`: the price file of the process that records."""

    def __init__(self, file: PriceFile) -> None:
        self._file = file
        self._nodes = {one.node for one in file.machines if one.node}
        self._made: dict[tuple[object, ...], PresentRates] = {}
        moments = (*(one.from_ms for one in file.machines), *(one.from_ms for one in file.spot))
        self._moments = sorted(at for at in moments if at is not None)
        self._begun = -1

    def has_begun(self, now_ms: int) -> bool:
        """Whether prices with dates have begun since the last call."""
        begun = bisect_right(self._moments, now_ms)
        is_new = begun != self._begun
        self._begun = begun
        return is_new

    def priced(self, machine: Machine, before: Machine | None, now_ms: int) -> Machine:
        """With the prices of `before`, its row so far, and with another one from now on if it costs that. What its
        labels and devices say first counts from its start: they come while it boots."""
        known = () if before is None or _is_named(before, machine, now_ms) else before.prices
        added = self._added(machine, known, now_ms)
        if known and added and known[-1].from_ms >= added[0].from_ms:
            known = known[:-1]
        found = (*known, *added)
        return machine if found == machine.prices else msgspec.structs.replace(machine, prices=found)

    def _added(self, machine: Machine, known: tuple[RecordedPrice, ...], now_ms: int) -> list[RecordedPrice]:
        present = self._present(machine)
        begun = [(at, rate) for at, rate in present.rates if at <= now_ms]
        if not begun:
            is_over = present.is_measured and known and known[-1].currency
            return [RecordedPrice(max(now_ms, known[-1].from_ms), Decimal(0), "")] if is_over else []
        if not known:
            at_start = max((one for one in begun if one[0] <= machine.start_ms), default=None)
            later = [one for one in begun if one[0] > machine.start_ms]
            first = [] if at_start is None else [self._price(present, at_start, machine.start_ms)]
            return [*first, *(self._price(present, one, one[0]) for one in later)]
        last = known[-1]
        later = [one for one in begun if one[0] > last.from_ms]
        if later:
            return [self._price(present, one, one[0]) for one in later]
        # A clock that was ahead may step back.
        found = self._price(present, begun[-1], max(now_ms, last.from_ms))
        is_same = (found.per_hour, found.currency, found.is_listed) == (last.per_hour, last.currency, last.is_listed)
        return [] if is_same else [found]

    def _price(self, present: PresentRates, piece: tuple[int, Decimal], from_ms: int) -> RecordedPrice:
        is_listed = present.is_listed and piece[0] == ALWAYS
        return RecordedPrice(from_ms, piece[1], self._file.currency, is_listed)

    def _present(self, machine: Machine) -> PresentRates:
        key = (
            machine.name if machine.name in self._nodes else "",
            machine.instance_type,
            machine.pool,
            machine.region,
            machine.capacity,
            machine.model,
            len(machine.devices),
        )
        found = self._made.get(key)
        if found is None:
            found = self._made[key] = present_rates(machine, self._file, {})
        return found


def _is_named(before: Machine, after: Machine, now_ms: int) -> bool:
    """Whether something by which prices are found was not known yet. A label that is added later changes no price of
    the time before."""
    labels = (
        (before.instance_type, after.instance_type),
        (before.pool, after.pool),
        (before.region, after.region),
    )
    found = ((before.model, after.model), (before.devices, after.devices))
    is_new = now_ms - after.start_ms <= _LABELLED_MS
    return any(not was and bool(now) for was, now in (*found, *(labels if is_new else ())))
