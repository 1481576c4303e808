"""Finds what of a page has changed since it was sent: parts, and single tiles of nodes."""

from __future__ import annotations

import msgspec

from shoal.web.markup import Markup
from shoal.web.page import WebPage, digest, groups_markup


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
