"""Represents the ProvisioningRequests of a planning: what is kept, checked and provisioned for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from shoal.api.pod import Pod
from shoal.autoscale.nodes.planning_input import PlanningInput, pod_key
from shoal.autoscale.provisioning_requests.pods import unconsumed
from shoal.autoscale.provisioning_requests.request import ATOMIC_SCALE_UP, PROVISIONED, ProvisioningRequest
from shoal.units.errors import UserError


class RequestedCapacity(NamedTuple):
    """A request, and those of its pods for which the cluster has no pod yet."""

    request: ProvisioningRequest
    pods: tuple[Pod, ...]
    all_pods: tuple[Pod, ...]
    """Those that exist already included."""

    @property
    def keys(self) -> frozenset[str]:
        return frozenset(map(pod_key, self.pods))


class Demand(NamedTuple):
    """The requests that a planning has to do with."""

    booked: tuple[RequestedCapacity, ...] = ()
    to_check: tuple[RequestedCapacity, ...] = ()
    to_provision: tuple[RequestedCapacity, ...] = ()
    forbidden: Mapping[str, str] = {}
    """The pods that a ResourceQuota would refuse, by namespace and name, and why."""

    def within(self, refusal: Callable[[Sequence[Pod]], str]) -> Demand:
        """The same within quotas. `refusal`: why not all of these pods may exist, empty if they may; they count from
        then on."""
        for each in self.booked:
            refusal(each.pods)
        forbidden: dict[str, str] = {}
        for each in (*self.to_check, *self.to_provision):
            if why := refusal(each.pods):
                forbidden |= dict.fromkeys(each.keys, why)
        return self._replace(forbidden=forbidden)

    def added_to(self, given: PlanningInput) -> PlanningInput:
        """The input with the pods for which nodes are requested; those of one request are planned as a whole."""
        if self.forbidden:
            given = replace(given, forbidden={**given.forbidden, **self.forbidden})
        if not self.to_provision:
            return given
        pods = [pod for each in self.to_provision for pod in each.pods]
        gangs = {key: each.request.gang for each in self.to_provision for key in each.keys}
        return replace(given, pods=(*given.pods, *pods), gangs={**given.gangs, **gangs})


def demand_of(
    requests: Iterable[ProvisioningRequest],
    pods_of: Callable[[ProvisioningRequest], tuple[Pod, ...]],
    present: Iterable[Pod],
    is_due: Callable[[ProvisioningRequest], bool],
) -> Demand:
    """What is to be planned now. `pods_of` raises UserError for a request of which no pods can be made; it is left out.
    `present`: the pods of the cluster. `is_due`: whether a request without capacity is tried now.
    """
    booked: list[RequestedCapacity] = []
    check: list[RequestedCapacity] = []
    provision: list[RequestedCapacity] = []
    pods = tuple(present)
    for request in requests:
        if request.is_ended:
            continue
        try:
            every = pods_of(request)
        except UserError:
            continue
        wanted = RequestedCapacity(request, unconsumed(request, every, pods), every)
        if request.has(PROVISIONED):
            booked.append(wanted)
        elif is_due(request):
            (provision if request.class_name == ATOMIC_SCALE_UP else check).append(wanted)
    return Demand(tuple(booked), tuple(check), tuple(provision))
