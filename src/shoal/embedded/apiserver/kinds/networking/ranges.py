"""The address ranges of Services, and the Service of each address."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_network
from typing import Any

from shoal.embedded.apiserver.field_errors import IMMUTABLE, FieldError, bad_value, required
from shoal.embedded.apiserver.kinds.addresses import range_faults
from shoal.embedded.apiserver.kinds.complaints import Errors, Obj, add_faults
from shoal.embedded.apiserver.kinds.spellings import address_faults, path_segment_faults, subdomain_faults
from shoal.embedded.apiserver.strategy import Strategy

_PATH = "spec.cidrs"


class IPAddressStrategy(Strategy):
    counts_generation = False

    immutable_fields = ("spec.parentRef",)

    def default(self, obj: Obj) -> None:
        obj.setdefault("spec", {})

    def validate(self, obj: Obj) -> list[FieldError]:
        errors: Errors = []
        path, parent = "spec.parentRef", obj["spec"].get("parentRef")
        if parent is None:
            errors.append(required(path))
            return errors
        if group := parent.get("group"):
            add_faults(errors, f"{path}.group", group, subdomain_faults(group))
        for key in ("resource", "name"):
            if value := parent.get(key):
                add_faults(errors, f"{path}.{key}", value, path_segment_faults(value))
            else:
                errors.append(required(f"{path}.{key}"))
        if namespace := parent.get("namespace"):
            add_faults(errors, f"{path}.namespace", namespace, path_segment_faults(namespace))
        return errors

    def name_fault(self, name: str, is_prefix: bool) -> str:  # noqa: ARG002 - an address has no prefix
        return next(iter(address_faults(name)), "")


class ServiceRangeStrategy(Strategy):
    has_status = True
    counts_generation = False

    initial_status: Mapping[str, Any] = {}

    def default(self, obj: Obj) -> None:
        obj.setdefault("spec", {})
        obj.setdefault("status", {})

    def validate(self, obj: Obj) -> list[FieldError]:
        errors: Errors = []
        ranges = obj["spec"].get("cidrs") or []
        if not ranges:
            errors.append(required(_PATH, "at least one CIDR required"))
            return errors
        if len(ranges) > 2:
            errors.append(bad_value(_PATH, obj["spec"], "may only hold up to 2 values"))
            return errors
        for place, one in enumerate(ranges):
            add_faults(errors, f"{_PATH}[{place}]", one, _strict_faults(one))
        if len(ranges) == 2 and not errors and len({ip_network(one).version for one in ranges}) == 1:
            words = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64"
            errors.append(bad_value(_PATH, ranges, words))
        return errors

    def validate_update(self, new: Obj, old: Obj) -> list[FieldError]:
        errors: Errors = []
        ranges, before = new["spec"].get("cidrs") or [], old["spec"].get("cidrs") or []
        if len(ranges) == len(before) or (len(before), len(ranges)) == (1, 2):
            for place, (one, was) in enumerate(zip(ranges, before, strict=False)):
                if one != was:
                    errors.append(bad_value(f"{_PATH}[{place}]", one, IMMUTABLE))
            return errors + (self.validate(new) if len(ranges) > len(before) else [])
        errors.append(bad_value(_PATH, ranges, IMMUTABLE))
        return errors


def _strict_faults(text: str) -> tuple[str, ...]:
    if faults := range_faults(text):
        return faults
    proper = ip_network(text, strict=False)
    ip = text.partition("/")[0]
    if str(proper.network_address) != ip:
        words = f'must not have bits set beyond the prefix length, expected "{proper}"'
        return (words,)
    return ()
