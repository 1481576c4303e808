"""DRA claims: the devices that are requested, the devices that were allocated, and the pods that may use them.

Both templates and claims carry the same request. An allocation names its devices by driver, pool and
device, and says with a node selector where they can be reached.
"""

from __future__ import annotations

from msgspec import field

from shoal.api.claim_requests import ClaimConfig, DeviceClaim
from shoal.api.device_classes import check_length
from shoal.api.device_names import dns_label_fault, driver_fault, pool_fault
from shoal.api.device_taints import DeviceToleration
from shoal.api.meta import ObjectMeta
from shoal.api.node_affinity import NodeSelector
from shoal.api.validity import check_meta
from shoal.api.wire import ApiStruct, Quantities, Timestamp
from shoal.units.errors import UserError, Where, excerpt

MOST_RESULTS = 32
MOST_CONSUMERS = 256


class ResourceClaimSpec(ApiStruct, frozen=True):
    devices: DeviceClaim = field(default_factory=DeviceClaim)


class AllocatedDevice(ApiStruct, frozen=True):
    """`share_id` and `consumed_capacity` are there where others may hold parts of the same device."""

    request: str
    driver: str
    pool: str
    device: str
    admin_access: bool = False
    share_id: str = field(default="", name="shareID")
    consumed_capacity: Quantities = field(default_factory=dict)
    tolerations: tuple[DeviceToleration, ...] = ()
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()

    @property
    def key(self) -> tuple[str, str, str]:
        return self.driver, self.pool, self.device


class AllocatedConfig(ClaimConfig, frozen=True, kw_only=True):
    source: str = ""


class DeviceAllocation(ApiStruct, frozen=True):
    results: tuple[AllocatedDevice, ...] = ()
    config: tuple[AllocatedConfig, ...] = ()


class Allocation(ApiStruct, frozen=True):
    devices: DeviceAllocation = field(default_factory=DeviceAllocation)
    node_selector: NodeSelector | None = None
    allocation_timestamp: Timestamp | None = None


class Consumer(ApiStruct, frozen=True):
    resource: str
    name: str
    uid: str = ""
    api_group: str = ""


class DeviceCondition(ApiStruct, frozen=True):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


class ReportedDevice(ApiStruct, frozen=True):
    """What its driver says of an allocated device."""

    driver: str = ""
    pool: str = ""
    device: str = ""
    conditions: tuple[DeviceCondition, ...] = ()

    @property
    def key(self) -> tuple[str, str, str]:
        return self.driver, self.pool, self.device


class ResourceClaimStatus(ApiStruct, frozen=True):
    allocation: Allocation | None = None
    reserved_for: tuple[Consumer, ...] = ()
    devices: tuple[ReportedDevice, ...] = ()


class ResourceClaim(ApiStruct, frozen=True):
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: ResourceClaimSpec = field(default_factory=ResourceClaimSpec)
    status: ResourceClaimStatus = field(default_factory=ResourceClaimStatus)

    def is_allocated(self) -> bool:
        return self.status.allocation is not None


class ClaimTemplateSpec(ApiStruct, frozen=True):
    """The inner metadata is given to the claims made from the template."""

    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: ResourceClaimSpec = field(default_factory=ResourceClaimSpec)


class ResourceClaimTemplate(ApiStruct, frozen=True):
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: ClaimTemplateSpec = field(default_factory=ClaimTemplateSpec)


def check_claim(claim: ResourceClaim, where: Where) -> None:
    _check_claim(claim, where, is_inline=False)


def check_claim_v1beta1(claim: ResourceClaim, where: Where) -> None:
    _check_claim(claim, where, is_inline=True)


def check_claim_template(template: ResourceClaimTemplate, where: Where) -> None:
    check_meta(template.metadata, where.below("metadata"))
    template.spec.spec.devices.check(where.below("spec.spec.devices"))


def check_claim_template_v1beta1(template: ResourceClaimTemplate, where: Where) -> None:
    check_meta(template.metadata, where.below("metadata"))
    template.spec.spec.devices.check(where.below("spec.spec.devices"), is_inline=True)


def _check_claim(claim: ResourceClaim, where: Where, *, is_inline: bool) -> None:
    check_meta(claim.metadata, where.below("metadata"))
    claim.spec.devices.check(where.below("spec.devices"), is_inline=is_inline)
    where = where.below("status")
    if claim.status.allocation is not None:
        names = claim.spec.devices.names()
        _check_allocation(claim.status.allocation, names, where.below("allocation"))
    _check_consumers(claim.status, where.below("reservedFor"))


def _check_allocation(allocation: Allocation, names: frozenset[str], where: Where) -> None:
    if allocation.node_selector is not None:
        check_one_term(allocation.node_selector, where.below("nodeSelector"))
    results, where = allocation.devices.results, where.below("devices.results")
    check_length(results, MOST_RESULTS, where)
    for index, result in enumerate(results):
        here = where.below(f"[{index}]")
        if result.request not in names:
            what = f"{excerpt(result.request)} is not one of the claim's requests"
            raise UserError(what, where=here.below("request"))
        for name, text, fault in (
            ("driver", result.driver, driver_fault(result.driver)),
            ("pool", result.pool, pool_fault(result.pool)),
            ("device", result.device, dns_label_fault(result.device)),
        ):
            if fault:
                raise UserError(f"{excerpt(text)} is not a {name} name: {fault}", where=here.below(name))


def check_one_term(selector: NodeSelector, where: Where) -> None:
    """Alternatives would not say which of them the devices are at, so there are none."""
    if len(selector.node_selector_terms) != 1:
        raise UserError("must have exactly one node selector term", where=where.below("nodeSelectorTerms"))
    selector.check(where)


def _check_consumers(status: ResourceClaimStatus, where: Where) -> None:
    consumers = status.reserved_for
    if consumers and status.allocation is None:
        raise UserError("may not be specified when the claim is not allocated", where=where)
    check_length(consumers, MOST_CONSUMERS, where)
    uids: set[str] = set()
    for index, consumer in enumerate(consumers):
        if consumer.uid and consumer.uid in uids:
            raise UserError(f"{excerpt(consumer.uid)} is named twice", where=where.below(f"[{index}].uid"))
        uids.add(consumer.uid)
