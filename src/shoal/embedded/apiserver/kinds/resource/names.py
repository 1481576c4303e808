"""Checks names of devices, drivers, pools and their attributes."""

from __future__ import annotations

import re

from shoal.embedded.apiserver.field_errors import bad_value, required, too_long
from shoal.embedded.apiserver.kinds.complaints import Errors, add_faults
from shoal.embedded.apiserver.kinds.core.volumes import check_driver_name
from shoal.embedded.apiserver.kinds.spellings import dns_label_faults, identifier_faults, subdomain_faults

_LONGEST_POOL = 253
_LONGEST_IDENTIFIER = 32
_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def check_label(name: str, path: str, errors: Errors) -> None:
    """Of requests, devices and counters."""
    add_faults(errors, path, name, dns_label_faults(name))


def check_driver(name: str, path: str, errors: Errors) -> None:
    """Of drivers of devices; an empty name has one fault only."""
    if name:
        check_driver_name(name, path, errors)
    else:
        errors.append(required(path))


def check_class_name(name: str, path: str, errors: Errors) -> None:
    if not name:
        errors.append(required(path))
    else:
        add_faults(errors, path, name, subdomain_faults(name))


def check_pool(name: str, path: str, errors: Errors) -> None:
    if not name:
        errors.append(required(path))
        return
    if len(name.encode()) > _LONGEST_POOL:
        errors.append(too_long(path, _LONGEST_POOL))
    for part in name.split("/"):
        add_faults(errors, path, part, subdomain_faults(part))


def check_uid(uid: str, path: str, errors: Errors) -> None:
    if not _UID.fullmatch(uid):
        words = (
            "uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with lowercase "
            "hexadecimal characters"
        )
        errors.append(bad_value(path, uid, words))


def check_qualified(name: str, path: str, errors: Errors, *, fully: bool = False) -> None:
    """Of attributes and capacities: `domain/identifier`, the domain being the driver's where it is left out."""
    domain, slash, identifier = name.partition("/")
    if "/" in identifier:
        errors.append(bad_value(path, name, "must not contain more than one slash"))
        return
    if not slash:
        _check_identifier(name, path, errors)
        if fully:
            words = "a fully qualified name must be a domain and a name separated by a slash"
            errors.append(bad_value(path, name, words))
        return
    if domain:
        check_driver_name(domain, path, errors)
    else:
        errors.append(bad_value(path, "", "the domain must not be empty"))
    if identifier:
        _check_identifier(identifier, path, errors)
    else:
        errors.append(bad_value(path, "", "the name must not be empty"))


def _check_identifier(name: str, path: str, errors: Errors) -> None:
    if len(name.encode()) > _LONGEST_IDENTIFIER:
        errors.append(too_long(path, _LONGEST_IDENTIFIER))
    add_faults(errors, path, name, identifier_faults(name))
