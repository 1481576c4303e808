"""IP addresses and networks."""

from __future__ import annotations

import ipaddress
from typing import Any

from shoal.embedded.apiserver.cel.faults import CelFault
from shoal.embedded.apiserver.cel.functions.overload import Table, row
from shoal.embedded.apiserver.cel.values import Opaque


def _address(text: str) -> Any:
    if "%" in text:
        raise CelFault(f'IP Address "{text}" with zone value is not allowed')
    try:
        found = ipaddress.ip_address(text)
    except ValueError:
        raise CelFault(f'IP Address "{text}" parse error during conversion from string: unable to parse IP') from None
    if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped:
        raise CelFault(f'IP Address "{text}" parse error: IPv4-mapped IPv6 address is not allowed')
    return found


def _ip(text: str) -> Opaque:
    return Opaque("ip", _address(text))


def _is_ip(text: str) -> bool:
    try:
        _address(text)
    except CelFault:
        return False
    return True


def _network(text: str) -> Any:
    host, slash, length = text.partition("/")
    if not slash or not length.isdigit():
        raise CelFault(f"network address parse error during conversion from string: invalid CIDR address: {text}")
    address = _address(host)
    try:
        return ipaddress.ip_interface(f"{address}/{length}")
    except ValueError:
        raise CelFault(
            f"network address parse error during conversion from string: invalid CIDR address: {text}"
        ) from None


def _is_cidr(text: str) -> bool:
    try:
        _network(text)
    except CelFault:
        return False
    return True


def _contains_cidr(one: Opaque, other: Opaque | str) -> bool:
    inner = _network(other) if isinstance(other, str) else other.held
    outer = one.held.network
    return bool(outer.version == inner.version and inner.network.subnet_of(outer))


def _contains_ip(one: Opaque, other: Opaque | str) -> bool:
    address = _address(other) if isinstance(other, str) else other.held
    return address in one.held.network


def _is_canonical(text: str) -> bool:
    return str(_address(text)) == text


TABLE: Table = (
    row("ip(string) ip", _ip),
    row("isIP(string) bool", _is_ip),
    row("ip.isCanonical(string) bool", _is_canonical),
    row("ip!family() int", lambda one: one.held.version),
    row("ip!isUnspecified() bool", lambda one: one.held.is_unspecified),
    row("ip!isLoopback() bool", lambda one: one.held.is_loopback),
    row(
        "ip!isLinkLocalMulticast() bool",
        lambda one: (
            one.held in ipaddress.ip_network("224.0.0.0/24")
            if one.held.version == 4
            else one.held in ipaddress.ip_network("ff02::/16")
        ),
    ),
    row("ip!isLinkLocalUnicast() bool", lambda one: one.held.is_link_local),
    row(
        "ip!isGlobalUnicast() bool",
        lambda one: (
            not (
                one.held.is_unspecified
                or one.held.is_loopback
                or one.held.is_multicast
                or one.held.is_link_local
                or str(one.held) == "255.255.255.255"
            )
        ),
    ),
    row("cidr(string) cidr", lambda text: Opaque("cidr", _network(text))),
    row("isCIDR(string) bool", _is_cidr),
    row("cidr!containsIP(ip) bool", _contains_ip),
    row("cidr!containsIP(string) bool", _contains_ip),
    row("cidr!containsCIDR(cidr) bool", _contains_cidr),
    row("cidr!containsCIDR(string) bool", _contains_cidr),
    row("cidr!ip() ip", lambda one: Opaque("ip", one.held.ip)),
    row("cidr!masked() cidr", lambda one: Opaque("cidr", ipaddress.ip_interface(str(one.held.network)))),
    row("cidr!prefixLength() int", lambda one: one.held.network.prefixlen),
)
