"""Builds HTML in which every text is escaped.

Guarantees: a text becomes markup only where it is a `Markup` already, and only `element` and `joined` make those of
texts. So a label or an Event with HTML in it is shown as it is written.

Rejected: a template language. It is one more dependency, and its escaping can be switched off in every template.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from urllib.parse import quote

_EMPTY = frozenset({"br", "input", "link", "meta"})
"""Elements without content."""
_SHAPES = frozenset({"path", "rect"})
"""Of a drawing; HTML closes them only with a slash."""


class Markup(str):
    """HTML that needs no escaping."""

    __slots__ = ()


Child = str | None
Attribute = str | int | float | bool | None


def text(value: str) -> Markup:
    return value if isinstance(value, Markup) else Markup(escape(value))


def element(kind: str, /, *children: Child, **attributes: Attribute) -> Markup:
    """`class_` is written `class` and `aria_label` is written `aria-label`. An attribute that is None or False is left
    out, and one that is True has no value."""
    words = [kind]
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        attribute = key.rstrip("_").replace("_", "-")
        words.append(attribute if value is True else f'{attribute}="{escape(str(value))}"')
    if kind in _SHAPES:
        return Markup(f"<{' '.join(words)}/>")
    opening = f"<{' '.join(words)}>"
    if kind in _EMPTY:
        return Markup(opening)
    return Markup(f"{opening}{joined(children)}</{kind}>")


def joined(children: Iterable[Child], between: str = "") -> Markup:
    return Markup(between.join(text(child) for child in children if child))


def address(*parts: str) -> str:
    """The path of a page, with every part quoted: `/node/p5-0`."""
    return "/" + "/".join(quote(part, safe="") for part in parts)
