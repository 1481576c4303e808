"""The rows of what has addresses: services, endpoints, ingresses."""

from __future__ import annotations

from typing import Any

from shoal.embedded.apiserver.tables.phrases import NONE, UNSET, labels, selector, several
from shoal.embedded.apiserver.tables.printer import Obj, Printer, age, heads, name, part

_SHOWN = 3


def _balancer(obj: Obj) -> str:
    found = part(part(obj, "status"), "loadBalancer").get("ingress") or ()
    return ",".join(sorted({one.get("ip") or one.get("hostname") or "" for one in found} - {""}))


def _external(obj: Obj) -> str:
    spec = part(obj, "spec")
    kind, own = spec.get("type", ""), spec.get("externalIPs") or []
    if kind == "ExternalName":
        return str(spec.get("externalName", ""))
    if kind == "LoadBalancer":
        given = _balancer(obj)
        return ",".join([given, *own] if given else own) or "<pending>"
    if kind in ("ClusterIP", "NodePort"):
        return ",".join(own) or NONE
    return "<unknown>"


def _port(one: Obj) -> str:
    outside = f":{one['nodePort']}" if one.get("nodePort") else ""
    return f"{one.get('port', 0)}{outside}/{one.get('protocol', '')}"


def service(obj: Obj, now_s: int) -> list[Any]:
    spec = part(obj, "spec")
    inside = (spec.get("clusterIPs") or [spec.get("clusterIP")])[0] or NONE
    ports = ",".join(map(_port, spec.get("ports") or ())) or NONE
    return [
        name(obj),
        spec.get("type", ""),
        inside,
        _external(obj),
        ports,
        age(obj, now_s),
        labels(spec.get("selector")),
    ]


def _joined(address: str, port: int) -> str:
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def endpoints(obj: Obj, now_s: int) -> list[Any]:
    found: list[str] = []
    for subset in obj.get("subsets") or ():
        addresses = [one.get("ip", "") for one in subset.get("addresses") or ()]
        ports = subset.get("ports")
        if not ports:
            found += addresses
        for port in ports or ():
            found += [_joined(address, port.get("port", 0)) for address in addresses]
    shown = several(found, len(found), _SHOWN) if obj.get("subsets") else NONE
    return [name(obj), shown, age(obj, now_s)]


def endpoint_slice(obj: Obj, now_s: int) -> list[Any]:
    ports = [_slice_port(one) for one in obj.get("ports") or ()]
    addresses = [address for one in obj.get("endpoints") or () for address in one.get("addresses") or ()]
    shown = [several(one, len(one), _SHOWN) or UNSET for one in (ports, addresses)]
    return [name(obj), obj.get("addressType", ""), *shown, age(obj, now_s)]


def _slice_port(one: Obj) -> str:
    if one.get("port") is not None:
        return str(one["port"])
    return "*" if one.get("name") is None else str(one["name"])


def _hosts(rules: list[Obj]) -> str:
    """The first named hosts; a rule after the third named one counts as more, named or not."""
    found: list[str] = []
    is_cut = False
    for rule in rules:
        is_cut = is_cut or len(found) == _SHOWN
        if not is_cut and rule.get("host"):
            found.append(rule["host"])
    text = ",".join(found) or "*"
    return f"{text} + {len(rules) - _SHOWN} more..." if is_cut else text


def ingress(obj: Obj, now_s: int) -> list[Any]:
    spec = part(obj, "spec")
    ports = "80, 443" if spec.get("tls") else "80"
    hosts = _hosts(spec.get("rules") or [])
    return [name(obj), spec.get("ingressClassName") or NONE, hosts, _balancer(obj), ports, age(obj, now_s)]


def ingress_class(obj: Obj, now_s: int) -> list[Any]:
    spec = part(obj, "spec")
    found = spec.get("parameters")
    shown = NONE
    if found:
        group = f".{found['apiGroup']}" if found.get("apiGroup") is not None else ""
        shown = f"{found.get('kind', '')}{group}/{found.get('name', '')}"
    return [name(obj), spec.get("controller", ""), shown, age(obj, now_s)]


def network_policy(obj: Obj, now_s: int) -> list[Any]:
    return [name(obj), selector(part(obj, "spec").get("podSelector")), age(obj, now_s)]


def service_cidr(obj: Obj, now_s: int) -> list[Any]:
    return [name(obj), ",".join(part(obj, "spec").get("cidrs") or ()), age(obj, now_s)]


def address(obj: Obj, _: int) -> list[Any]:
    parent = part(obj, "spec").get("parentRef")
    shown = NONE
    if parent:
        group = f".{parent['group']}" if parent.get("group") else ""
        pieces = [f"{parent.get('resource', '')}{group}".lower(), parent.get("namespace"), parent.get("name", "")]
        shown = "/".join(piece for piece in pieces if piece)
    return [name(obj), shown]


NETWORK: dict[tuple[str, str], Printer] = {
    ("", "endpoints"): Printer(heads("Name", "Endpoints", "Age"), endpoints),
    ("", "services"): Printer(
        heads("Name", "Type", "Cluster-IP", "External-IP", "Port(s)", "Age", "+Selector"), service
    ),
    ("discovery.k8s.io", "endpointslices"): Printer(
        heads("Name", "AddressType", "Ports", "Endpoints", "Age"), endpoint_slice
    ),
    ("networking.k8s.io", "ingressclasses"): Printer(heads("Name", "Controller", "Parameters", "Age"), ingress_class),
    ("networking.k8s.io", "ingresses"): Printer(heads("Name", "Class", "Hosts", "Address", "Ports", "Age"), ingress),
    ("networking.k8s.io", "ipaddresses"): Printer(heads("Name", "ParentRef"), address),
    ("networking.k8s.io", "networkpolicies"): Printer(heads("Name", "Pod-Selector", "Age"), network_policy),
    ("networking.k8s.io", "servicecidrs"): Printer(heads("Name", "CIDRs", "Age"), service_cidr),
}
