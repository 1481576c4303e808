"""EndpointSlices."""

from __future__ import annotations

from shoal.embedded.apiserver.field_errors import FieldError, bad_value, duplicate, not_supported, required, too_many
from shoal.embedded.apiserver.kinds.addresses import PROTOCOLS, check_address, check_ordinary_address, family
from shoal.embedded.apiserver.kinds.complaints import Errors, Obj, add_faults
from shoal.embedded.apiserver.kinds.labels import check_labels
from shoal.embedded.apiserver.kinds.spellings import dns_label_faults, label_key_faults, subdomain_faults
from shoal.embedded.apiserver.strategy import Strategy

_TYPES = ("FQDN", "IPv4", "IPv6")
_MOST_ENDPOINTS, _MOST_ADDRESSES, _MOST_PORTS, _MOST_ZONES = 1000, 100, 20_000, 8


class EndpointSliceStrategy(Strategy):
    counts_generation = True

    immutable_fields = ("addressType",)

    def default(self, obj: Obj) -> None:
        for port in obj.get("ports") or ():
            port.setdefault("name", "")
            port.setdefault("protocol", "TCP")
        if obj.get("endpoints") is None:
            obj["endpoints"] = []
        for endpoint in obj["endpoints"]:
            endpoint.setdefault("conditions", {})

    def generation_changed(self, new: Obj, old: Obj) -> bool:
        """Labels say which Service a slice is of, so they count as well."""
        labels, before = new["metadata"].get("labels") or {}, old["metadata"].get("labels") or {}
        return labels != before or super().generation_changed(new, old)

    def validate(self, obj: Obj) -> list[FieldError]:
        errors: Errors = []
        kind = obj.get("addressType", "")
        if not kind:
            errors.append(required("addressType"))
        elif kind not in _TYPES:
            errors.append(not_supported("addressType", kind, _TYPES))
        endpoints = obj.get("endpoints") or []
        if len(endpoints) > _MOST_ENDPOINTS:
            errors.append(too_many("endpoints", len(endpoints), _MOST_ENDPOINTS))
        else:
            for place, endpoint in enumerate(endpoints):
                _check_endpoint(endpoint, kind, f"endpoints[{place}]", errors)
        _check_ports(obj.get("ports") or [], errors)
        return errors


def _check_endpoint(endpoint: Obj, kind: str, path: str, errors: Errors) -> None:
    addresses = endpoint.get("addresses") or []
    if not addresses:
        errors.append(required(f"{path}.addresses", "must contain at least 1 address"))
    elif len(addresses) > _MOST_ADDRESSES:
        errors.append(too_many(f"{path}.addresses", len(addresses), _MOST_ADDRESSES))
    for place, one in enumerate(addresses):
        _check_one(one, kind, f"{path}.addresses[{place}]", errors)
    if (node := endpoint.get("nodeName")) is not None:
        add_faults(errors, f"{path}.nodeName", node, subdomain_faults(node))
    check_labels(endpoint.get("deprecatedTopology") or {}, f"{path}.deprecatedTopology", errors)
    if (name := endpoint.get("hostname")) is not None:
        add_faults(errors, f"{path}.hostname", name, dns_label_faults(name))
    hints = endpoint.get("hints") or {}
    for key, what in (("forZones", "name"), ("forNodes", "name")):
        _check_hints(hints.get(key) or [], what, f"{path}.hints.{key}", errors)
    for place, one in enumerate(hints.get("forNodes") or ()):
        add_faults(
            errors, f"{path}.hints.forNodes[{place}].name", one.get("name", ""), subdomain_faults(one.get("name", ""))
        )


def _check_one(one: str, kind: str, path: str, errors: Errors) -> None:
    if kind in ("IPv4", "IPv6"):
        if check_address(one, path, errors):
            check_ordinary_address(one, path, errors)
            if family(one) != kind:
                errors.append(bad_value(path, one, f"must be an {kind} address"))
    elif kind == "FQDN":
        add_faults(errors, path, one, subdomain_faults(one.removesuffix(".")))
        if "." not in one.removesuffix("."):
            errors.append(bad_value(path, one, "should be a domain with at least two segments separated by dots"))


def _check_hints(hints: list[Obj], what: str, path: str, errors: Errors) -> None:
    if len(hints) > _MOST_ZONES:
        errors.append(too_many(path, len(hints), _MOST_ZONES))
        return
    names = [one.get(what, "") for one in hints]
    for place, name in enumerate(names):
        if name in names[:place]:
            errors.append(duplicate(f"{path}[{place}].{what}", name))
        add_faults(errors, f"{path}[{place}].{what}", name, label_key_faults(name))


def _check_ports(ports: list[Obj], errors: Errors) -> None:
    if len(ports) > _MOST_PORTS:
        errors.append(too_many("ports", len(ports), _MOST_PORTS))
        return
    names: set[str] = set()
    for place, port in enumerate(ports):
        path, name, protocol = f"ports[{place}]", port.get("name", ""), port.get("protocol")
        if name:
            add_faults(errors, f"{path}.name", name, dns_label_faults(name))
        if name in names:
            errors.append(duplicate(f"{path}.name", name))
        names.add(name)
        if protocol is None:
            errors.append(required(f"{path}.protocol"))
        elif protocol not in PROTOCOLS:
            errors.append(not_supported(f"{path}.protocol", protocol, PROTOCOLS))
        if (wire := port.get("appProtocol")) is not None:
            add_faults(errors, f"{path}.appProtocol", wire, label_key_faults(wire))
