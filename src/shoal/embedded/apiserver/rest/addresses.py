"""Services are given their addresses and node ports here: what they may have depends on all other Services.

So one allocation waits for the other. The lock is taken after that of the Service itself and before those of quotas, in
creations and changes alike, so that no deadlock is possible.
"""

from __future__ import annotations

from shoal.embedded.apiserver.kinds.core.cluster_addresses import allocate, taken
from shoal.embedded.apiserver.resource import Home, Obj, Ref, Resource
from shoal.embedded.apiserver.rest.context import ServerContext

_SERVICES = Home("", "services")
ALLOCATION = Ref(_SERVICES, "", "")
"""A key of no object: its lock holder allocates."""

_DECIDES = (
    "type",
    "clusterIP",
    "clusterIPs",
    "ports",
    "healthCheckNodePort",
    "externalTrafficPolicy",
    "allocateLoadBalancerNodePorts",
)


def has_addresses(resource: Resource) -> bool:
    return resource.home == _SERVICES


def may_need_others(resource: Resource, new: Obj, old: Obj) -> bool:
    """Whether a change is one of what is allocated, or of what decides on that. Who changes anything else waits not."""
    before, after = old.get("spec") or {}, new.get("spec") or {}
    return has_addresses(resource) and any(before.get(name) != after.get(name) for name in _DECIDES)


def give_addresses(context: ServerContext, service: Obj, old: Obj | None = None) -> None:
    """In place. Raises ApiError for what the Service chose and cannot have."""
    mine = (service["metadata"]["namespace"], service["metadata"]["name"])
    others = (
        one
        for one in context.state.reader.all(*_SERVICES)
        if (one["metadata"]["namespace"], one["metadata"]["name"]) != mine
    )
    allocate(service, taken(others), old)
