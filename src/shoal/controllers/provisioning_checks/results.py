"""Decides the state of a provisioning check from its ProvisioningRequest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from shoal.autoscale.provisioning_requests.request import (
    ACCEPTED,
    BOOKING_EXPIRED,
    CAPACITY_REVOKED,
    CONSUME,
    CONSUME_CLASS,
    FAILED,
    PROVISIONED,
    ProvisioningRequest,
)
from shoal.client.item import Obj
from shoal.controllers.provisioning_checks.request_objects import CheckConfig


class CheckResult(NamedTuple):
    """What of a check is written into the status of its Workload."""

    state: Literal["Pending", "Ready", "Retry", "Rejected"]
    message: str
    updates: Sequence[Obj] = ()
    """What the check adds to the pods of pod sets."""
    again_s: int = 0
    """After which time a check that failed is to be tried again."""


class CheckedWorkload(NamedTuple):
    attempt: int
    """1 for the first."""
    is_admitted: bool
    pod_sets: Sequence[str]
    """The names of those for which capacity is requested."""


NOT_NEEDED = CheckResult("Ready", "no pod set requests a resource for which capacity is provisioned")


def check_result(
    request: ProvisioningRequest, details: dict[str, str], config: CheckConfig, workload: CheckedWorkload
) -> CheckResult | None:
    """`details`: what the request tells about its capacity. None: the state stays as it is."""
    if request.has(CAPACITY_REVOKED):
        # Pods that replace others would wait for ever: their nodes are gone.
        return CheckResult("Rejected", _message(request, CAPACITY_REVOKED))
    if workload.is_admitted:
        return None
    failure = next((each for each in (FAILED, BOOKING_EXPIRED) if request.has(each)), None)
    if failure is not None:
        words = _message(request, failure)
        if workload.attempt > config.retries:
            return CheckResult("Rejected", f"{words}; tried {workload.attempt} times")
        return CheckResult(
            "Retry", f"{words}; retry {workload.attempt} of {config.retries}", (), config.retry_s(workload.attempt)
        )
    if request.has(PROVISIONED):
        return CheckResult("Ready", _message(request, PROVISIONED), _updates(request, details, config, workload))
    return CheckResult("Pending", _message(request, PROVISIONED) or _message(request, ACCEPTED))


def _updates(
    request: ProvisioningRequest, details: dict[str, str], config: CheckConfig, workload: CheckedWorkload
) -> list[Obj]:
    update: Obj = {"annotations": {CONSUME: request.name, CONSUME_CLASS: request.class_name}}
    selector = {key: details[detail] for key, detail in config.selectors if detail in details}
    if selector:
        update["nodeSelector"] = selector
    return [{"name": name, **update} for name in workload.pod_sets]


def _message(request: ProvisioningRequest, condition: str) -> str:
    found = request.conditions.get(condition)
    return "" if found is None else found.message
