"""Builds the Endpoints object of a Service, which is deprecated but still read by some clients."""

from __future__ import annotations

from collections.abc import Iterable

from shoal.client.item import Obj
from shoal.embedded.controllers.endpoint_slices.services import HEADLESS, EndpointPod, Service
from shoal.embedded.controllers.endpoint_slices.slices import Ports, port_obj, ports_on

MANAGED_BY = "endpoints.kubernetes.io/managed-by"
CONTROLLER = "endpoint-controller"
OVER_CAPACITY = "endpoints.kubernetes.io/over-capacity"
MAX_ADDRESSES = 1000


def desired_subsets(service: Service, pods: Iterable[EndpointPod]) -> tuple[list[Obj], bool]:
    """The subsets, and whether addresses were cut off."""
    ready: dict[Ports, list[Obj]] = {}
    waiting: dict[Ports, list[Obj]] = {}
    spec, count = service.spec, 0
    for pod in pods:
        addresses = pod.addresses(service.families[0])
        if not addresses or (pod.is_terminating and not spec.publish_not_ready_addresses):
            continue
        count += 1
        if count > MAX_ADDRESSES:
            break
        found = ready if pod.is_ready or spec.publish_not_ready_addresses else waiting
        address = _address(service, pod, addresses[0])
        for port in ports_on(service, pod) or ((),):
            found.setdefault((port,) if port else (), []).append(address)
    return _packed(ready, waiting), count > MAX_ADDRESSES


def _packed(ready: dict[Ports, list[Obj]], waiting: dict[Ports, list[Obj]]) -> list[Obj]:
    """Combines ports with the same addresses."""
    by_addresses: dict[tuple[tuple[str, ...], tuple[str, ...]], list[Ports]] = {}
    for ports in dict.fromkeys((*ready, *waiting)):
        same = (_ids(ready.get(ports, [])), _ids(waiting.get(ports, [])))
        by_addresses.setdefault(same, []).append(ports)
    subsets = []
    for group in by_addresses.values():
        ports = tuple(sorted(port for each in group for port in each))
        subset: Obj = {}
        for name, found in (("addresses", ready), ("notReadyAddresses", waiting)):
            if addresses := found.get(group[0]):
                subset[name] = sorted(addresses, key=lambda one: (one["ip"], one["targetRef"]["uid"]))
        subset["ports"] = [_port(*port[:3]) for port in ports]
        if not subset["ports"]:
            del subset["ports"]
        subsets.append(subset)
    return sorted(subsets, key=lambda subset: str(subset.get("ports")))


def desired_endpoints_object(service: Service, subsets: list[Obj], is_over: bool, before: Obj | None) -> Obj | None:
    """The object to write; None if nothing changed."""
    meta = service.metadata
    labels = {**meta.labels, MANAGED_BY: CONTROLLER}
    labels.pop(HEADLESS, None)
    if service.is_headless:
        labels[HEADLESS] = ""
    if before is None:
        found: Obj = {"metadata": {"name": meta.name, "namespace": meta.namespace, "labels": labels}}
    else:
        annotations = before["metadata"].get("annotations", {})
        is_same = before.get("subsets", []) == subsets and before["metadata"].get("labels") == labels
        if is_same and (annotations.get(OVER_CAPACITY) == "truncated") == is_over:
            return None
        found = before
        found["metadata"]["labels"] = labels
    annotations = found["metadata"].setdefault("annotations", {})
    annotations.pop(OVER_CAPACITY, None)
    if is_over:
        annotations[OVER_CAPACITY] = "truncated"
    found["subsets"] = subsets
    return found


def _address(service: Service, pod: EndpointPod, address: str) -> Obj:
    meta = pod.metadata
    found: Obj = {
        "ip": address,
        "targetRef": {"kind": "Pod", "namespace": meta.namespace, "name": meta.name, "uid": meta.uid},
    }
    if node := pod.spec.node_name:
        found["nodeName"] = node
    if hostname := pod.hostname(service):
        found["hostname"] = hostname
    return found


def _port(name: str, number: int, protocol: str) -> Obj:
    found = port_obj(name, number, protocol)
    if not name:
        del found["name"]
    return found


def _ids(addresses: list[Obj]) -> tuple[str, ...]:
    return tuple(sorted(one["targetRef"]["uid"] + one["ip"] for one in addresses))
