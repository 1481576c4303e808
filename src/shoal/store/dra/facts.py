"""Converts slices and claims to the engine's facts, with full names, and amounts in nano-units."""

from __future__ import annotations

from shoal.api.claim_requests import DeviceAsk, DeviceClaim, DeviceRequest, ExactRequest
from shoal.api.claims import ResourceClaim
from shoal.api.device_names import full_name
from shoal.api.groups.kai import QUEUE_LABEL
from shoal.api.slices import Attribute, Device, DeviceTraits, Reach, ResourceSlice
from shoal.engine.dra.devices import Attribute as Value
from shoal.engine.dra.devices import Binding, Consumption, DeviceFacts, SliceFacts
from shoal.engine.dra.requests import ClaimAsk, ClaimFacts, Constraint, Option, Pick, Picks, Request
from shoal.store.dra.sets import DeviceSets, SetKey


def slice_facts(piece: ResourceSlice) -> SliceFacts:
    """A slice."""
    spec = piece.spec
    everywhere = Reach(all_nodes=True)
    own = Reach(spec.node_name, spec.node_selector, spec.all_nodes)
    return SliceFacts(
        name=piece.metadata.name,
        driver=spec.driver,
        pool=spec.pool.name,
        devices=tuple(_device(piece, device) for device in spec.devices),
        counters={
            each.name: {name: counter.value.nano for name, counter in each.counters.items()}
            for each in spec.shared_counters
        },
        generation=spec.pool.generation,
        pieces=spec.pool.resource_slice_count,
        reach=everywhere if spec.per_device_node_selection else own,
    )


def _device(piece: ResourceSlice, device: Device) -> DeviceFacts:
    driver, traits, reach = piece.spec.driver, device.traits(), piece.reach(device)
    return DeviceFacts(
        name=device.name,
        reach=Reach(reach.node_name, reach.node_selector, reach.all_nodes),
        attributes={full_name(name, driver): _value(each) for name, each in traits.attributes.items()},
        capacity={full_name(name, driver): has for name, has in traits.capacity.items()},
        consumes=tuple(
            Consumption(each.counter_set, tuple(sorted((n, c.value.nano) for n, c in each.counters.items())))
            for each in traits.consumes_counters
        ),
        taints=traits.taints,
        shared=traits.allow_multiple_allocations,
        binding=_binding(traits),
    )


def _binding(traits: DeviceTraits) -> Binding | None:
    found = Binding(traits.binding_conditions, traits.binding_failure_conditions, traits.binds_to_node)
    return found if found != Binding() else None


def _value(attribute: Attribute) -> Value:
    kinds = (("bool", attribute.flag), ("int", attribute.number), ("string", attribute.text))
    for kind, value in kinds:
        if value is not None:
            return kind, value
    return "version", attribute.version or ""


def sets_of(devices: DeviceClaim) -> list[SetKey]:
    """The sets of devices that a claim's requests select."""
    asks: list[DeviceAsk] = []
    for request in devices.requests:
        exact = request.exact()
        asks += request.first_available if exact is None else (exact,)
    return [(ask.device_class_name, tuple(one.cel.expression for one in ask.selectors)) for ask in asks]


def claim_ask(devices: DeviceClaim, sets: DeviceSets) -> tuple[ClaimAsk, str]:
    """The requests of a claim, and its fault, if it has one."""
    faults: list[str] = []
    requests = tuple(_request(request, sets, faults) for request in devices.requests)
    constraints = tuple(
        Constraint(
            each.match_attribute or each.distinct_attribute, bool(each.distinct_attribute), frozenset(each.requests)
        )
        for each in devices.constraints
    )
    return ClaimAsk(requests, constraints), faults[0] if faults else ""


def _request(request: DeviceRequest, sets: DeviceSets, faults: list[str]) -> Request:
    exact = request.exact()
    alternatives: list[tuple[str, DeviceAsk]] = [(each.name, each) for each in request.first_available]
    asks = alternatives if exact is None else [("", exact)]
    options = []
    for name, ask in asks:
        meant = sets.meant(ask.device_class_name, ask.selectors)
        if meant.fault:
            faults.append(f"request {request.name}{f'/{name}' if name else ''}: {meant.fault}")
        amounts = ask.capacity.requests if ask.capacity is not None else {}
        options.append(
            Option(
                matching=meant.name,
                count=ask.wanted(),
                name=name,
                admin=isinstance(ask, ExactRequest) and ask.admin_access,
                tolerations=ask.tolerations,
                capacity=tuple(sorted((each, amount.nano) for each, amount in amounts.items())),
                device_class=ask.device_class_name,
            )
        )
    return Request(request.name, tuple(options))


def claim_facts(claim: ResourceClaim, sets: DeviceSets) -> ClaimFacts:
    """A claim and its status."""
    ask, fault = claim_ask(claim.spec.devices, sets)
    allocation = claim.status.allocation
    namespace, name = claim.metadata.namespace, claim.metadata.name
    return ClaimFacts(
        key=f"{namespace}/{name}",
        ask=ask,
        allocation=None if allocation is None else _picks(claim),
        reach=None if allocation is None else allocation.node_selector,
        reserved=frozenset(f"{namespace}/{each.name}" for each in claim.status.reserved_for),
        queue=claim.metadata.labels.get(QUEUE_LABEL, ""),
        trouble=_trouble(claim, fault),
    )


def _trouble(claim: ResourceClaim, fault: str) -> str:
    key = claim.metadata.key
    if claim.metadata.deletion_timestamp is not None:
        return f'resourceclaim "{claim.metadata.name}" is being deleted'
    return f'resourceclaim "{key}": {fault}' if fault and not claim.is_allocated() else ""


def _picks(claim: ResourceClaim) -> Picks:
    allocation = claim.status.allocation
    results = allocation.devices.results if allocation is not None else ()
    return tuple(
        Pick(
            result.request,
            "/".join(result.key),
            tuple(
                sorted(
                    (full_name(name, result.driver), amount.nano) for name, amount in result.consumed_capacity.items()
                )
            ),
            result.admin_access,
        )
        for result in results
    )
