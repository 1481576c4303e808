"""Binds the socket of the API server, and tells before a start whether a port is free. Imports no server, so that the
check takes no time.
"""

from __future__ import annotations

import socket

from shoal.units.errors import UserError


def bind(host: str, port: int, option: str = "--port") -> socket.socket:
    """Raises UserError if the port is in use. `option`: the one that chooses the port."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
    except OSError as error:
        bound.close()
        raise UserError(
            f"cannot listen on {host}:{port}: {error.strerror or error}",
            fix=f"choose another port with {option}, or {option} 0 for any free one",
        ) from None
    return bound


def check_port(host: str, port: int, option: str) -> None:
    """Raises UserError if the port is in use now."""
    bind(host, port, option).close()
