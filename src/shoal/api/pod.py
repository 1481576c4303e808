"""Pods: what they ask for, and where they are."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, field

from shoal.api.affinity import Affinity, TopologySpreadConstraint
from shoal.api.conditions import Condition
from shoal.api.container import ANY_ADDRESS, Container, Resources
from shoal.api.meta import ObjectMeta
from shoal.api.node_affinity import NodeRule, node_rule
from shoal.api.pod_phases import TERMINAL_PHASES
from shoal.api.taints import Toleration
from shoal.api.wire import ApiStruct, Quantities, Timestamp
from shoal.units.errors import UserError, Where, excerpt

DEFAULT_SCHEDULER = "default-scheduler"

# Lowest and highest value of a 32-bit priority; the top two thousand million are for the system.
Priority = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]


class SchedulingGate(ApiStruct, frozen=True):
    name: str


class PodClaim(ApiStruct, frozen=True):
    """A device claim under the name containers call it by: an existing claim, or a template to make one."""

    name: str
    resource_claim_name: str = ""
    resource_claim_template_name: str = ""


def check_pod_claims(claims: tuple[PodClaim, ...], where: Where) -> None:
    """The API server's rules; `where` is the list."""
    names: set[str] = set()
    for index, claim in enumerate(claims):
        here = where.below(f"[{index}]")
        if claim.name in names:
            raise UserError(f"{excerpt(claim.name)} is named twice", where=here.below("name"))
        names.add(claim.name)
        if bool(claim.resource_claim_name) == bool(claim.resource_claim_template_name):
            raise UserError("exactly one of resourceClaimName and resourceClaimTemplateName is required", where=here)


class SchedulingGroup(ApiStruct, frozen=True):
    """The PodGroup of the pod's namespace that it is a member of."""

    pod_group_name: str


class WorkloadReference(ApiStruct, frozen=True):
    """The older way to say so: a group inside a Workload, and which of its replicas."""

    name: str
    pod_group: str
    pod_group_replica_key: str = ""


class ClaimedVolume(ApiStruct, frozen=True):
    claim_name: str = ""


class ClaimTemplateSpec(ApiStruct, frozen=True):
    storage_class_name: str | None = None


class ClaimTemplate(ApiStruct, frozen=True):
    spec: ClaimTemplateSpec = field(default_factory=ClaimTemplateSpec)


class EphemeralVolume(ApiStruct, frozen=True):
    """The claim itself says which claim is made."""

    volume_claim_template: ClaimTemplate = field(default_factory=ClaimTemplate)


class PodVolume(ApiStruct, frozen=True):
    """Claims only; other kinds of volumes concern the kubelet alone."""

    name: str = ""
    persistent_volume_claim: ClaimedVolume | None = None
    ephemeral: EphemeralVolume | None = None
    """A claim is made for the pod alone."""


class PodSpec(ApiStruct, frozen=True):
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    node_name: str = ""
    node_selector: dict[str, str] = field(default_factory=dict)
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    priority: Priority | None = None
    priority_class_name: str = ""
    preemption_policy: Literal["PreemptLowerPriority", "Never"] = "PreemptLowerPriority"
    scheduler_name: str = DEFAULT_SCHEDULER
    scheduling_gates: tuple[SchedulingGate, ...] = ()
    overhead: Quantities = field(default_factory=dict)
    host_network: bool = False
    volumes: tuple[PodVolume, ...] = ()
    runtime_class_name: str = ""
    resource_claims: tuple[PodClaim, ...] = ()
    resources: Resources | None = None
    restart_policy: str = "Always"
    service_account_name: str = ""
    termination_grace_period_seconds: Annotated[int, Meta(ge=0)] = 30
    active_deadline_seconds: int | None = None
    scheduling_group: SchedulingGroup | None = None
    workload_ref: WorkloadReference | None = None

    def node_rule(self) -> NodeRule:
        return node_rule(self.node_selector, self.affinity.node_affinity if self.affinity else None)

    def host_ports(self) -> tuple[tuple[str, str, int], ...]:
        """(address, protocol, port) taken on the host; on the host's network that is every port."""
        taken = set()
        for container in (*self.containers, *(c for c in self.init_containers if c.is_sidecar())):
            for port in container.ports:
                number = port.host_port or (port.container_port if self.host_network else 0)
                if number:
                    taken.add((port.host_ip or ANY_ADDRESS, port.protocol, number))
        return tuple(sorted(taken))


class PodClaimStatus(ApiStruct, frozen=True):
    """The claim object that was made for one of the pod's claims from its template."""

    name: str
    resource_claim_name: str = ""


class PodStatus(ApiStruct, frozen=True):
    phase: str = ""
    conditions: tuple[Condition, ...] = ()
    nominated_node_name: str = ""
    start_time: Timestamp | None = None
    pod_ip: str = field(default="", name="podIP")
    reason: str = ""
    resource_claim_statuses: tuple[PodClaimStatus, ...] = ()


class Pod(ApiStruct, frozen=True):
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: PodSpec = field(default_factory=PodSpec)
    status: PodStatus = field(default_factory=PodStatus)

    def is_finished(self) -> bool:
        """It ended and holds nothing any more, though its object is still there."""
        return self.status.phase in TERMINAL_PHASES

    def has_succeeded(self) -> bool:
        return self.status.phase == "Succeeded"

    def is_terminating(self) -> bool:
        return self.metadata.deletion_timestamp is not None


class PodTemplate(ApiStruct, frozen=True):
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: PodSpec = field(default_factory=PodSpec)
