"""The billing price of every machine over time, and what is asked of the user where no price is known.

The most special source holds: an entry of the price file for the node, then for the pool, then one's own machines by
pool or model, then the spot history of a spot machine, then an entry for the instance type, then the catalogue. A price
of a part of the time is completed by the next source. A price without a date is that of today: for time in which
another one was recorded, that one holds, so that an edit changes no closed month. What the catalogue said gives way to
a price file. Nothing is estimated: a machine without a price is left out of all sums, which are marked as partial, and
it is named; only where no machine has a price there is nothing to compute.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import NamedTuple

import msgspec

from shoal.cost.price_curves import PriceCurve
from shoal.cost.prices.on_premises import per_gpu_hour
from shoal.cost.prices.price_file import OnPremises, PriceFile
from shoal.cost.records import Machine
from shoal.data.gpus import find_model
from shoal.data.instances import catalog, find_instance
from shoal.units.errors import UserError, Where

ALWAYS = 0
_MOST_NAMED = 8
Rates = list[tuple[int, Decimal]]
MachineKey = tuple[str, int]
"""The name of a machine and when it started: names are used again."""


class PresentRates(NamedTuple):
    """What the price file and the catalogue say now of a machine."""

    rates: Rates
    """The first one is of `ALWAYS` where a price has no date."""
    is_listed: bool
    """The price without a date is that of the catalogue."""
    reason: str = ""
    """Why there is none."""
    is_measured: bool = False
    """Without measured power there is none."""

    @property
    def undated(self) -> Decimal | None:
        return self.rates[0][1] if self.rates and self.rates[0][0] == ALWAYS else None


class UnknownPrice(msgspec.Struct, frozen=True, order=True):
    """Machines whose price the user has to write."""

    instance_type: str
    is_spot: bool
    machine: str
    """An example."""
    reason: str = "has no price"
    machines: tuple[str, ...] = ()
    """All of them."""

    def asked(self) -> str:
        """The lines of the price file that are missing."""
        if not self.instance_type:
            return f"machines: [{{node: {self.machine}, perHour: AMOUNT}}]"
        section = "spot" if self.is_spot else "machines"
        return f"{section}: [{{instanceType: {self.instance_type}, perHour: AMOUNT}}]"


class MachinePrices(msgspec.Struct, frozen=True):
    by_machine: dict[MachineKey, Rates]
    """Moments, and the price per hour from then on."""
    unknown: list[UnknownPrice]
    notes: list[str]

    def curves(self) -> dict[str, PriceCurve]:
        """By the name of a machine."""
        return curves_of_names(self.by_machine)

    def check(self, where: Where) -> None:
        """Raises UserError that asks for the prices that are missing, where no machine has one."""
        if not self.unknown or self.by_machine:
            return
        names = ", ".join(
            f"{'spot ' if one.is_spot else ''}{one.instance_type or one.machine} ({one.reason})" for one in self.unknown
        )
        fix = "write in the price file " + " and ".join(one.asked() for one in self.unknown)
        raise UserError(f"no price is known of {names}", where=where, fix=fix)


def machine_prices(
    machines: Iterable[Machine],
    file: PriceFile,
    today: date,
    measured_watts: Mapping[MachineKey, Decimal] | None = None,
) -> MachinePrices:
    """`measured_watts`: the mean power of a machine, for own machines without watts in the file."""
    found: dict[MachineKey, Rates] = {}
    unknown: dict[tuple[str, bool], UnknownPrice] = {}
    names: dict[tuple[str, bool], list[str]] = {}
    stale: set[str] = set()
    for machine in machines:
        present = present_rates(machine, file, measured_watts or {})
        rates, reason = _with_recorded(present, machine, file.currency), present.reason
        if rates and _holds_since(rates) <= machine.start_ms:
            found[machine_key(machine)] = rates
            stale.update(_stale(machine, rates, today))
            stale.update(_edited(machine, rates, present))
        else:
            is_spot = machine.capacity == "spot"
            if rates:
                reason = f"has no price before {_day(_holds_since(rates))}"
            key = (machine.instance_type or machine.name, is_spot)
            unknown.setdefault(key, UnknownPrice(machine.instance_type, is_spot, machine.name, reason))
            names.setdefault(key, []).append(machine.name)
    missing = [msgspec.structs.replace(one, machines=tuple(sorted(set(names[key])))) for key, one in unknown.items()]
    # Also an earlier or later node of that name.
    left_out = {name for one in missing for name in one.machines}
    priced = {key: rates for key, rates in found.items() if key[0] not in left_out}
    return MachinePrices(priced, sorted(missing), sorted(stale))


def machine_key(machine: Machine) -> MachineKey:
    return machine.name, machine.start_ms


def curves_of_names(by_machine: Mapping[MachineKey, Rates]) -> dict[str, PriceCurve]:
    found: dict[str, PriceCurve] = {}
    made: dict[int, PriceCurve] = {}
    for name, rates in _rates_of_names(by_machine).items():
        # Machines that a commitment covers share the rates of their type, for each hour of the window.
        curve = made.get(id(rates))
        found[name] = made[id(rates)] = PriceCurve(rates) if curve is None else curve
    return found


def _rates_of_names(by_machine: Mapping[MachineKey, Rates]) -> dict[str, Rates]:
    """The prices of machines of one name, one after the other: each from the start of its machine on."""
    found: dict[str, Rates] = {}
    for (name, start_ms), rates in sorted(by_machine.items(), key=lambda one: one[0]):
        if name not in found:
            found[name] = rates
            continue
        at_start = max((one for one in rates if one[0] <= start_ms), default=rates[0])
        later = [one for one in rates if one[0] > start_ms]
        found[name] = [*(one for one in found[name] if one[0] < start_ms), (start_ms, at_start[1]), *later]
    return found


def missing_note(missing: Sequence[UnknownPrice], *, names_nodes: bool = True) -> str:
    """One line about the machines that are left out; empty if none is. `names_nodes`: the reader may see nodes."""
    if not missing:
        return ""
    parts = []
    for one in missing:
        kind = f"{'spot ' if one.is_spot else ''}{one.instance_type}".strip()
        many = f"{len(one.machines)} node{'s' * (len(one.machines) != 1)}"
        nodes = _listed(one.machines) if names_nodes else many
        parts.append(f"{nodes} ({kind + ', ' if kind else ''}{one.reason})")
    asked = " and ".join(one.asked() for one in missing) if names_nodes else "the prices of these instance types"
    return f"price missing: {'; '.join(parts)}: the sums are partial, without these; write in the price file {asked}"


def list_price(instance_type: str) -> Decimal | None:
    """Of the catalogue, per hour; None where it has none."""
    instance = find_instance(instance_type)
    return None if instance is None else instance.usd


def decision_rate(machine: Machine, list_rate: Decimal, *, is_committed: bool) -> Decimal:
    """What choosing this machine adds to the bill: nothing where a reservation that is paid for covers it."""
    return Decimal(0) if is_committed or machine.capacity == "reserved" else list_rate


def present_rates(machine: Machine, file: PriceFile, watts: Mapping[MachineKey, Decimal]) -> PresentRates:
    own = next((one for one in file.on_premises if _is_of(one, machine)), None)
    sources: list[Rates] = [
        [(_since(one.from_ms), one.per_hour) for one in file.machines if one.node and one.node == machine.name],
        [(_since(one.from_ms), one.per_hour) for one in file.machines if one.pool and one.pool == machine.pool],
    ]
    reason, is_measured = "has no price", False
    if own is not None:
        hourly = per_gpu_hour(own, _measured(machine, watts))
        if hourly is None:
            reason, is_measured = "has neither watts in the price file nor measured power", True
        else:
            sources.append([(ALWAYS, hourly * max(1, len(machine.devices)))])
    elif machine.capacity == "spot":
        sources.append(_spot(machine, file))
    else:
        of_type = [one for one in file.machines if one.instance_type and one.instance_type == machine.instance_type]
        sources.append([(_since(one.from_ms), one.per_hour) for one in of_type])
        listed = list_price(machine.instance_type)
        if listed is not None and file.currency == catalog().currency:
            of_file = _completed(sources)
            return PresentRates(_completed([of_file, [(ALWAYS, listed)]]), not of_file or of_file[0][0] > ALWAYS)
    return PresentRates(_completed(sources), is_listed=False, reason=reason, is_measured=is_measured)


def _with_recorded(present: PresentRates, machine: Machine, currency: str) -> Rates:
    """Prices with dates hold as the file says; recorded ones before them, in place of one without a date."""
    rates = present.rates
    if not machine.prices:
        return rates
    undated = present.undated
    first, dated = (rates[:1], rates[1:]) if undated is not None else ([], rates)
    stated = undated if not present.is_listed else None
    recorded = [one for one in machine.prices if not dated or one.from_ms < dated[0][0]]
    found = list(first)
    for at, one in enumerate(recorded):
        rate = one.per_hour if one.currency == currency else undated
        if one.is_listed and stated is not None:
            # The first price of a file after it replaced it: later edits change that time no more.
            of_files = (each.per_hour for each in recorded[at:] if each.currency == currency and not each.is_listed)
            rate = next(of_files, stated)
        if rate is not None and (not found or found[-1][1] != rate):
            found.append((one.from_ms, rate))
    if len(found) > 1 and found[1][0] <= machine.start_ms:
        del found[0]
    return [*found, *dated]


def _edited(machine: Machine, rates: Rates, present: PresentRates) -> Iterable[str]:
    """A price of the file that does not count yet."""
    undated = present.undated
    is_past = machine.end_ms is not None or len(present.rates) > 1
    if undated is None or present.is_listed or is_past or rates[-1][1] == undated:
        return
    # No name of a node: who may not list nodes reads this, too, and there may be many.
    name = machine.pool or machine.instance_type or machine.model or "nodes without a pool and an instance type"
    yield (
        f"the price of {name} is recorded as {rates[-1][1].normalize():f} an hour, the price file says "
        f"{undated.normalize():f} without a date: it counts from the start of the next recorder; write from: with the "
        "day since when it holds"
    )


def _spot(machine: Machine, file: PriceFile) -> Rates:
    of_type = [one for one in file.spot if one.instance_type == machine.instance_type]
    here = [one for one in of_type if one.region and one.region == machine.region]
    chosen = here or [one for one in of_type if not one.region]
    return [(_since(one.from_ms), one.per_hour) for one in chosen]


def _completed(sources: Sequence[Rates]) -> Rates:
    """The first source with rates; later ones hold before its first moment."""
    found: Rates = []
    for source in sources:
        ordered = sorted(source)
        if not found:
            found = ordered
        elif ordered:
            found = [one for one in ordered if one[0] < found[0][0]] + found
    return found


def _stale(machine: Machine, rates: Rates, today: date) -> Iterable[str]:
    instance = find_instance(machine.instance_type)
    if instance is None or machine.capacity == "spot" or rates[0] != (ALWAYS, instance.usd):
        return
    listed = catalog().price_date(instance)
    if catalog().is_stale(instance, today) and listed is not None:
        yield f"the list price of {instance.type} is of {listed}: check it, or write it in a price file"
    if machine.region and instance.region and machine.region != instance.region:
        yield f"the list price of {instance.type} is that of {instance.region}, nodes are in {machine.region}"


def _is_of(own: OnPremises, machine: Machine) -> bool:
    if own.pool:
        return own.pool == machine.pool
    asked, known = find_model(own.model), find_model(machine.model)
    return own.model == machine.model or (asked is not None and asked == known)


def _measured(machine: Machine, watts: Mapping[MachineKey, Decimal]) -> Decimal | None:
    found = watts.get(machine_key(machine))
    return None if found is None else found / max(1, len(machine.devices))


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_MOST_NAMED])
    return f"node{'s' * (len(names) != 1)} {shown}" + (
        f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    )


def _holds_since(rates: Rates) -> int:
    return rates[0][0]


def _since(at_ms: int | None) -> int:
    return ALWAYS if at_ms is None else at_ms


def _day(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).date().isoformat()
