"""The ClusterQueue of a team during a grant of more quota, and afterwards.

The first flavor that has a granted resource takes what the others do not have, so that the sum is what was granted. The
grant keeps the nominal quotas of before, because the amount of the ResourceQuota says nothing about single flavors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from shoal.policy.advice import Obj
from shoal.policy.fields import dig, maps, string_keys
from shoal.policy.tenants.grants import QuotaGrant
from shoal.policy.tenants.labels import labels
from shoal.units.numbers import whole_of

Amounts = dict[str, dict[str, str]]
"""Nominal quotas by flavor and resource."""


def is_of_team(obj: Obj, team: str) -> bool:
    """Whether `shoal tenant apply` made it for the team: the name alone is no proof."""
    found = string_keys(dig(obj, "metadata", "labels"))
    return all(found.get(name) == value for name, value in labels(team).items())


def nominal_quotas(queue: Obj, devices: Mapping[str, int], earlier: QuotaGrant | None = None) -> Amounts:
    """Those of the devices, as they are without the earlier grant."""
    found: Amounts = {} if earlier is None else {flavor: dict(each) for flavor, each in earlier.former_queue.items()}
    # What the earlier grant does not record it did not raise.
    known = {name for amounts in found.values() for name in amounts}
    for flavor, resource in _resources(queue):
        name = str(resource.get("name"))
        if name in devices and name not in known:
            found.setdefault(flavor, {})[name] = str(resource.get("nominalQuota"))
    return found


def granted_queue(queue: Obj, devices: Mapping[str, int]) -> Obj | None:
    """With the granted amounts; None if it has none of the resources."""
    wanted: Amounts = {}
    for name, granted in devices.items():
        own = {flavor: _whole(each) for flavor, each in _resources(queue) if each.get("name") == name}
        left = granted
        for at, flavor in reversed([*enumerate(own)]):
            amount = left if at == 0 else min(own[flavor], left)
            wanted.setdefault(flavor, {})[name] = str(amount)
            left -= amount
    return _with(queue, lambda flavor, name: wanted.get(flavor, {}).get(name)) if wanted else None


def former_queue(queue: Obj, grant: QuotaGrant) -> Obj | None:
    """With the quotas of before the grant; None if it has none of the resources."""

    def amount(flavor: str, name: str) -> str | None:
        return grant.former_queue.get(flavor, {}).get(name)

    has_any = any(amount(flavor, str(each.get("name"))) is not None for flavor, each in _resources(queue))
    return _with(queue, amount) if has_any else None


def _resources(queue: Obj) -> Iterator[tuple[str, Obj]]:
    for group in maps(dig(queue, "spec", "resourceGroups")):
        for flavor in maps(group.get("flavors")):
            for resource in maps(flavor.get("resources")):
                yield str(flavor.get("name")), resource


def _whole(resource: Obj) -> int:
    return whole_of(str(resource.get("nominalQuota"))) or 0


def _with(queue: Obj, amount: Callable[[str, str], str | None]) -> Obj:
    groups = []
    for group in maps(dig(queue, "spec", "resourceGroups")):
        flavors = []
        for flavor in maps(group.get("flavors")):
            resources = []
            for resource in maps(flavor.get("resources")):
                wanted = amount(str(flavor.get("name")), str(resource.get("name")))
                resources.append(resource if wanted is None else {**resource, "nominalQuota": wanted})
            flavors.append({**flavor, "resources": resources})
        groups.append({**group, "flavors": flavors})
    return {**queue, "spec": {**queue["spec"], "resourceGroups": groups}}
