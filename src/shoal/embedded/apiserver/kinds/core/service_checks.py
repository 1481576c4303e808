"""Validates Services and updates of Services."""

from __future__ import annotations

from typing import Any

from shoal.embedded.apiserver.field_errors import bad_value, duplicate, not_allowed, not_supported, required
from shoal.embedded.apiserver.kinds.addresses import (
    address,
    check_address,
    check_ordinary_address,
    check_port_number,
    check_port_or_name,
    check_protocol,
    range_faults,
)
from shoal.embedded.apiserver.kinds.complaints import Errors, Obj, add_faults, add_out_of_range
from shoal.embedded.apiserver.kinds.core.service_families import check_families, check_family_update
from shoal.embedded.apiserver.kinds.labels import check_labels
from shoal.embedded.apiserver.kinds.spellings import dns_label_faults, label_key_faults, subdomain_faults

_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_POLICIES = ("Cluster", "Local")
_DISTRIBUTIONS = ("PreferClose", "PreferSameNode", "PreferSameZone")
_ONLY_BALANCER = "may only be used when `type` is 'LoadBalancer'"
_SOURCES = "service.beta.kubernetes.io/load-balancer-source-ranges"


def check_service(service: Obj, errors: Errors) -> None:
    spec = service["spec"]
    kind, is_headless = spec.get("type", ""), spec.get("clusterIPs") == ["None"]
    ports = spec.get("ports") or []
    if not ports and not is_headless and kind != "ExternalName":
        errors.append(required("spec.ports"))
    if is_headless and kind in ("LoadBalancer", "NodePort"):
        errors.append(bad_value("spec.clusterIPs[0]", "None", f"may not be set to 'None' for {kind} services"))
    if kind == "ExternalName":
        _check_external_name(spec, errors)
    _check_ports(ports, errors)
    check_labels(spec.get("selector") or {}, "spec.selector", errors)
    _check_stickiness(spec, errors)
    check_families(spec, errors)
    for place, one in enumerate(spec.get("externalIPs") or ()):
        if check_address(one, f"spec.externalIPs[{place}]", errors):
            check_ordinary_address(one, f"spec.externalIPs[{place}]", errors)
    if kind not in _TYPES:
        errors.append(not_supported("spec.type", kind, _TYPES))
    _check_repeated_ports(kind, ports, errors)
    _check_balancer(service, errors)
    _check_traffic(spec, errors)


def _check_external_name(spec: Obj, errors: Errors) -> None:
    for key in ("clusterIPs", "ipFamilies", "ipFamilyPolicy"):
        if spec.get(key):
            errors.append(not_allowed(f"spec.{key}", "may not be set for ExternalName services"))
    # A trailing dot says that the name is complete.
    if name := spec.get("externalName", "").removesuffix("."):
        add_faults(errors, "spec.externalName", name, subdomain_faults(name))
    else:
        errors.append(required("spec.externalName"))


def _check_ports(ports: list[Obj], errors: Errors) -> None:
    names: set[str] = set()
    for place, port in enumerate(ports):
        path, name = f"spec.ports[{place}]", port.get("name", "")
        if name:
            add_faults(errors, f"{path}.name", name, dns_label_faults(name))
            if name in names:
                errors.append(duplicate(f"{path}.name", name))
            names.add(name)
        elif len(ports) > 1:
            errors.append(required(f"{path}.name"))
        check_port_number(port.get("port", 0), f"{path}.port", errors)
        check_protocol(port.get("protocol"), f"{path}.protocol", errors)
        check_port_or_name(port.get("targetPort", 0), f"{path}.targetPort", errors)
        if (protocol := port.get("appProtocol")) is not None:
            add_faults(errors, f"{path}.appProtocol", protocol, label_key_faults(protocol))


def _check_stickiness(spec: Obj, errors: Errors) -> None:
    affinity, config = spec.get("sessionAffinity"), spec.get("sessionAffinityConfig")
    if affinity not in ("ClientIP", "None"):
        errors.append(not_supported("spec.sessionAffinity", affinity, ("ClientIP", "None")))
    elif affinity == "ClientIP":
        timeout_s = ((config or {}).get("clientIP") or {}).get("timeoutSeconds")
        path = "spec.sessionAffinityConfig.clientIP.timeoutSeconds"
        if timeout_s is None:
            errors.append(required(path, "when session affinity type is ClientIP"))
        elif not 0 < timeout_s <= 86400:
            errors.append(bad_value(path, timeout_s, "must be greater than 0 and less than 86400"))
    elif config is not None:
        errors.append(not_allowed("spec.sessionAffinityConfig", "must not be set when session affinity is None"))


def _check_repeated_ports(kind: str, ports: list[Obj], errors: Errors) -> None:
    if kind == "ClusterIP":
        for place, port in enumerate(ports):
            if port.get("nodePort"):
                words = "may not be used when `type` is 'ClusterIP'"
                errors.append(not_allowed(f"spec.ports[{place}].nodePort", words))
    seen: set[tuple[str, str, int]] = set()
    for key in ("nodePort", "port"):
        for place, port in enumerate(ports):
            number, protocol = port.get(key, 0), port.get("protocol", "")
            if key == "nodePort" and not number:
                continue
            if (key, protocol, number) in seen:
                path = f"spec.ports[{place}]"
                # Kubernetes shows the whole of what it compares, with the fields it left empty.
                shown: Any = {"protocol": protocol, "port": number, "targetPort": 0}
                errors.append(duplicate(f"{path}.nodePort", number) if key == "nodePort" else duplicate(path, shown))
            seen.add((key, protocol, number))


def _check_balancer(service: Obj, errors: Errors) -> None:
    spec = service["spec"]
    is_balancer = spec.get("type") == "LoadBalancer"
    if ranges := spec.get("loadBalancerSourceRanges"):
        path = "spec.LoadBalancerSourceRanges"
        if not is_balancer:
            errors.append(not_allowed(path, _ONLY_BALANCER))
        for place, one in enumerate(ranges):
            add_faults(errors, f"{path}[{place}]", one.strip(), range_faults(one.strip()))
    elif (written := (service["metadata"].get("annotations") or {}).get(_SOURCES)) is not None:
        path = f"metadata.annotations[{_SOURCES}]"
        if not is_balancer:
            errors.append(not_allowed(path, _ONLY_BALANCER))
        for one in written.split(",") if written.strip() else ():
            add_faults(errors, path, one.strip(), range_faults(one.strip()))
    if spec.get("allocateLoadBalancerNodePorts") is not None and not is_balancer:
        errors.append(not_allowed("spec.allocateLoadBalancerNodePorts", _ONLY_BALANCER))
    if (name := spec.get("loadBalancerClass")) is not None:
        if is_balancer:
            add_faults(errors, "spec.loadBalancerClass", name, label_key_faults(name))
        else:
            errors.append(not_allowed("spec.loadBalancerClass", _ONLY_BALANCER))


def _check_traffic(spec: Obj, errors: Errors) -> None:
    kind, policy = spec.get("type"), spec.get("externalTrafficPolicy", "")
    is_outside = kind in ("LoadBalancer", "NodePort") or (kind == "ClusterIP" and spec.get("externalIPs"))
    if not is_outside:
        if policy:
            words = "may only be set for externally-accessible services"
            errors.append(bad_value("spec.externalTrafficPolicy", policy, words))
    elif policy not in _POLICIES:
        errors.append(not_supported("spec.externalTrafficPolicy", policy, _POLICIES))
    if health := spec.get("healthCheckNodePort", 0):
        if kind == "LoadBalancer" and policy == "Local":
            add_out_of_range(errors, "spec.healthCheckNodePort", health, 1, 65535)
        else:
            words = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
            errors.append(bad_value("spec.healthCheckNodePort", health, words))
    inside = spec.get("internalTrafficPolicy")
    if inside is not None and inside not in _POLICIES:
        errors.append(not_supported("spec.internalTrafficPolicy", inside, _POLICIES))
    if (value := spec.get("trafficDistribution")) is not None and value not in _DISTRIBUTIONS:
        errors.append(not_supported("spec.trafficDistribution", value, _DISTRIBUTIONS))


def check_service_update(new: Obj, old: Obj, errors: Errors) -> None:
    spec, before = new["spec"], old["spec"]
    check_family_update(spec, before, errors)
    if spec.get("type") == before.get("type") == "LoadBalancer":
        name = spec.get("loadBalancerClass")
        if name != before.get("loadBalancerClass"):
            errors.append(bad_value("spec.loadBalancerClass", name, "may not change once set"))
        health = spec.get("healthCheckNodePort", 0)
        is_local = spec.get("externalTrafficPolicy") == before.get("externalTrafficPolicy") == "Local"
        if is_local and health != before.get("healthCheckNodePort", 0):
            errors.append(not_allowed("spec.healthCheckNodePort", "field is immutable"))


def check_status(service: Obj, errors: Errors) -> None:
    listed = ((service.get("status") or {}).get("loadBalancer") or {}).get("ingress") or []
    path = "status.loadBalancer.ingress"
    if listed and service["spec"].get("type") != "LoadBalancer":
        errors.append(not_allowed(path, "may only be used when `spec.type` is 'LoadBalancer'"))
        return
    for place, one in enumerate(listed):
        ip, mode, name = one.get("ip", ""), one.get("ipMode"), one.get("hostname", "")
        here = f"{path}[{place}]"
        if ip:
            check_address(ip, f"{here}.ip", errors)
        if ip and mode is None:
            errors.append(required(f"{here}.ipMode", "must be specified when `ip` is set"))
        elif mode is not None and not ip:
            errors.append(not_allowed(f"{here}.ipMode", "may not be specified when `ip` is not set"))
        elif mode is not None and mode not in ("Proxy", "VIP"):
            errors.append(not_supported(f"{here}.ipMode", mode, ("Proxy", "VIP")))
        check_host(name, f"{here}.hostname", errors)


def check_host(name: str, path: str, errors: Errors) -> None:
    """Of a name that must not be an address."""
    if name:
        add_faults(errors, path, name, subdomain_faults(name))
        if address(name) is not None:
            errors.append(bad_value(path, name, "must be a DNS name, not an IP address"))
