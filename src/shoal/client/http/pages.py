"""Decodes answers of the server to items: single objects, pages of lists, lines of watches.

Items of lists come without kind and apiVersion (built-in kinds) or with them (custom ones). Missing ones are added, so
that an object is complete from every source.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

from shoal.client.item import Item, WatchEvent
from shoal.client.kind import Kind
from shoal.client.refusals import BusyError, ExpiredError, refusal_of

Take = Callable[[bytes, bytes], Item]
"""Makes an item from its bytes (`whole_item_of`, or a slimmer one) and the kind and apiVersion to add where they are
missing.
"""
_AT_ONCE = 500
_AS_WRITTEN = re.compile(rb'\{"type":"([A-Z]+)","object":')
_CHANGES = ("ADDED", "MODIFIED", "DELETED", "BOOKMARK")


class _ListMeta(msgspec.Struct, rename="camel", gc=False):
    resource_version: str = ""
    go_on: str = msgspec.field(name="continue", default="")


class Page(msgspec.Struct, gc=False):
    metadata: _ListMeta
    items: list[msgspec.Raw] | None = None

    @property
    def version(self) -> int:
        with _understood():
            return int(self.metadata.resource_version or 0)

    @property
    def go_on(self) -> str:
        """The continue token for the next page; empty at the end."""
        return self.metadata.go_on


class _Line(msgspec.Struct, gc=False):
    type: str
    object: msgspec.Raw


class _DeletionMeta(msgspec.Struct, rename="camel", gc=False):
    deletion_timestamp: str = ""
    deletion_grace_period_seconds: int = 0
    finalizers: list[str] = []


class _NamespaceSpec(msgspec.Struct, gc=False):
    finalizers: list[str] = []


class _DeleteResponse(msgspec.Struct, gc=False):
    metadata: _DeletionMeta = msgspec.field(default_factory=_DeletionMeta)
    kind: str = ""
    spec: Any = None


_page = msgspec.json.Decoder(Page)
_line = msgspec.json.Decoder(_Line)
_deleted = msgspec.json.Decoder(_DeleteResponse)


def opened(body: bytes) -> Page:
    """A page of a list; its items are decoded later."""
    with _understood():
        return _page.decode(body)


async def items_of(kind: Kind, page: Page, take: Take) -> list[Item]:
    """Yields to other tasks after each hundred items."""
    items: list[Item] = []
    with _understood():
        lacking = f'"kind":"{kind.name}","apiVersion":"{kind.api_version}",'.encode()
        found = page.items or []
        for at in range(0, len(found), _AT_ONCE):
            if at:
                await asyncio.sleep(0)
            items += [take(bytes(raw), lacking) for raw in found[at : at + _AT_ONCE]]
        return items


def object_of(body: bytes, take: Take) -> Item:
    with _understood():
        return take(body, b"")


def left_of(body: bytes, take: Take, *, at_once: bool) -> Item | None:
    """The remaining object after a deletion. The server answers with the object while it is terminating, and with its
    last state or a Status when it is deleted.

    `at_once`: the deletion had no grace period, though the last state of a pod may still contain one.
    """
    with _understood():
        found = _deleted.decode(body)
        if found.kind == "Status":
            return None
        ending = found.metadata
        has_grace = ending.deletion_grace_period_seconds > 0 and not at_once
        waits = has_grace or ending.finalizers or _holds(found.kind, found.spec)
        return take(body, b"") if ending.deletion_timestamp and waits else None


def _holds(kind: str, spec: object) -> bool:
    """Whether the object is a namespace with finalizers in its spec."""
    return kind == "Namespace" and bool(msgspec.convert(spec or {}, _NamespaceSpec).finalizers)


class Lines:
    """Assembles lines from pieces with arbitrary ends."""

    def __init__(self) -> None:
        self._begun: list[bytes] = []

    def take(self, piece: bytes) -> list[bytes]:
        first, *others = piece.split(b"\n")
        self._begun.append(first)
        if not others:
            return []
        whole = [b"".join(self._begun), *others[:-1]]
        self._begun = [others[-1]]
        return [line for line in whole if line.strip()]


def changes_of(lines: Iterable[bytes], take: Take) -> tuple[list[WatchEvent], ExpiredError | BusyError | None]:
    """The changes up to the line with the error of the watch, if there is one."""
    changes: list[WatchEvent] = []
    with _understood():
        for text in lines:
            kind, data = _parted(text)
            if kind == "ERROR":
                return changes, _end(msgspec.json.decode(data))
            item = take(data, b"")
            kept = None if kind == "BOOKMARK" else item
            if kind in _CHANGES:
                changes.append(WatchEvent(kind, kept, item.version))  # type: ignore[arg-type]
    return changes, None


def _parted(text: bytes) -> tuple[str, bytes]:
    """The type and the object of a line. They are cut out of the usual format without decoding, so that each object is
    decoded once only; that decoding also validates it.
    """
    found = _AS_WRITTEN.match(text)
    if found is not None and text.endswith(b"}"):
        return found[1].decode(), text[found.end() : -1]
    line = _line.decode(text)
    return line.type, bytes(line.object)


def _end(status: dict[str, Any]) -> ExpiredError | BusyError:
    refusal = refusal_of(status)
    if isinstance(refusal, ExpiredError | BusyError):
        return refusal
    return BusyError(f"the watch broke: {refusal}", code=refusal.code, reason=refusal.reason, details=refusal.details)


@contextmanager
def _understood() -> Iterator[None]:
    try:
        yield
    except (msgspec.MsgspecError, ValueError) as error:
        raise BusyError(f"an answer of the server cannot be understood: {error}", code=502) from None
