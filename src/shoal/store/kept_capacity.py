"""Reads for which pods capacity is kept before they exist: those of CapacityBuffers and of ProvisioningRequests.

Of a request or a buffer of which no pods can be made, the fault is kept, and the others are read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from shoal.api.meta import DEFAULT_NAMESPACE
from shoal.api.pod import Pod
from shoal.api.resource_quotas import ResourceQuota
from shoal.autoscale.capacity_buffers.buffer import buffer_of, buffer_pods, gpus_of
from shoal.autoscale.capacity_buffers.forecast_text import FORECAST
from shoal.autoscale.nodes.planning_input import pod_key
from shoal.autoscale.provisioning_requests.demand import Demand, demand_of
from shoal.autoscale.provisioning_requests.pods import requested_pods
from shoal.autoscale.provisioning_requests.request import ProvisioningRequest, request_of
from shoal.store.inventory import Inventory
from shoal.store.manifest_admission import plain
from shoal.store.quota_room import QuotaRoom
from shoal.units.errors import UserError

Raw = Mapping[str, Any]
_GROUP = "autoscaling.x-k8s.io/"


@dataclass(frozen=True, slots=True)
class KeptCapacity:
    demand: Demand = field(default_factory=Demand)
    buffered: tuple[Pod, ...] = ()
    """The pods of the buffers."""
    owners: Mapping[str, str] = field(default_factory=dict)
    """For what capacity is kept, by the namespace and name of its pod."""
    faults: tuple[str, ...] = ()


def kept_capacity(inventory: Inventory, now: datetime) -> KeptCapacity:
    """Of the objects of a cluster at this time."""
    templates = _Templates(inventory)
    present = [each.value for each in inventory.of(Pod)]
    quotas = QuotaRoom((plain(each.value) for each in inventory.of(ResourceQuota)), lambda: present)
    buffers: list[tuple[str, tuple[Pod, ...]]] = []
    faults: list[str] = []
    requests: list[ProvisioningRequest] = []
    buffered: list[Pod] = []
    owners: dict[str, str] = {}
    for placed in inventory.others():
        value = placed.value
        if not value.api_version.startswith(_GROUP):
            continue
        try:
            if value.kind == "ProvisioningRequest":
                request = request_of(value.raw)
                if request.is_known and not request.is_ended:
                    owners |= {pod_key(pod): request.gang for pod in requested_pods(request, templates.of(request))}
                    requests.append(request)
            elif value.kind == "CapacityBuffer":
                buffer = buffer_of(value.raw)
                gpus = _gpus_in(buffer.namespace, present) if FORECAST in buffer.annotations else 0.0
                pods = buffer_pods(buffer, templates.one(buffer.namespace, buffer.template), now, gpus)
                buffers.append((buffer.where.obj, pods))
        except UserError as error:
            faults.append(f"{error}.")
    requests.sort(key=lambda each: (each.created_s, each.key))
    demand = demand_of(requests, lambda each: requested_pods(each, templates.of(each)), present, lambda _: True)
    demand = demand.within(quotas.refusal)
    for owner, pods in sorted(buffers):
        count, limited = quotas.take(pods)
        if limited:
            faults.append(f"{owner}: room is kept for {count} of {len(pods)} pods: {limited}.")
        owners |= {pod_key(pod): owner for pod in pods[:count]}
        buffered += pods[:count]
    return KeptCapacity(demand, tuple(buffered), owners, tuple(faults))


class _Templates:
    """The PodTemplates, by namespace and name."""

    def __init__(self, inventory: Inventory) -> None:
        self._found: dict[tuple[str, str], Raw] = {}
        for placed in inventory.others():
            if (placed.value.api_version, placed.value.kind) == ("v1", "PodTemplate"):
                raw = placed.value.raw
                meta = raw.get("metadata") or {}
                key = str(meta.get("namespace") or DEFAULT_NAMESPACE), str(meta.get("name", ""))
                self._found[key] = raw.get("template") or {}

    def one(self, namespace: str, name: str) -> Raw | None:
        return self._found.get((namespace, name))

    def of(self, request: ProvisioningRequest) -> dict[str, Raw]:
        """Those that the request names, as far as they are there."""
        found = {each.template: self.one(request.namespace, each.template) for each in request.pod_sets}
        return {name: template for name, template in found.items() if template is not None}


def _gpus_in(namespace: str, pods: list[Pod]) -> float:
    of_namespace = (pod for pod in pods if (pod.metadata.namespace or DEFAULT_NAMESPACE) == namespace)
    return float(sum(gpus_of(pod) for pod in of_namespace if not pod.is_finished()))
