"""A page as parts that are replaced one by one when they change, and the frame of HTML around them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b

import msgspec

from shoal.web.markup import Markup, element, joined
from shoal.web.tables import DataTable

_VIEWS = (
    ("fleet", "/", "Fleet"),
    ("queues", "/queues", "Queues"),
    ("workloads", "/workloads", "Workloads"),
    ("timelines", "/timelines", "Timelines"),
    ("cost", "/cost", "Cost"),
    ("capacity", "/capacity", "Capacity"),
    ("alerts", "/alerts", "Alerts"),
    ("what-if", "/what-if", "What if"),
)
_KEYS = (
    (f"1 to {len(_VIEWS)}", "pages"),
    ("/", "filter"),
    ("arrows", "from node to node"),
    ("c", "next colouring of the fleet"),
    ("t", "light or dark"),
    ("Esc", "remove the filter"),
)


class TileGroup(msgspec.Struct, frozen=True):
    """Tiles of nodes of one kind."""

    title: str
    tiles: Mapping[str, Markup]
    """By the id of the element."""


class WebPage(msgspec.Struct, frozen=True):
    title: str
    path: str
    parts: Mapping[str, Markup]
    """By the id of the element, in order."""
    view: str = ""
    tables: Sequence[DataTable] = ()
    groups: Sequence[TileGroup] = ()
    """Of the page of the fleet."""
    status: int = 200

    def table(self, key: str) -> DataTable | None:
        return next((table for table in self.tables if table.key == key), None)


def digest(page: WebPage) -> str:
    """Equal for pages with equal content."""
    found = blake2b(digest_size=12)
    for markup in (*page.parts.values(), *(tile for group in page.groups for tile in group.tiles.values())):
        found.update(markup.encode())
        found.update(b"\0")
    return found.hexdigest()


class Frame(msgspec.Struct, frozen=True):
    """What all pages of a server have in common."""

    title: str
    can_sign_out: bool = False


def document(page: WebPage, frame: Frame) -> str:
    parts = [element("section", markup, id=key) for key, markup in page.parts.items()]
    if page.groups:
        parts.append(element("section", groups_markup(page.groups), id="tiles", class_="tiles"))
    main = element("main", *parts, id="main", data_live=page.path, data_digest=digest(page), tabindex=-1)
    # The class and the theme of the root are set by the script, from what the user has chosen before.
    return "<!doctype html>\n" + element(
        "html", _head(page, frame), element("body", _header(page, frame), main, _footer(), _hover()), lang="en"
    )


def groups_markup(groups: Sequence[TileGroup]) -> Markup:
    return joined(
        element(
            "div",
            element("h2", group.title, " ", element("span", f"{len(group.tiles):,}", class_="count")),
            element("div", *group.tiles.values(), class_="grid"),
            class_="group",
        )
        for group in groups
    )


def _head(page: WebPage, frame: Frame) -> Markup:
    return element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", f"{page.title} - {frame.title}"),
        element("link", rel="icon", href="/static/shoal.svg", type="image/svg+xml"),
        element("link", rel="stylesheet", href="/static/shoal.css"),
        element("script", src="/static/shoal.js", defer=True),
    )


def _header(page: WebPage, frame: Frame) -> Markup:
    links = [
        element("a", name, href=href, aria_current="page" if view == page.view else None) for view, href, name in _VIEWS
    ]
    filter_ = element(
        "input", id="filter", type="search", placeholder="filter", aria_label="Filter", autocomplete="off"
    )
    out = element("a", "sign out", href="/sign-out") if frame.can_sign_out else None
    return element(
        "header",
        element("a", "Skip to the content", href="#main", class_="skip"),
        element("a", frame.title, href="/", class_="brand"),
        element("nav", *links, id="pages", aria_label="Pages"),
        filter_,
        element("span", "", id="connection", role="status"),
        element("button", "light/dark", type="button", id="theme"),
        out,
    )


def _footer() -> Markup:
    keys = (joined((element("kbd", key), " ", what, "   ")) for key, what in _KEYS)
    return element("footer", *keys)


def _hover() -> Markup:
    return element("div", "", id="hover", role="tooltip", hidden=True)
