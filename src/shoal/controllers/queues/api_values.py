"""Converts amounts and admissions to the fields of Workloads and queues in the API."""

from __future__ import annotations

from shoal.api.kueue.packing import packed
from shoal.api.resources import CPU, EPHEMERAL_STORAGE, HUGEPAGES_PREFIX, MEMORY
from shoal.client.conditions import Status
from shoal.engine.queues.facts import PodSetAdmission, QuotaAssignment
from shoal.units.quantity import Format, Quantity


def admission_to_api(admission: QuotaAssignment) -> Status:
    return {
        "clusterQueue": admission.cluster_queue,
        "podSetAssignments": [_assignment(each) for each in admission.pod_sets],
    }


def amount_to_api(resource: str, amount: int) -> str:
    if resource == CPU:
        return str(Quantity.of_milli(amount))
    is_bytes = resource in {MEMORY, EPHEMERAL_STORAGE} or resource.startswith(HUGEPAGES_PREFIX)
    return str(Quantity.of(amount, Format.BINARY if is_bytes else Format.DECIMAL))


def _assignment(each: PodSetAdmission) -> Status:
    found: Status = {
        "name": each.name,
        "flavors": dict(each.flavors),
        "resourceUsage": {name: amount_to_api(name, amount) for name, amount in each.usage.items()},
        "count": each.count,
    }
    if each.topology is not None:
        domains = [{"values": list(values), "count": count} for values, count in each.topology.domains]
        found["topologyAssignment"] = packed({"levels": list(each.topology.levels), "domains": domains})
    if each.delayed:
        found["delayedTopologyRequest"] = each.delayed
    return found
