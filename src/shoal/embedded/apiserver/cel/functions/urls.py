"""URLs: absolute ones, or absolute paths, as Go's `url.ParseRequestURI` takes them."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from shoal.embedded.apiserver.cel.faults import CelFault
from shoal.embedded.apiserver.cel.functions.overload import Table, row
from shoal.embedded.apiserver.cel.values import Opaque


def _parsed(text: str) -> Any:
    if not text or re.search(r"[\x00-\x20\x7f]", text):
        return None
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError:
        return None
    if not parts.scheme and not text.startswith("/"):
        return None
    if parts.scheme and not parts.netloc and not parts.path.startswith("/"):
        return None
    return parts


def _url(text: str) -> Opaque:
    if _parsed(text) is None:
        raise CelFault(f'URL parse error during conversion from string: parse "{text}": invalid URI for request')
    return Opaque("url", text)


def _host(url: Opaque) -> str:
    return str(_parsed(url.held).netloc.rpartition("@")[2])


def _hostname(url: Opaque) -> str:
    return _host(url).partition("]")[0].lstrip("[") if _host(url).startswith("[") else _host(url).partition(":")[0]


def _query(url: Opaque) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for key, value in parse_qsl(_parsed(url.held).query, keep_blank_values=True):
        found.setdefault(key, []).append(value)
    return found


TABLE: Table = (
    row("url(string) url", _url),
    row("isURL(string) bool", lambda text: _parsed(text) is not None),
    row("url!getScheme() string", lambda url: _parsed(url.held).scheme),
    row("url!getHost() string", _host),
    row("url!getHostname() string", _hostname),
    row("url!getPort() string", lambda url: str(_parsed(url.held).port or "")),
    row("url!getEscapedPath() string", lambda url: quote(unquote(_parsed(url.held).path), safe="/%:@!$&'()*+,;=~")),
    row("url!getQuery() map", _query),
)
