"""Decides the conditions of a ProvisioningRequest, from the time and from what a planning found for its pods."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

from shoal.autoscale.nodes.plan import NodePlan
from shoal.autoscale.provisioning_requests.request import (
    ACCEPTED,
    ATOMIC_SCALE_UP,
    BOOKING_EXPIRED,
    CAPACITY_REVOKED,
    FAILED,
    PROVISIONED,
    ProvisioningRequest,
)

BOOKING_S: Final = 600.0
"""How long capacity is kept for the pods of a request."""
_TEMPLATES_S: Final = 60.0
"""How much later than its request a PodTemplate may be created."""
_FIRST_RETRY_S, _LONGEST_RETRY_S = 60.0, 600.0


class NewCondition(NamedTuple):
    type: str
    is_true: bool
    reason: str
    message: str


def due_condition(request: ProvisioningRequest, now_s: float) -> NewCondition | None:
    """The next condition that needs no planning."""
    if not request.has(ACCEPTED):
        return NewCondition(ACCEPTED, True, "Accepted", "the request is accepted")
    if request.has(PROVISIONED):
        if now_s - request.since_s(PROVISIONED) < BOOKING_S:
            return None
        words = f"the capacity was kept for {BOOKING_S / 60:g} minutes"
        return NewCondition(BOOKING_EXPIRED, True, "CapacityReservationTimeExpired", words)
    if now_s - request.created_s < request.valid_s:
        return None
    return NewCondition(FAILED, True, "Expired", f"no capacity was found within {request.valid_s:g} s")


def next_due_s(request: ProvisioningRequest) -> float:
    """When `due_condition` changes, apart from what a planning finds."""
    if request.has(PROVISIONED):
        return request.since_s(PROVISIONED) + BOOKING_S
    return request.created_s + request.valid_s


def templates_due_s(request: ProvisioningRequest) -> float:
    """When its PodTemplates have to be there."""
    return request.created_s + _TEMPLATES_S


def impossible(why: str) -> NewCondition:
    """No pods can be made of the request."""
    return NewCondition(FAILED, True, "FailedToCreatePods", why)


def unkept(why: str) -> NewCondition:
    """It is not known any more for which pods the capacity is kept."""
    return NewCondition(CAPACITY_REVOKED, True, "PodTemplateNotFound", f"the capacity is not kept any more: {why}")


def found_condition(
    request: ProvisioningRequest, pods: Collection[str], plan: NodePlan, launched: Collection[str]
) -> NewCondition | None:
    """What the plan means for the request; None while its nodes are still requested. `pods`: by namespace and name.
    `launched`: the nodes that exist, or that the cloud has granted.
    """
    refused = [each for each in plan.pending if each.pod in pods]
    if refused:
        cause = next((each for each in refused if each.by_pool), refused[0])
        by_pool = "; ".join(f"pool {pool}: {why}" for pool, why in sorted(cause.by_pool.items()))
        what = "no nodes can be provisioned" if request.class_name == ATOMIC_SCALE_UP else "there is no capacity"
        words = f"{what} for all pods: {by_pool or cause.reason or 'the nodes are full'}"
        is_final = request.is_tried_once
        return NewCondition(FAILED if is_final else PROVISIONED, is_final, "CapacityIsNotFound", words)
    homes = [plan.placed.get(key) for key in pods]
    if not all(home in launched for home in homes):
        return None
    is_new = request.class_name == ATOMIC_SCALE_UP
    words = f"there is capacity for all pods, on {len(set(homes))} nodes"
    return NewCondition(PROVISIONED, True, "CapacityIsProvisioned" if is_new else "CapacityIsFound", words)


def revoked(gone: Sequence[str]) -> NewCondition:
    """Nodes of a booking are gone before its pods came."""
    words = f"the capacity is gone with NodeClaim {', '.join(sorted(gone))}"
    return NewCondition(CAPACITY_REVOKED, True, "CapacityRevoked", words)


def retry_s(attempts: int) -> float:
    """How long a request without capacity waits before it is tried again. `attempts`: those that failed."""
    return float(min(_FIRST_RETRY_S * 2 ** max(attempts - 1, 0), _LONGEST_RETRY_S))
