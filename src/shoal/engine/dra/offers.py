"""Determines which devices of a node can serve one alternative of a request, with a verdict on each.

Nothing in here changes while a search goes on; what the search itself has taken so far is its own affair.
"""

from __future__ import annotations

from shoal.api.device_names import full_name
from shoal.api.device_taints import is_kept_away
from shoal.engine.dra.devices import Amounts
from shoal.engine.dra.pools import PoolDevice
from shoal.engine.dra.requests import Option
from shoal.units.quantity import Quantity


def matching(devices: list[PoolDevice], wanted: frozenset[str]) -> list[PoolDevice]:
    """The devices in the set, in the node's order."""
    return [device for device in devices if device.id in wanted]


def share_of(device: PoolDevice, option: Option) -> Amounts | None:
    """What an option takes of a device's capacity, nothing of one that is not shared; None when it has too little."""
    driver = device.pool.partition("/")[0]
    asked = {full_name(name, driver): amount for name, amount in option.capacity}
    capacity = device.facts.capacity
    if not asked.keys() <= capacity.keys():
        return None
    if not device.facts.shared:
        enough = all(capacity[name].value.nano >= amount for name, amount in asked.items())
        return () if enough else None
    share = []
    for name, has in sorted(capacity.items()):
        portion = has.portion(Quantity(asked[name]) if name in asked else None)
        if portion is None:
            return None
        share.append((name, portion.nano))
    return tuple(share)


def is_tainted(device: PoolDevice, option: Option) -> bool:
    return bool(device.facts.taints) and is_kept_away(device.facts.taints, option.tolerations)


def has_capacity(device: PoolDevice, share: Amounts, others: list[Amounts]) -> bool:
    """Whether a device that others have can be given once more."""
    if not others:
        return True
    if not device.facts.shared:
        return False
    taken: dict[str, int] = {}
    for each in (*others, share):
        for name, amount in each:
            taken[name] = taken.get(name, 0) + amount
    return all(amount <= device.facts.capacity[name].value.nano for name, amount in taken.items())
