"""Represents a ProvisioningRequest: which pods it asks capacity for, and how far it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from shoal.api.meta import DEFAULT_NAMESPACE
from shoal.autoscale.node_claims.claim import ConditionState, conditions_of, time_s
from shoal.units.numbers import whole_of

CHECK_CAPACITY: Final = "check-capacity.autoscaling.x-k8s.io"
ATOMIC_SCALE_UP: Final = "best-effort-atomic-scale-up.autoscaling.x-k8s.io"

ACCEPTED, PROVISIONED, FAILED = "Accepted", "Provisioned", "Failed"
BOOKING_EXPIRED, CAPACITY_REVOKED = "BookingExpired", "CapacityRevoked"

CONSUME: Final = "autoscaling.x-k8s.io/consume-provisioning-request"
CONSUME_CLASS: Final = "autoscaling.x-k8s.io/provisioning-class-name"
OLD_CONSUME: Final = "cluster-autoscaler.kubernetes.io/consume-provisioning-request"
OLD_CONSUME_CLASS: Final = "cluster-autoscaler.kubernetes.io/provisioning-class-name"
CLAIMS: Final = "shoal.dev/node-claims"
"""The NodeClaims on which the capacity was found."""

_VALID_S: Final = 7 * 24 * 3600

Raw = Mapping[str, Any]


class RequestedPods(msgspec.Struct, frozen=True):
    """Equal pods, described by a PodTemplate of the same namespace."""

    template: str
    count: int


class ProvisioningRequest(msgspec.Struct, frozen=True):
    namespace: str
    name: str
    uid: str
    created_s: float
    class_name: str
    pod_sets: tuple[RequestedPods, ...]
    parameters: Mapping[str, str] = {}
    claims: tuple[str, ...] = ()
    conditions: Mapping[str, ConditionState] = {}

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def gang(self) -> str:
        """Under which its pods are planned as a whole."""
        return f"ProvisioningRequest {self.key}"

    @property
    def is_known(self) -> bool:
        """Whether its class is one of those that are decided here."""
        return self.class_name in (CHECK_CAPACITY, ATOMIC_SCALE_UP)

    @property
    def is_ended(self) -> bool:
        return any(self.has(each) for each in (FAILED, BOOKING_EXPIRED, CAPACITY_REVOKED))

    @property
    def valid_s(self) -> float:
        """For how long after its creation it is tried."""
        return float(whole_of(self.parameters.get("ValidUntilSeconds", "")) or _VALID_S)

    @property
    def is_tried_once(self) -> bool:
        return self.parameters.get("noRetry") == "true"

    def has(self, condition: str) -> bool:
        found = self.conditions.get(condition)
        return found is not None and found.is_true

    def since_s(self, condition: str) -> float:
        found = self.conditions.get(condition)
        return self.created_s if found is None else found.since_s


def request_of(raw: Raw) -> ProvisioningRequest:
    meta, spec, status = raw.get("metadata") or {}, raw.get("spec") or {}, raw.get("status") or {}
    return ProvisioningRequest(
        namespace=str(meta.get("namespace") or DEFAULT_NAMESPACE),
        name=str(meta.get("name", "")),
        uid=str(meta.get("uid", "")),
        created_s=time_s(meta.get("creationTimestamp")) or 0.0,
        class_name=str(spec.get("provisioningClassName", "")),
        pod_sets=tuple(
            RequestedPods(str((each.get("podTemplateRef") or {}).get("name", "")), int(each.get("count") or 0))
            for each in spec.get("podSets") or ()
        ),
        parameters=spec.get("parameters") or {},
        claims=tuple(filter(None, (meta.get("annotations") or {}).get(CLAIMS, "").split(","))),
        conditions=conditions_of(status),
    )
