"""Checks IP addresses, ranges and ports, with Kubernetes' messages."""

from __future__ import annotations

from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Any

from shoal.embedded.apiserver.field_errors import bad_value, not_supported, required
from shoal.embedded.apiserver.kinds.complaints import Errors, add_faults, add_out_of_range
from shoal.embedded.apiserver.kinds.spellings import address_faults, port_name_faults

PROTOCOLS = ("SCTP", "TCP", "UDP")
_RANGE_WORDS = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
_SPECIAL = (
    ("is_loopback", "may not be in the loopback range (127.0.0.0/8, ::1/128)"),
    ("is_link_local", "may not be in the link-local range (169.254.0.0/16, fe80::/10)"),
)


@lru_cache(maxsize=4096)
def address(text: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(text)
    except ValueError:
        return None


def family(text: str) -> str:
    """`IPv4`, `IPv6`, or nothing for what is no address."""
    found = address(text)
    return f"IPv{found.version}" if found is not None else ""


def check_address(text: str, path: str, errors: Errors) -> bool:
    faults = address_faults(text)
    add_faults(errors, path, text, faults)
    return not faults


def check_ordinary_address(text: str, path: str, errors: Errors) -> None:
    """Faults of a destination address: not loopback, not multicast."""
    found = address(text)
    if found is None:
        return
    if found.is_unspecified:
        errors.append(bad_value(path, text, f"may not be unspecified ({text})"))
    errors.extend(bad_value(path, text, words) for key, words in _SPECIAL if getattr(found, key))
    if found.is_multicast and (found in ip_network("224.0.0.0/24") or found in ip_network("ff02::/16")):
        words = "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"
        errors.append(bad_value(path, text, words))


@lru_cache(maxsize=1024)
def range_faults(text: str) -> tuple[str, ...]:
    """Of a range of addresses. Host bits may be set, as in all older fields."""
    try:
        ip_network(text, strict=False)
    except ValueError:
        return (_RANGE_WORDS,)
    return () if "/" in text else (_RANGE_WORDS,)


def check_port_number(number: int, path: str, errors: Errors) -> None:
    add_out_of_range(errors, path, number, 1, 65535)


def check_port_or_name(port: Any, path: str, errors: Errors) -> None:
    if isinstance(port, str):
        add_faults(errors, path, port, port_name_faults(port))
    else:
        check_port_number(port, path, errors)


def check_protocol(protocol: str | None, path: str, errors: Errors) -> None:
    if not protocol:
        errors.append(required(path))
    elif protocol not in PROTOCOLS:
        errors.append(not_supported(path, protocol, PROTOCOLS))
