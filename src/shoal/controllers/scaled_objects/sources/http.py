"""Asks HTTP servers for the values of triggers. Answers are bounded in size and time.

The users of a namespace choose the addresses. Guarantees: an error text contains no credentials and nothing of an
answer; credentials are sent to no other server than the named one; every address is checked when it is connected to.
"""

from __future__ import annotations

import base64
import socket
from urllib.parse import urlsplit

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

from shoal.autoscale.scaled_objects.trigger_addresses import AddressRefusedError, TriggerAddresses
from shoal.autoscale.scaled_objects.trigger_sources import HttpRequest
from shoal.units.errors import TemporaryError

_LONGEST = 4 << 20
"""Bytes of an answer."""


class HttpSource:
    """One session for all triggers; must be closed with `close`."""

    def __init__(self, addresses: TriggerAddresses | None = None) -> None:
        """`addresses`: that may be asked besides those of other machines."""
        self.addresses = addresses or TriggerAddresses()
        self._session: aiohttp.ClientSession | None = None

    async def get(self, asked: HttpRequest) -> bytes:
        """Raises TemporaryError, which names the address and never the credentials."""
        if self._session is None:
            connector = aiohttp.TCPConnector(resolver=_CheckedResolver(self.addresses))
            # Cookies would be shared by all namespaces.
            self._session = aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar())
        headers = dict(asked.headers)
        if asked.username:
            credentials = base64.b64encode(f"{asked.username}:{asked.password}".encode()).decode()
            headers["Authorization"] = f"Basic {credentials}"
        address = "the address of the trigger"
        try:
            address = _address(asked.url)
            # A host that is written as an address is not resolved.
            self.addresses.check(urlsplit(asked.url).hostname or "")
            async with self._session.request(
                "GET" if asked.body is None else "POST",
                asked.url,
                data=asked.body,
                params=dict(asked.query),
                headers=headers,
                timeout=aiohttp.ClientTimeout(total=asked.timeout_s),
                ssl=not asked.is_unsafe,
                allow_redirects=False,
            ) as answer:
                if not 200 <= answer.status < 300:
                    more = "; redirects are not followed" if 300 <= answer.status < 400 else ""
                    raise TemporaryError(f"{address} answered with the status code {answer.status}{more}", 1.0)
                body = bytearray()
                async for piece in answer.content.iter_any():
                    body += piece
                    if len(body) > _LONGEST:
                        raise TemporaryError(f"the answer of {address} is longer than {_LONGEST >> 20} MiB", 1.0)
                return bytes(body)
        except TimeoutError:
            raise TemporaryError(f"{address} did not answer in {asked.timeout_s:g} s", 1.0) from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise TemporaryError(f"{address} cannot be asked: {_reason(error)}", 1.0) from None

    async def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()


class _CheckedResolver(AbstractResolver):
    """Checks what a name leads to at the moment of the connection."""

    def __init__(self, addresses: TriggerAddresses) -> None:
        self._addresses = addresses
        self._resolver = aiohttp.ThreadedResolver()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        found = await self._resolver.resolve(host, port, family)
        for one in found:
            self._addresses.check(one["host"])
        return found

    async def close(self) -> None:
        await self._resolver.close()


def _address(url: str) -> str:
    """Without the user, the password and the query."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def _reason(error: Exception) -> str:
    """Texts of other errors may contain the address with its query, headers or a part of the answer."""
    if isinstance(error, aiohttp.ClientConnectorError):
        cause = error.os_error
        return str(cause) if isinstance(cause, AddressRefusedError) else f"{type(error).__name__}: {error}"
    return str(error) if isinstance(error, AddressRefusedError) else type(error).__name__
