"""Represents a NodeClaim as far as its progress is concerned, and names its annotations and conditions."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

import msgspec

from shoal.autoscale.nodes.pool_reading import duration_s
from shoal.autoscale.requirements.labels import CAPACITY_TYPE_LABEL, INSTANCE_TYPE_LABEL, POOL_LABEL, ZONE_LABEL
from shoal.units.errors import UserError, Where
from shoal.units.numbers import whole_of

FINALIZER: Final = "karpenter.sh/termination"
REGISTERED_LABEL: Final = "karpenter.sh/registered"
INITIALIZED_LABEL: Final = "karpenter.sh/initialized"
UNREGISTERED_TAINT: Final = "karpenter.sh/unregistered"
DISRUPTED_TAINT: Final = "karpenter.sh/disrupted"
POOL_HASH: Final = "karpenter.sh/nodepool-hash"
TERMINATION_TIME: Final = "karpenter.sh/nodeclaim-termination-timestamp"

GROUP: Final = "shoal.dev/launch-group"
"""NodeClaims that one request launches, all or none; the token of this request."""
GROUP_SIZE: Final = "shoal.dev/launch-group-size"
PODS: Final = "shoal.dev/provisioned-for"
PRICE: Final = "shoal.dev/price-per-hour"
EXPECTED: Final = "shoal.dev/expected-start-seconds"
REPLACES: Final = "shoal.dev/replaces"
"""The nodes that are removed once all nodes of the launch group have started."""

LAUNCHED, REGISTERED, INITIALIZED, READY = "Launched", "Registered", "Initialized", "Ready"
DRIFTED, CONSOLIDATABLE, DISRUPTED = "Drifted", "Consolidatable", "DisruptionReason"
DRAINED, TERMINATING = "Drained", "InstanceTerminating"

Raw = Mapping[str, Any]


class ConditionState(msgspec.Struct, frozen=True):
    status: str
    reason: str
    message: str
    since_s: float

    @property
    def is_true(self) -> bool:
        return self.status == "True"


class NodeClaim(msgspec.Struct, frozen=True):
    name: str
    uid: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    created_s: float
    deleted_s: float | None
    """When its deletion was requested."""
    has_finalizer: bool
    startup_taints: tuple[tuple[str, str], ...]
    """Key and effect."""
    grace_s: float | None
    """How long its node may take to drain; None: as long as it takes."""
    provider_id: str
    node: str
    capacity: Mapping[str, str]
    conditions: Mapping[str, ConditionState]

    @property
    def pool(self) -> str:
        return self.labels.get(POOL_LABEL, "")

    @property
    def offering(self) -> tuple[str, str, str]:
        """Instance type, zone and capacity type, as planned or launched."""
        labels = self.labels
        return labels.get(INSTANCE_TYPE_LABEL, ""), labels.get(ZONE_LABEL, ""), labels.get(CAPACITY_TYPE_LABEL, "")

    @property
    def is_own(self) -> bool:
        """Whether Shoal wrote it."""
        return GROUP in self.annotations

    @property
    def group(self) -> str:
        return self.annotations.get(GROUP, self.name)

    @property
    def group_size(self) -> int:
        return whole_of(self.annotations.get(GROUP_SIZE, "")) or 1

    @property
    def pods(self) -> tuple[str, ...]:
        return tuple(filter(None, self.annotations.get(PODS, "").split(",")))

    @property
    def replaces(self) -> tuple[str, ...]:
        return tuple(filter(None, self.annotations.get(REPLACES, "").split(",")))

    @property
    def expected_s(self) -> float | None:
        """How long it was expected to take to start."""
        found = whole_of(self.annotations.get(EXPECTED, ""))
        return None if found is None else float(found)

    def has(self, condition: str) -> bool:
        found = self.conditions.get(condition)
        return found is not None and found.is_true

    def since_s(self, condition: str) -> float:
        """When the condition got its present status; the creation where it has none."""
        found = self.conditions.get(condition)
        return self.created_s if found is None else found.since_s

    @property
    def is_deleting(self) -> bool:
        return self.deleted_s is not None


def claim_of(raw: Raw) -> NodeClaim:
    meta, spec, status = raw.get("metadata") or {}, raw.get("spec") or {}, raw.get("status") or {}
    deleted = meta.get("deletionTimestamp")
    return NodeClaim(
        name=str(meta.get("name", "")),
        uid=str(meta.get("uid", "")),
        labels=meta.get("labels") or {},
        annotations=meta.get("annotations") or {},
        created_s=time_s(meta.get("creationTimestamp")) or 0.0,
        deleted_s=time_s(deleted),
        has_finalizer=FINALIZER in (meta.get("finalizers") or ()),
        startup_taints=tuple((each["key"], each["effect"]) for each in spec.get("startupTaints") or ()),
        grace_s=_grace_s(spec),
        provider_id=str(status.get("providerID") or ""),
        node=str(status.get("nodeName") or ""),
        capacity=status.get("capacity") or {},
        conditions=conditions_of(status),
    )


def conditions_of(status: Raw) -> dict[str, ConditionState]:
    """By type."""
    return {
        str(each.get("type")): ConditionState(
            str(each.get("status")),
            str(each.get("reason") or ""),
            str(each.get("message") or ""),
            time_s(each.get("lastTransitionTime")) or 0.0,
        )
        for each in status.get("conditions") or ()
    }


def _grace_s(spec: Raw) -> float | None:
    try:
        return duration_s(spec.get("terminationGracePeriod"), Where(path="spec.terminationGracePeriod"))
    except UserError:
        return None


def time_s(text: Any) -> float | None:
    """Seconds since 1970."""
    return datetime.fromisoformat(str(text)).timestamp() if text else None
