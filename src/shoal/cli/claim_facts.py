"""Tells what a waiting pod has to know of its resource claims: values that a selector compares with and no device has,
and the devices that a claim has already.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from shoal.api.claims import ResourceClaim, ResourceClaimTemplate
from shoal.api.decode import Document
from shoal.api.pod import Pod
from shoal.api.slices import ResourceSlice
from shoal.views.enumeration import few

_COMPARED = re.compile(r"\]\.(?P<name>\w+) ?== ?[\"'](?P<value>[^\"']*)[\"']")
"""`device.attributes["domain"].name == "value"`, from the bracket on."""
_MOST = 6


def claim_lines(documents: Sequence[Document], pod: Pod) -> list[str]:
    """One line for each value that no device has, and for each claim that has devices of a node."""
    slices = [each.value for each in documents if isinstance(each.value, ResourceSlice)]
    claims = list(_claims_of(documents, pod)) if slices else []
    unmatched = (words for claim in claims for words in _unmatched(claim, slices))
    allocated = (_allocated(claim, slices) for claim in claims if isinstance(claim, ResourceClaim))
    return [line for line in dict.fromkeys([*unmatched, *allocated]) if line]


def _claims_of(documents: Sequence[Document], pod: Pod) -> Iterator[ResourceClaim | ResourceClaimTemplate]:
    claims = {each.resource_claim_name for each in pod.spec.resource_claims}
    claims |= {each.resource_claim_name for each in pod.status.resource_claim_statuses}
    templates = {each.resource_claim_template_name for each in pod.spec.resource_claims}
    for document in documents:
        value = document.value
        if not isinstance(value, ResourceClaim | ResourceClaimTemplate):
            continue
        names = claims if isinstance(value, ResourceClaim) else templates
        if value.metadata.name in names and value.metadata.namespace == pod.metadata.namespace:
            yield value


def _unmatched(claim: ResourceClaim | ResourceClaimTemplate, slices: Sequence[ResourceSlice]) -> Iterator[str]:
    content = claim.spec.devices if isinstance(claim, ResourceClaim) else claim.spec.spec.devices
    asks = [ask for each in content.requests for ask in (each, each.exactly, *each.first_available) if ask is not None]
    for expression in (selector.cel.expression for ask in asks for selector in ask.selectors):
        for found in _COMPARED.finditer(expression):
            present = _values(found["name"], slices)
            if present and found["value"] not in present:
                what = f'No device has {found["name"]} "{found["value"]}"'
                quoted = [f'"{each}"' for each in sorted(present)]
                yield f"{what}; devices have {few(quoted, _MOST)}."


def _values(name: str, slices: Sequence[ResourceSlice]) -> set[str]:
    """The texts that devices have of an attribute, with or without its domain."""
    return {
        attribute.text
        for each in slices
        for device in each.spec.devices
        for traits in (device, device.basic)
        if traits is not None
        for key, attribute in traits.attributes.items()
        if key.rpartition("/")[2] == name and attribute.text is not None
    }


def _allocated(claim: ResourceClaim, slices: Sequence[ResourceSlice]) -> str:
    """Which devices the claim has, of which nodes, and the pods that use it."""
    allocation = claim.status.allocation
    if allocation is None:
        return ""
    nodes = {(each.spec.driver, each.spec.pool.name): each.spec.node_name for each in slices if each.spec.node_name}
    results = allocation.devices.results
    where = sorted({node for each in results if (node := nodes.get((each.driver, each.pool)))})
    if not where:
        return ""
    devices = few([f"{each.driver}/{each.pool}/{each.device}" for each in results], _MOST)
    pods = [each.name for each in claim.status.reserved_for if each.resource == "pods"]
    users = f", in use by pod{'s' * (len(pods) > 1)} {few(pods, _MOST)}" if pods else ""
    return f"Claim {claim.metadata.key} has {devices} of node {few(where, _MOST)}{users}."
