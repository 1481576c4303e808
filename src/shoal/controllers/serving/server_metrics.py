"""Reads the metrics of model servers, and of what counts the requests in front of them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from shoal.autoscale.serving.server_load import ServerLoad, server_load
from shoal.prometheus.samples import MetricLine, samples_of
from shoal.units.errors import TemporaryError

Fetch = Callable[[str], Awaitable[bytes]]
"""The body behind a URL. Raises TemporaryError."""


class ServerMetrics:
    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch

    async def load(self, address: str, port: int, path: str) -> ServerLoad | None:
        """`None`: the server does not answer, or its metrics are not those of a known model server."""
        host = f"[{address}]" if ":" in address else address
        lines = await self._lines(f"http://{host}:{port}{path}")
        return None if lines is None else server_load(lines)

    async def total(self, url: str, metric: str) -> float | None:
        """The sum of the series of a metric; `None`: it cannot be read."""
        lines = await self._lines(url)
        found = [one.value for one in lines or () if one.name == metric]
        return sum(found) if found else None

    async def _lines(self, url: str) -> list[MetricLine] | None:
        try:
            body = await self._fetch(url)
        except TemporaryError:
            return None
        return list(samples_of(body.decode(errors="replace")))
