"""Computes the EndpointSlices of a Service, with as few writes as possible.

Endpoints stay in their slice. New endpoints go first into slices that are written anyway, then into slices with free
capacity, then into new slices of at most a hundred.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from shoal.client.item import Obj
from shoal.client.kind import SERVICES
from shoal.client.owner_reference import controlled_by
from shoal.embedded.controllers.endpoint_slices.services import HEADLESS, EndpointPod, Service

MAX_ENDPOINTS = 100
SERVICE_NAME = "kubernetes.io/service-name"
MANAGED_BY = "endpointslice.kubernetes.io/managed-by"
CONTROLLER = "endpointslice-controller.k8s.io"

Ports = tuple[tuple[str, int, str, str], ...]
"""Name, number, protocol, application protocol."""


class SliceGroup(NamedTuple):
    """Endpoints that can share a slice."""

    family: str
    ports: Ports


class SliceWrites(NamedTuple):
    create: list[Obj]
    update: list[Obj]
    delete: list[Obj]


def desired_endpoints(
    service: Service, pods: Iterable[EndpointPod], zones: Mapping[str, str]
) -> dict[SliceGroup, list[Obj]]:
    """All endpoints of the Service by slice group."""
    found: dict[SliceGroup, list[Obj]] = {}
    for pod in pods:
        for family in service.families:
            addresses = pod.addresses(family)
            if addresses:
                group = SliceGroup(family, ports_on(service, pod))
                found.setdefault(group, []).append(_endpoint(service, pod, addresses, zones))
    return found


def ports_on(service: Service, pod: EndpointPod) -> Ports:
    numbers = [(port, pod.port_of(port)) for port in service.spec.ports]
    return tuple(
        (port.name, number, port.protocol, port.app_protocol) for port, number in numbers if number is not None
    )


def _endpoint(service: Service, pod: EndpointPod, addresses: list[str], zones: Mapping[str, str]) -> Obj:
    meta, is_serving = pod.metadata, pod.is_ready
    is_ready = service.spec.publish_not_ready_addresses or (is_serving and not pod.is_terminating)
    found: Obj = {
        "addresses": addresses,
        "conditions": {"ready": is_ready, "serving": is_serving, "terminating": pod.is_terminating},
        "targetRef": {"kind": "Pod", "namespace": meta.namespace, "name": meta.name, "uid": meta.uid},
    }
    if hostname := pod.hostname(service):
        found["hostname"] = hostname
    if node := pod.spec.node_name:
        found["nodeName"] = node
        if zone := zones.get(node):
            found["zone"] = zone
    return found


def writes(service: Service, desired: Mapping[SliceGroup, Sequence[Obj]], existing: Iterable[Obj]) -> SliceWrites:
    """The writes that lead to the desired endpoints."""
    by_group: dict[SliceGroup, list[Obj]] = {}
    for slice_ in existing:
        by_group.setdefault(_group_of(slice_), []).append(slice_)
    result = SliceWrites([], [], [])
    groups: dict[SliceGroup, Sequence[Obj]] = dict(desired)
    for family in service.families:
        if not any(group.family == family for group in groups):
            # A Service without endpoints has one empty slice.
            groups[_empty_group(family, by_group)] = ()
    for group, slices in by_group.items():
        if group not in groups:
            result.delete.extend(slices)
    for group, endpoints in groups.items():
        _fill_slices(service, group, endpoints, by_group.get(group, []), result)
    return result


def _empty_group(family: str, by_group: Mapping[SliceGroup, Sequence[Obj]]) -> SliceGroup:
    return next((group for group in by_group if group.family == family), SliceGroup(family, ()))


def _fill_slices(
    service: Service, group: SliceGroup, desired: Sequence[Obj], slices: Sequence[Obj], result: SliceWrites
) -> None:
    missing = {_identity(endpoint): endpoint for endpoint in desired}
    kept: list[tuple[Obj, list[Obj], bool]] = []
    for slice_ in slices:
        before = slice_.get("endpoints") or []
        after = [missing.pop(_identity(one)) for one in before if _identity(one) in missing]
        kept.append((slice_, after, after != before or not _has_labels(service, slice_)))
    new = list(missing.values())
    for slice_, endpoints, is_changed in sorted(kept, key=lambda one: (not one[2], len(one[1]))):
        free = MAX_ENDPOINTS - len(endpoints)
        more, new = new[:free], new[free:]
        if more or is_changed:
            _write(service, slice_, endpoints + more, len(kept) > 1 or bool(desired), result)
    if not kept and not new:
        result.create.append(_slice(service, group, []))
    for start in range(0, len(new), MAX_ENDPOINTS):
        result.create.append(_slice(service, group, new[start : start + MAX_ENDPOINTS]))


def _write(service: Service, slice_: Obj, endpoints: list[Obj], may_delete: bool, result: SliceWrites) -> None:
    if not endpoints and may_delete:
        result.delete.append(slice_)
        return
    slice_["endpoints"] = endpoints
    slice_["metadata"]["labels"] = _labels(service)
    result.update.append(slice_)


def _slice(service: Service, group: SliceGroup, endpoints: list[Obj]) -> Obj:
    meta = service.metadata
    owner = controlled_by(SERVICES, meta.name, meta.uid)
    return {
        "metadata": {
            "generateName": f"{meta.name}-",
            "namespace": meta.namespace,
            "labels": _labels(service),
            "ownerReferences": [owner],
        },
        "addressType": group.family,
        "endpoints": endpoints,
        "ports": [port_obj(*port) for port in group.ports],
    }


def port_obj(name: str, number: int, protocol: str, app_protocol: str = "") -> Obj:
    found: Obj = {"name": name, "port": number, "protocol": protocol}
    return found | ({"appProtocol": app_protocol} if app_protocol else {})


def _labels(service: Service) -> dict[str, str]:
    labels = {key: value for key, value in service.metadata.labels.items() if key != HEADLESS}
    if service.is_headless:
        labels[HEADLESS] = ""
    return labels | {SERVICE_NAME: service.metadata.name, MANAGED_BY: CONTROLLER}


def _has_labels(service: Service, slice_: Obj) -> bool:
    return bool(slice_["metadata"].get("labels") == _labels(service))


def _group_of(slice_: Obj) -> SliceGroup:
    ports = tuple(
        (port.get("name", ""), port.get("port", 0), port.get("protocol", "TCP"), port.get("appProtocol", ""))
        for port in slice_.get("ports") or ()
    )
    return SliceGroup(slice_["addressType"], ports)


def _identity(endpoint: Obj) -> tuple[str, ...]:
    return (endpoint.get("targetRef", {}).get("uid", ""), *sorted(endpoint.get("addresses") or ()))
