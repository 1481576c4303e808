"""Watch: what happens to the objects of a resource, as lines, from one revision on.

Guarantees: no event is lost or out of order between the list (or the revision) that a client starts from and the
events that it receives. An object that leaves the selection is sent as deleted, one that enters it as added. A client
that falls too far behind, or starts at a revision that is too old, gets 410 in the stream, which ends with it. A client
that starts at a future revision waits for it.

A line is encoded once per event and shared by all plain watchers of the stored version.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from typing import TypeVar

import msgspec

from shoal.embedded.apiserver.calls import Call
from shoal.embedded.apiserver.resource import Obj
from shoal.embedded.apiserver.rest import codec
from shoal.embedded.apiserver.rest.context import ServerContext
from shoal.embedded.apiserver.rest.options import ReadOptions
from shoal.embedded.apiserver.rest.reading import revision_of, wanted_revision
from shoal.embedded.apiserver.rest.selection import Selection, selection
from shoal.embedded.apiserver.state.event import Event
from shoal.embedded.apiserver.state.record import Record
from shoal.embedded.apiserver.state.watch import Watch
from shoal.embedded.apiserver.status import ApiError, bad_request

Render = Callable[[Record], Awaitable[bytes]]
"""The object of a line in the form the client asked for."""

BOOKMARK_EVERY_S = 60.0
_BEFORE_THE_END_S = 2.0
"""A last bookmark comes so long before the time of a watch is up, so that the next one starts close to its end."""
_PIECE = 100
"""Objects written at once: TLS keeps the memory of the longest write for as long as the connection lives."""
_PIECE_BYTES = 1 << 16
_Found = TypeVar("_Found")
_encode = msgspec.json.Encoder().encode


class Stream:
    """One watch that was accepted: everything that can be refused was refused before this is made."""

    def __init__(
        self,
        context: ServerContext,
        call: Call,
        options: ReadOptions,
        render: Render | None,
        timeout_s: float,
        heading: tuple[str, str] | None = None,
    ) -> None:
        """`heading`: kind and apiVersion of what `render` makes."""
        resource = call.resource
        self._heading = heading or (resource.kind, resource.api_version)
        self._context = context
        self._call = call
        self._render = render
        self._plain = render is None and not resource.is_custom and codec.is_stored_version(resource)
        self._options = options
        self._timeout_s = timeout_s
        self._chosen = selection(resource, options.label_selector, options.field_selector)
        self._everything = self._chosen.is_everything()
        if call.name and self._chosen.fields and self._chosen.only_name() != call.name:
            raise bad_request("fieldSelector metadata.name doesn't match requested name")
        namespace = call.namespace if resource.namespaced and call.namespace else None
        name = call.name or self._chosen.only_name()
        self._initial: Sequence[Record] = ()
        self._since = self._start(namespace, name)
        self._fault: ApiError | None = None
        try:
            since = min(self._since, context.state.revision)
            self._watch: Watch = context.state.watch(resource.home, namespace, since, name=name)
        except ApiError as error:
            self._fault = error
            self._watch = context.state.watch(resource.home, namespace, context.state.revision, name=name)

    def _start(self, namespace: str | None, name: str | None) -> int:
        version = self._options.resource_version
        initial = self._options.initial_events
        if version not in ("", "0") and initial is None:
            return revision_of(version)
        if version not in ("", "0"):
            wanted_revision(self._context, version)
        if initial is False:
            return self._context.state.revision if version in ("", "0") else int(version)
        page = self._context.state.list(self._call.resource.home, namespace)
        records = page.records if name is None else [one for one in page.records if one.ref.name == name]
        self._initial = [one for one in records if self._everything or self._chosen.selects(one)]
        return page.revision

    @property
    def has_initial_events(self) -> bool:
        return bool(self._initial)

    async def lines(self) -> AsyncIterator[bytes]:
        """Chunks that end with a line or are a part of a long one, until the client has had its time."""
        loop = asyncio.get_running_loop()
        ends = loop.time() + self._timeout_s
        try:
            if self._fault is not None:
                raise self._fault
            async for chunk in self._initial_lines():
                yield chunk
            due = _next_bookmark(loop.time(), ends)
            while not self._watch.closed and (left := ends - loop.time()) > 0:
                if loop.time() >= due:
                    due = _next_bookmark(loop.time(), ends)
                    if self._options.bookmarks:
                        yield self._bookmark()
                try:
                    async with asyncio.timeout(min(left, max(due - loop.time(), 0.0))):
                        batch = await self._watch.next_batch()
                except TimeoutError:
                    continue
                for piece in _pieces(batch, [len(event.record.data) for event in batch]):
                    for chunk in await self._batch_lines(piece):
                        yield chunk
        except ApiError as error:
            yield b'{"type":"ERROR","object":' + _encode(error.status()) + b"}\n"
        finally:
            self._watch.close()

    def close(self) -> None:
        self._watch.close()

    async def _initial_lines(self) -> AsyncIterator[bytes]:
        records, self._initial = self._initial, ()
        revision = self._since
        for piece in _pieces(records, [len(record.data) for record in records]):
            for chunk in _joined([(b"ADDED", data) for data in await self._all_shown(piece)]):
                yield chunk
        if self._options.initial_events and self._options.bookmarks:
            yield self._bookmark(revision, {"k8s.io/initial-events-end": "true"})

    async def _all_shown(self, records: Sequence[Record]) -> Sequence[bytes]:
        if self._plain:
            return [record.data for record in records]
        if self._render is None:
            shown = await codec.lines(self._context, self._call, records)
        else:
            shown = [await self._render(record) for record in records]
        # What was not large was made in the event loop.
        await asyncio.sleep(0)
        return shown

    async def _batch_lines(self, batch: Sequence[Event]) -> Sequence[bytes]:
        if batch and batch[0].record.revision <= self._since:
            batch = [event for event in batch if event.record.revision > self._since]
        if self._plain and self._everything:
            if len(batch) > 1:
                return (b"".join([event.line for event in batch]),)
            return _joined([(event.kind.encode(), event.record.data) for event in batch])
        kinds: list[bytes] = []
        records: list[Record] = []
        for event in batch:
            kind = event.kind if self._everything else seen_as(event, self._chosen)
            if kind:
                left = kind == "DELETED" and event.kind != "DELETED"
                kinds.append(kind.encode())
                records.append(event.departed() if left else event.record)
        return _joined(list(zip(kinds, await self._all_shown(records), strict=True)))

    def _bookmark(self, revision: int | None = None, annotations: dict[str, str] | None = None) -> bytes:
        kind, api_version = self._heading
        shown = self._watch.position if revision is None else revision
        metadata: Obj = {"resourceVersion": str(max(shown, self._since))}
        if annotations:
            metadata["annotations"] = annotations
        obj = {"kind": kind, "apiVersion": api_version, "metadata": metadata}
        return _line(b"BOOKMARK", _encode(obj))


def _pieces(found: Sequence[_Found], sizes: Sequence[int]) -> Iterator[Sequence[_Found]]:
    """Few at a time, and a large one alone: a client that does not read holds one piece in memory."""
    start, size = 0, 0
    for index, more in enumerate(sizes):
        if index > start and (size + more > _PIECE_BYTES or index - start == _PIECE):
            yield found[start:index]
            start, size = index, 0
        size += more
    if start < len(found):
        yield found[start:]


def _next_bookmark(now: float, ends: float) -> float:
    last = ends - _BEFORE_THE_END_S
    return min(now + BOOKMARK_EVERY_S, last) if last > now else now + BOOKMARK_EVERY_S


def seen_as(event: Event, chosen: Selection) -> str:
    """What an event is to a watcher of a selection; empty if it is nothing to it."""
    before = event.before is not None and chosen.selects(event.before)
    if event.kind == "DELETED":
        return "DELETED" if before or (event.before is None and chosen.selects(event.record)) else ""
    after = chosen.selects(event.record)
    if after:
        return "MODIFIED" if before else "ADDED"
    return "DELETED" if before else ""


def _joined(lines: Sequence[tuple[bytes, bytes]]) -> Sequence[bytes]:
    """Kinds and objects as chunks. The bytes of a large object are not copied for each watcher."""
    if len(lines) == 1 and len(lines[0][1]) > _PIECE_BYTES:
        kind, obj = lines[0]
        return (_opening(kind), obj, b"}\n")
    return (b"".join([_line(kind, obj) for kind, obj in lines]),) if lines else ()


def _line(kind: bytes, obj: bytes) -> bytes:
    return _opening(kind) + obj + b"}\n"


def _opening(kind: bytes) -> bytes:
    return b'{"type":"' + kind + b'","object":'
