"""Where alerts go that Shoal evaluates itself, and whose metrics they read, as users write it.

events                     Events of Kubernetes about the pod, node or queue
alertmanager=URL           Alertmanager's API v2
webhook=URL                the body of Alertmanager's webhooks
none                       nowhere; the alerts are evaluated and can be read
"""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlsplit

import msgspec

from shoal.units.errors import UserError, Where, excerpt

_OPTION, _SOURCES = "--alerts-to", "--alerts-scrape"
_LONGEST = 2048


class AlertTargets(msgspec.Struct, frozen=True):
    has_events: bool = False
    alertmanagers: tuple[str, ...] = ()
    """Addresses without a slash at the end."""
    webhooks: tuple[str, ...] = ()


def read_targets(texts: Iterable[str]) -> AlertTargets:
    """Raises UserError for a text that is no target."""
    has_events, found = False, {"alertmanager": list[str](), "webhook": list[str]()}
    for text in texts:
        kind, equals, address = text.partition("=")
        if text == "events":
            has_events = True
        elif kind in found and equals and _is_address(address):
            found[kind].append(address.rstrip("/") if kind == "alertmanager" else address)
        elif text != "none":
            fix = "write events, alertmanager=http://HOST:9093, webhook=https://HOST/PATH or none"
            raise UserError(f"{excerpt(text)} is no target of alerts", where=Where(path=_OPTION), fix=fix)
    return AlertTargets(has_events, tuple(found["alertmanager"]), tuple(found["webhook"]))


def read_sources(texts: Iterable[str]) -> tuple[str, ...]:
    """Raises UserError for a text that is no address."""
    found = tuple(texts)
    for text in found:
        if not _is_address(text):
            fix = "write http://HOST:8080/metrics"
            raise UserError(f"{excerpt(text)} is no address of metrics", where=Where(path=_SOURCES), fix=fix)
    return found


def _is_address(text: str) -> bool:
    if len(text) > _LONGEST or not text.isascii() or not text.isprintable() or " " in text:
        return False
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def shown(address: str) -> str:
    """Without a user, a password and a query, which may be secret."""
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.hostname}" + (f":{parts.port}" if parts.port else "")
