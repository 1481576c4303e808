"""Finds what of a page has changed since it was sent, and sends it: parts, and single tiles of nodes."""

from __future__ import annotations

import asyncio

import msgspec
from aiohttp import web

from shoal.client.connection_timeouts import cut_off
from shoal.web.markup import Markup
from shoal.web.page import WebPage, digest, groups_markup

_READING_S = 30.0


class LiveStream:
    """Events for one browser. A connection whose client does not read them is closed, so that its place gets free."""

    def __init__(
        self, request: web.BaseRequest, response: web.StreamResponse, *, reading_s: float = _READING_S
    ) -> None:
        self._request, self._response, self._reading_s = request, response, reading_s

    async def write(self, event: bytes) -> None:
        """Raises ConnectionError where the client is gone."""
        alarm = asyncio.get_running_loop().call_later(self._reading_s, cut_off, self._request.transport)
        try:
            await self._response.write(event)
        finally:
            alarm.cancel()


class SentPage:
    """What one browser has of its page."""

    def __init__(self) -> None:
        self._parts: dict[str, Markup] = {}
        self._tiles: dict[str, Markup] = {}
        self._order: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def message(self, page: WebPage, has: str = "") -> bytes:
        """The markup that the browser replaces, by id; empty if nothing has changed. `has`: the digest of the page that
        a browser has which has just connected; if it is another one, everything is sent."""
        parts: dict[str, str] = {key: new for key, new in page.parts.items() if self._parts.get(key) != new}
        order = tuple((group.title, tuple(group.tiles)) for group in page.groups)
        tiles = {key: tile for group in page.groups for key, tile in group.tiles.items()}
        changed: dict[str, str] = {}
        if order != self._order:
            parts["tiles"] = groups_markup(page.groups)
        else:
            # Tiles that have not changed are the same objects.
            known = self._tiles
            changed = {key: new for key, new in tiles.items() if known[key] is not new and known[key] != new}
        self._parts, self._tiles, self._order = dict(page.parts), tiles, order
        if has and has == digest(page):
            return b""
        if not parts and not changed:
            return b""
        # msgspec encodes no subclass of str.
        plain = {key: str(markup) for key, markup in changed.items()}
        return msgspec.json.encode({"parts": {key: str(markup) for key, markup in parts.items()}, "tiles": plain})
