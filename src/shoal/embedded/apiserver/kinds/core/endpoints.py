"""Endpoints, the older form of EndpointSlices."""

from __future__ import annotations

from shoal.embedded.apiserver.field_errors import FieldError, bad_value, required
from shoal.embedded.apiserver.kinds.addresses import (
    address,
    check_address,
    check_ordinary_address,
    check_port_number,
    check_protocol,
)
from shoal.embedded.apiserver.kinds.complaints import Errors, Obj, add_faults
from shoal.embedded.apiserver.kinds.spellings import dns_label_faults, label_key_faults, subdomain_faults
from shoal.embedded.apiserver.strategy import Strategy


class EndpointsStrategy(Strategy):
    counts_generation = False
    creates_on_update = True
    deprecation = "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"

    def default(self, obj: Obj) -> None:
        for subset in obj.get("subsets") or ():
            for port in subset.get("ports") or ():
                port["protocol"] = port.get("protocol") or "TCP"

    def validate(self, obj: Obj) -> list[FieldError]:
        errors: Errors = []
        for place, subset in enumerate(obj.get("subsets") or ()):
            path = f"subsets[{place}]"
            if not subset.get("addresses") and not subset.get("notReadyAddresses"):
                errors.append(required(path, "must specify `addresses` or `notReadyAddresses`"))
            for key in ("addresses", "notReadyAddresses"):
                for position, one in enumerate(subset.get(key) or ()):
                    _check_endpoint(one, f"{path}.{key}[{position}]", errors)
            ports = subset.get("ports") or []
            for position, port in enumerate(ports):
                _check_port(port, len(ports) > 1, f"{path}.ports[{position}]", errors)
        return errors


def _check_endpoint(one: Obj, path: str, errors: Errors) -> None:
    ip = one.get("ip", "")
    check_address(ip, f"{path}.ip", errors)
    if name := one.get("hostname"):
        add_faults(errors, f"{path}.hostname", name, dns_label_faults(name))
    if (node := one.get("nodeName")) is not None:
        add_faults(errors, f"{path}.nodeName", node, subdomain_faults(node))
    if address(ip) is None:
        # The second of two checks has fewer words for it.
        errors.append(bad_value(f"{path}.ip", ip, "must be a valid IP address"))
    check_ordinary_address(ip, f"{path}.ip", errors)


def _check_port(port: Obj, needs_name: bool, path: str, errors: Errors) -> None:
    if name := port.get("name"):
        add_faults(errors, f"{path}.name", name, dns_label_faults(name))
    elif needs_name:
        errors.append(required(f"{path}.name"))
    check_port_number(port.get("port", 0), f"{path}.port", errors)
    check_protocol(port.get("protocol"), f"{path}.protocol", errors)
    if (protocol := port.get("appProtocol")) is not None:
        add_faults(errors, f"{path}.appProtocol", protocol, label_key_faults(protocol))
