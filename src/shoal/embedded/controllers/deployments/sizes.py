"""Computes how many pods each ReplicaSet of a Deployment should have, as pure functions of numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from shoal.client.item import Obj
from shoal.units.int_or_percent import amount_of


class Slack(msgspec.Struct, frozen=True):
    """The surge and the unavailability that a rollout may cause."""

    surge: int = 0
    unavailable: int = 0


class Size(msgspec.Struct, frozen=True):
    """One ReplicaSet: its wanted and available pods, and its creation time."""

    name: str
    replicas: int
    available: int = 0
    created: str = ""
    greatest: int = 0
    """The maximum total of the Deployment when this ReplicaSet was last scaled; 0 if unknown."""


def slack(spec: Obj) -> Slack:
    """Surge is rounded up, unavailability down; if both are 0, one pod may be unavailable, because the rollout could
    not progress otherwise. Unavailability is limited to the number of pods.
    """
    strategy, replicas = spec.get("strategy") or {}, spec.get("replicas", 1)
    if strategy.get("type") != "RollingUpdate":
        return Slack()
    rolling = strategy.get("rollingUpdate") or {}
    surge = amount_of(rolling.get("maxSurge"), replicas, up=True)
    unavailable = amount_of(rolling.get("maxUnavailable"), replicas, up=False)
    if not surge and not unavailable:
        unavailable = 1
    return Slack(surge, min(unavailable, replicas))


def new_size(wanted: int, strategy: str, surge: int, new: int, everything: int) -> int:
    """The size of the new ReplicaSet, which has `new` of `everything` now."""
    if strategy != "RollingUpdate":
        return wanted
    room = wanted + surge - everything
    return new if room <= 0 else new + min(room, wanted - new)


def old_sizes(wanted: int, unavailable: int, new: Size, old: Sequence[Size]) -> dict[str, int]:
    """The sizes of old ReplicaSets that may shrink now, oldest first: unavailable pods are removed before available
    ones, and the minimum stays available.
    """
    sizes = {one.name: one.replicas for one in old}
    least = wanted - unavailable
    spare = sum(sizes.values()) + new.replicas - least - (new.replicas - new.available)
    if spare <= 0:
        return {}
    in_order = sorted(old, key=lambda one: (one.created, one.name))
    for one in in_order:
        if one.available < sizes[one.name]:
            down = min(spare, sizes[one.name] - one.available)
            sizes[one.name] -= down
            spare -= down
    above = sum(one.available for one in old) + new.available - least
    for one in in_order:
        down = max(min(above, sizes[one.name]), 0)
        sizes[one.name] -= down
        above -= down
    return {one.name: sizes[one.name] for one in in_order if sizes[one.name] != one.replicas}


def shared_out(wanted: int, surge: int, sets: Sequence[Size], status_replicas: int) -> dict[str, int]:
    """The sizes of all ReplicaSets of a Deployment that is scaled during a rollout: each keeps its share, and the
    largest gets the rounding remainder.
    """
    allowed = wanted + surge if wanted > 0 else 0
    missing = allowed - sum(one.replicas for one in sets)
    by_age = sorted(sets, key=lambda one: (one.created, one.name), reverse=missing > 0)
    in_order = sorted(by_age, key=lambda one: -one.replicas)
    sizes, given = {}, 0
    for one in in_order:
        part = _part(one, wanted, surge, status_replicas) if missing != given and one.replicas else 0
        part = min(part, missing - given) if missing > 0 else max(part, missing - given)
        part = part if missing else 0
        sizes[one.name] = one.replicas + part
        given += part
    if in_order and missing:
        first = in_order[0].name
        sizes[first] = max(sizes[first] + missing - given, 0)
    return sizes


def _part(one: Size, wanted: int, surge: int, status_replicas: int) -> int:
    if wanted == 0:
        return -one.replicas
    before = one.greatest or status_replicas
    if before == 0:
        return 0
    return math.floor(one.replicas * (wanted + surge) / before + 0.5) - one.replicas
