"""Connects to the servers of triggers. One check decides about every address, at the moment of the connection.

A name is resolved here, its addresses are checked, and the connection goes to the checked address, so that a name which
leads elsewhere a moment later changes nothing.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
import struct
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from shoal.autoscale.scaled_objects.trigger_addresses import AddressRefusedError, TriggerAddresses
from shoal.autoscale.scaled_objects.trigger_sources import ServerTls
from shoal.controllers.scaled_objects.sources.scram import ScramError
from shoal.units.errors import TemporaryError

_LONGEST_LINE = 64 * 1024
_CLOSING_S = 0.5
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Connections:
    def __init__(self, addresses: TriggerAddresses) -> None:
        self.addresses = addresses

    async def resolved(self, host: str, port: int) -> str:
        """The first address of a host. Raises OSError, AddressRefusedError if any of its addresses is refused."""
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
        numbers = [str(one[4][0]) for one in found]
        for one in numbers:
            self.addresses.check(one)
        if not numbers:
            raise OSError(f"the name {host} has no address")
        return numbers[0]

    @asynccontextmanager
    async def opened(self, host: str, port: int, tls: ServerTls | None) -> AsyncIterator[Streams]:
        """Raises OSError, ValueError if a certificate cannot be read."""
        address = await self.resolved(host, port)
        context = ssl_context(tls) if tls is not None else None
        reader, writer = await asyncio.open_connection(
            address, port, ssl=context, server_hostname=host if context is not None else None, limit=_LONGEST_LINE
        )
        try:
            yield reader, writer
        finally:
            writer.close()
            try:
                # A server that does not end its side of an encrypted connection must not spoil the answer.
                async with asyncio.timeout(_CLOSING_S):
                    await writer.wait_closed()
            except (OSError, TimeoutError):
                writer.transport.abort()


@asynccontextmanager
async def asking(server: str, timeout_s: float) -> AsyncIterator[None]:
    """Turns what goes wrong into a TemporaryError that names the server. `server`: without credentials."""
    try:
        async with asyncio.timeout(timeout_s):
            yield
    except TimeoutError:
        raise failed(server, f"it did not answer in {timeout_s:g} s") from None
    except (BadCertificateError, ScramError) as error:
        raise failed(server, str(error)) from None
    except (OSError, ValueError, EOFError, IndexError, struct.error, asyncio.LimitOverrunError) as error:
        raise failed(server, reason_of(error)) from None


def failed(server: str, words: str) -> TemporaryError:
    return TemporaryError(f"{server} cannot be asked: {words}", 1.0)


def reason_of(error: Exception) -> str:
    """Texts of other errors may contain a part of what was sent or received."""
    if isinstance(error, AddressRefusedError):
        return str(error)
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not accepted: {error.verify_message}"
    if isinstance(error, socket.gaierror):
        return "its name cannot be resolved"
    if isinstance(error, asyncio.IncompleteReadError):
        return "it closed the connection"
    if isinstance(error, OSError) and error.errno and not isinstance(error, ssl.SSLError):
        return os.strerror(error.errno).lower()
    return type(error).__name__


def ssl_context(tls: ServerTls) -> ssl.SSLContext:
    """Raises ValueError if a certificate or a key cannot be read."""
    try:
        context = ssl.create_default_context(cadata=tls.ca or None)
        if tls.is_unsafe:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if tls.cert:
            _load(context, tls)
    except (ssl.SSLError, ValueError):
        raise BadCertificateError("a certificate or a key of the authentication cannot be read") from None
    return context


def _load(context: ssl.SSLContext, tls: ServerTls) -> None:
    """The ssl module reads client certificates from files only."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "client.pem"
        path.write_text(f"{tls.cert}\n{tls.key}\n")
        # As a function: without a password, the module would ask the terminal for it.
        context.load_cert_chain(path, password=lambda: tls.key_password)


class BadCertificateError(ValueError):
    """A certificate or a key of the authentication cannot be read."""
