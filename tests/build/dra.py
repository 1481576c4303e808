"""Devices, pools and claims in one line each: `pool(device("gpu-0", model="A"), device("gpu-1"))`.

The driver is always the same one, and so is the domain of attributes, capacities and sets of counters.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import combinations, combinations_with_replacement, product

from msgspec import structs

from build.pods import AskBuilder
from shoal.api.device_capacity import Capacity
from shoal.api.device_taints import DeviceTaint, DeviceToleration
from shoal.api.slices import Reach
from shoal.engine.asks import Ask
from shoal.engine.dra.devices import Consumption, DeviceFacts, SliceFacts
from shoal.engine.dra.pools import PoolDevice, Pools
from shoal.engine.dra.requests import ClaimAsk, ClaimFacts, ClaimRef, Constraint, Option, Pick, Picks, Request
from shoal.engine.dra.trial import Stock
from shoal.engine.dra.usage import Usage
from shoal.engine.events import ClaimSeen, DeviceSetSeen, DevicesSeen
from shoal.engine.labels import Labels
from shoal.units.quantity import Quantity

DRIVER = "gpu.test"
TOLERATES = (DeviceToleration(operator="Exists"),)


def full(name: str, pool_name: str = "n1") -> str:
    """The full name of a device."""
    return f"{DRIVER}/{pool_name}/{name}"


def device(
    name: str,
    *,
    at: str = "",
    draws: Mapping[str, int] | None = None,
    memory: int = 0,
    shared: bool = False,
    tainted: bool = False,
    **attributes: str | int | bool,
) -> DeviceFacts:
    """`draws` are counters of the one set; without `at` the pool says which node can use it."""
    kinds = {bool: "bool", int: "int", str: "string"}
    return DeviceFacts(
        name,
        Reach(node_name=at),
        {f"{DRIVER}/{key}": (kinds[type(value)], value) for key, value in attributes.items()},
        {f"{DRIVER}/memory": Capacity(Quantity.of(memory))} if memory else {},
        (Consumption("set", tuple(sorted(draws.items()))),) if draws else (),
        (DeviceTaint("bad", "NoSchedule"),) if tainted else (),
        shared,
    )


def pool(
    *devices: DeviceFacts,
    at: str = "n1",
    counters: Mapping[str, int] | None = None,
    generation: int = 0,
    pieces: int = 1,
    part: str = "0",
    reach: Reach | None = None,
) -> SliceFacts:
    """A slice of the pool that is named as its node."""
    there = Reach(node_name=at) if reach is None else reach
    placed = tuple(structs.replace(each, reach=there) if not each.reach.node_name else each for each in devices)
    sets = {"set": counters} if counters else {}
    return SliceFacts(f"{at}-{part}", DRIVER, at, placed, sets, generation, pieces, there)


def wants(
    count: int | None = 1,
    of: str = "gpus",
    *,
    name: str = "gpu",
    alternative: str = "",
    admin: bool = False,
    tolerant: bool = False,
    memory: int = 0,
) -> Request:
    return Request(name, (option(count, of, alternative, admin=admin, tolerant=tolerant, memory=memory),))


def option(
    count: int | None = 1,
    of: str = "gpus",
    name: str = "",
    *,
    admin: bool = False,
    tolerant: bool = False,
    memory: int = 0,
) -> Option:
    capacity = (("memory", Quantity.of(memory).nano),) if memory else ()
    return Option(of, count, name, admin, TOLERATES if tolerant else (), capacity)


def first_of(*options: Option, name: str = "gpu") -> Request:
    return Request(name, options)


def claim(*requests: Request, match: str = "", distinct: str = "", over: Iterable[str] = ()) -> ClaimAsk:
    rules = [Constraint(f"{DRIVER}/{name}", flag, frozenset(over)) for name, flag in ((match, False), (distinct, True))]
    return ClaimAsk(requests, tuple(rule for rule in rules if rule.attribute != f"{DRIVER}/"))


def own(*requests: Request, name: str = "mine") -> ClaimRef:
    return ClaimRef(name, own=claim(*requests))


def shared(key: str) -> ClaimRef:
    return ClaimRef("ours", key)


def asking(*refs: ClaimRef, wanted: AskBuilder | None = None) -> Ask:
    return structs.replace((wanted or AskBuilder()).made(), claims=refs)


def seen(*pieces: SliceFacts, **sets: Iterable[str]) -> list[DevicesSeen | DeviceSetSeen]:
    """The slices, and sets of devices by their full names; by default `gpus` is all of them."""
    everything = [f"{piece.pool_key}/{each.name}" for piece in pieces for each in piece.devices]
    named = {"gpus": everything, **sets}
    return [*map(DevicesSeen, pieces), *(DeviceSetSeen(name, frozenset(each)) for name, each in named.items())]


def there_is(
    key: str,
    asks: ClaimAsk,
    *devices: str,
    reserved: Iterable[str] = (),
    request: str = "gpu",
) -> ClaimSeen:
    """A claim, allocated if devices are named."""
    picks = tuple(Pick(request, name) for name in devices) or None
    return ClaimSeen(ClaimFacts(key, asks, picks, reserved=frozenset(reserved)))


def stock(*pieces: SliceFacts, sets: Mapping[str, Iterable[str]], taken: Picks = (), node: str = "n1") -> Stock:
    """What one node has."""
    pools = Pools([node], Labels())
    for piece in pieces:
        pools.put(piece)
    usage = Usage(pools)
    usage.take(taken)
    return Stock(pools.on(0), usage, {name: frozenset(each) for name, each in sets.items()}, not pools.is_unfinished(0))


# -- the plain way -----------------------------------------------------------------------------------------------


def plainly(claims: list[ClaimAsk], there: Stock) -> tuple[Picks, ...] | None:
    """The same question answered by trying everything and checking the whole afterwards."""
    places = [(number, request) for number, each in enumerate(claims) for request in each.requests]
    for options in product(*(request.options for _, request in places)):
        choices = [list(_choices(one, there)) for one in options]
        for chosen in product(*choices):
            picks = tuple(
                tuple(
                    Pick(request.label(one), device_, (), one.admin)
                    for (owner, request), one, devices in zip(places, options, chosen, strict=True)
                    if owner == number
                    for device_ in devices
                )
                for number in range(len(claims))
            )
            if is_sound(claims, picks, there):
                return picks
    return None


def _choices(one: Option, there: Stock) -> Iterable[tuple[str, ...]]:
    matching = [each.id for each in there.devices if each.id in there.sets.get(one.matching, frozenset())]
    if one.count is None:
        return [tuple(matching)] if matching and there.is_complete else []
    several = any(each.facts.shared for each in there.devices) and not one.admin
    return (combinations_with_replacement if several else combinations)(matching, one.count)


def is_sound(claims: list[ClaimAsk], picks: tuple[Picks, ...], there: Stock) -> bool:
    """Whether the whole keeps every rule; shares are reckoned anew."""
    known = {each.id: each for each in there.devices}
    held: dict[str, list[int]] = {}
    for each, given in zip(claims, picks, strict=True):
        if len(given) > 32 or not all(_agrees(rule, given, known) for rule in each.constraints):
            return False
        for request in each.requests:
            used = [one for one in request.options if any(pick.request == request.label(one) for pick in given)]
            if len(used) != 1 or not _is_served(request, used[0], given, known, held):
                return False
    return all(_has_room(known[name], parts, there) for name, parts in held.items()) and _draws_little(
        [known[name] for name in held if not there.usage.shares(name)], there
    )


def _agrees(rule: Constraint, given: Picks, known: Mapping[str, PoolDevice]) -> bool:
    values = [known[pick.device].facts.attributes.get(rule.attribute) for pick in given if _covers(rule, pick)]
    if not values:
        return True
    return None not in values and len(set(values)) == (len(values) if rule.distinct else 1)


def _is_served(
    request: Request, one: Option, given: Picks, known: Mapping[str, PoolDevice], held: dict[str, list[int]]
) -> bool:
    """Each device will do by itself; what it gives is noted."""
    asked = one.capacity[0][1] if one.capacity else None
    for pick in given:
        if pick.request != request.label(one):
            continue
        facts = known[pick.device].facts
        total = _total(known[pick.device])
        if facts.taints and not one.tolerations:
            return False
        if asked is not None and (not facts.capacity or asked > total):
            return False
        if not one.admin:
            held.setdefault(pick.device, []).append(total if asked is None or not facts.shared else asked)
    return True


def _total(one: PoolDevice) -> int:
    has = one.facts.capacity.get(f"{DRIVER}/memory")
    return 0 if has is None else has.value.nano


def _has_room(one: PoolDevice, parts: list[int], there: Stock) -> bool:
    before = [sum(amount for _, amount in share) for share in there.usage.shares(one.id)]
    everybody = parts + before
    return len(everybody) == 1 or (one.facts.shared and sum(everybody) <= _total(one))


def _draws_little(fresh: list[PoolDevice], there: Stock) -> bool:
    drawn: dict[tuple[str, str], int] = {}
    for one in fresh:
        for consumption in one.facts.consumes:
            for counter, amount in consumption.counters:
                drawn[one.pool, counter] = drawn.get((one.pool, counter), 0) + amount
    return all(
        amount <= there.usage.counters_left(pool_).get(("set", counter), 0)
        for (pool_, counter), amount in drawn.items()
    )


def _covers(rule: Constraint, pick: Pick) -> bool:
    return not rule.requests or pick.request in rule.requests or pick.request.partition("/")[0] in rule.requests
