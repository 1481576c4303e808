"""Asks HTTP servers for the values of triggers. Answers are bounded in size and time."""

from __future__ import annotations

import base64

import aiohttp

from shoal.autoscale.scaled_objects.triggers import HttpRequest
from shoal.units.errors import TemporaryError

_LONGEST = 4 << 20
"""Bytes of an answer."""


class HttpSource:
    """One session for all triggers; must be closed with `close`."""

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None

    async def get(self, asked: HttpRequest) -> bytes:
        """Raises TemporaryError, which names the address and never the credentials."""
        if self._session is None:
            self._session = aiohttp.ClientSession()
        headers = dict(asked.headers)
        if asked.username:
            credentials = base64.b64encode(f"{asked.username}:{asked.password}".encode()).decode()
            headers["Authorization"] = f"Basic {credentials}"
        try:
            async with self._session.get(
                asked.url,
                params=dict(asked.query),
                headers=headers,
                timeout=aiohttp.ClientTimeout(total=asked.timeout_s),
                ssl=not asked.is_unsafe,
            ) as answer:
                if not 200 <= answer.status < 300:
                    raise TemporaryError(f"{asked.url} answered with the status code {answer.status}", 1.0)
                body = b""
                async for piece in answer.content.iter_any():
                    body += piece
                    if len(body) > _LONGEST:
                        raise TemporaryError(f"the answer of {asked.url} is longer than {_LONGEST >> 20} MiB", 1.0)
                return body
        except TimeoutError:
            raise TemporaryError(f"{asked.url} did not answer in {asked.timeout_s:g} s", 1.0) from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise TemporaryError(f"{asked.url} cannot be asked: {type(error).__name__}: {error}", 1.0) from None

    async def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()
