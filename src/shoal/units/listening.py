"""Addresses to listen on, as users write them. An empty one would mean every address of the machine to the system, and
comes from a variable that is not set; who wants every address says so."""

from __future__ import annotations

from shoal.units.errors import UserError, Where, excerpt

_LONGEST = 253
LOOPBACK_HOSTS = frozenset({"127.0.0.1", "localhost", "::1"})
"""Only this machine reaches these."""


def check_listening(host: str, where: Where) -> None:
    """UserError for a text that is neither an address nor a host name."""
    if not host.strip():
        fix = "name an address, as in 127.0.0.1, or 0.0.0.0 for every address of this machine"
        raise UserError("names no address to listen on", where=where, fix=fix)
    if not host.isascii() or not host.isprintable() or len(host) > _LONGEST:
        raise UserError(f"{excerpt(host)} is neither an address nor a host name", where=where)
