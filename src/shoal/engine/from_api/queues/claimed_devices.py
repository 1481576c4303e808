"""Counts devices that pods claim (DRA) against quota, under the resource name that the configuration maps their class
to.

Without a mapping claims are not counted. With one, a claim that cannot be counted, because it asks for all devices
there are, leaves alternatives open or names a class that is not mapped, keeps its workload from being admitted: let
through, it would have its devices for nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from shoal.api.claims import ResourceClaimTemplate
from shoal.api.kueue.configuration import DeviceClassMapping
from shoal.api.pod import PodSpec
from shoal.engine.queues.facts import Amounts


class Claimed(msgspec.Struct, frozen=True):
    """The devices of one claim made from a template, or why they cannot be counted."""

    amounts: Amounts = {}
    fault: str = ""


def claimed_of(template: ResourceClaimTemplate, mappings: Iterable[DeviceClassMapping]) -> Claimed:
    """Administrators look at devices without taking them, and are charged nothing."""
    names = {device_class: each.name for each in mappings for device_class in each.device_class_names}
    found: Amounts = {}
    for request in template.spec.spec.devices.requests:
        asked = request.exact()
        here = f"ResourceClaimTemplate {template.metadata.key}: request {request.name}"
        if asked is None:
            return Claimed({}, f"{here} leaves alternatives open, which quota cannot count")
        count, name = asked.wanted(), names.get(asked.device_class_name)
        if asked.admin_access:
            continue
        if count is None:
            return Claimed({}, f"{here} asks for all devices, which quota cannot count")
        if name is None:
            return Claimed({}, f"{here}: DeviceClass {asked.device_class_name} is not mapped to a resource of quota")
        found[name] = found.get(name, 0) + count
    return Claimed(found)


def charge_claims(spec: PodSpec, namespace: str, claims: Mapping[str, Claimed]) -> Claimed:
    """All claims that are made for a pod; `claims` are the templates, by namespace and name."""
    total: Amounts = {}
    for claim in spec.resource_claims:
        found = claims.get(f"{namespace}/{claim.resource_claim_template_name}")
        if found is None:
            continue
        if found.fault:
            return found
        for name, amount in found.amounts.items():
            total[name] = total.get(name, 0) + amount
    return Claimed(total)
