"""NetworkPolicies."""

from __future__ import annotations

from ipaddress import ip_network

from shoal.embedded.apiserver.field_errors import FieldError, bad_value, not_allowed, not_supported, required
from shoal.embedded.apiserver.kinds.addresses import check_port_number, range_faults
from shoal.embedded.apiserver.kinds.complaints import Errors, Obj, add_faults
from shoal.embedded.apiserver.kinds.labels import check_selector
from shoal.embedded.apiserver.kinds.spellings import port_name_faults
from shoal.embedded.apiserver.strategy import Strategy

_PROTOCOLS = ("TCP", "UDP", "SCTP")
_TYPES = ("Ingress", "Egress")


class NetworkPolicyStrategy(Strategy):
    counts_generation = True

    def default(self, obj: Obj) -> None:
        spec = obj.setdefault("spec", {})
        spec.setdefault("podSelector", {})
        if not spec.get("policyTypes"):
            spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]
        for direction in ("ingress", "egress"):
            for rule in spec.get(direction) or ():
                for port in rule.get("ports") or ():
                    port.setdefault("protocol", "TCP")

    def validate(self, obj: Obj) -> list[FieldError]:
        errors: Errors = []
        spec = obj["spec"]
        check_selector(spec.get("podSelector"), "spec.podSelector", errors)
        for direction, other in (("ingress", "from"), ("egress", "to")):
            for place, rule in enumerate(spec.get(direction) or ()):
                path = f"spec.{direction}[{place}]"
                for position, port in enumerate(rule.get("ports") or ()):
                    _check_port(port, f"{path}.ports[{position}]", errors)
                for position, peer in enumerate(rule.get(other) or ()):
                    _check_peer(peer, f"{path}.{other}[{position}]", errors)
        types = spec.get("policyTypes") or []
        if len(types) > len(_TYPES):
            errors.append(bad_value("spec.policyTypes", types, "may not specify more than two policyTypes"))
            return errors
        for place, one in enumerate(types):
            if one not in _TYPES:
                errors.append(not_supported(f"spec.policyTypes[{place}]", one, _TYPES))
        return errors


def _check_port(port: Obj, path: str, errors: Errors) -> None:
    protocol, number, last = port.get("protocol"), port.get("port"), port.get("endPort")
    if protocol is not None and protocol not in _PROTOCOLS:
        errors.append(not_supported(f"{path}.protocol", protocol, _PROTOCOLS))
    if number is None or isinstance(number, str):
        if last is not None:
            what = "not specified" if number is None else "non-numeric"
            errors.append(bad_value(f"{path}.endPort", last, f"may not be specified when `port` is {what}"))
        if number is not None:
            add_faults(errors, f"{path}.port", number, port_name_faults(number))
        return
    check_port_number(number, f"{path}.port", errors)
    if last is not None:
        if last < number:
            errors.append(bad_value(f"{path}.endPort", number, "must be greater than or equal to `port`"))
        check_port_number(last, f"{path}.endPort", errors)


def _check_peer(peer: Obj, path: str, errors: Errors) -> None:
    given = [key for key in ("podSelector", "namespaceSelector", "ipBlock") if peer.get(key) is not None]
    for key in given:
        if key == "ipBlock":
            _check_block(peer[key], f"{path}.{key}", errors)
        else:
            check_selector(peer[key], f"{path}.{key}", errors)
    if not given:
        errors.append(required(path, "must specify a peer"))
    elif len(given) > 1 and "ipBlock" in given:
        errors.append(not_allowed(path, "may not specify both ipBlock and another peer"))


def _check_block(block: Obj, path: str, errors: Errors) -> None:
    whole = block.get("cidr", "")
    if not whole:
        errors.append(required(f"{path}.cidr"))
        return
    faults = range_faults(whole)
    add_faults(errors, f"{path}.cidr", whole, faults)
    if faults:
        return
    around = ip_network(whole, strict=False)
    for place, one in enumerate(block.get("except") or ()):
        here = f"{path}.except[{place}]"
        if faults := range_faults(one):
            add_faults(errors, here, one, faults)
            continue
        inner = ip_network(one, strict=False)
        is_inside = inner.version == around.version and inner.network_address in around
        if not is_inside or around.prefixlen >= inner.prefixlen:
            errors.append(bad_value(here, one, "must be a strict subset of `cidr`"))
