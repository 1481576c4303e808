"""A watch on the wire: chunks of lines until its time is up or the client is gone."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable

from aiohttp import web

from shoal.client.connection_timeouts import cut_off
from shoal.embedded.apiserver.calls import Call
from shoal.embedded.apiserver.rest.context import ServerContext
from shoal.embedded.apiserver.rest.options import ReadOptions
from shoal.embedded.apiserver.rest.watching import Stream
from shoal.embedded.apiserver.server import answers
from shoal.embedded.apiserver.server.accept import Form
from shoal.embedded.apiserver.state.record import Record
from shoal.embedded.apiserver.streams.sending import send

_SHORTEST_S, _LONGEST_S = 1800.0, 3600.0
"""How long a watch lives whose client names no time: spread, so that clients do not all come back at once."""
_GRACE_S = 5.0


class OpenStreams:
    """The watches that are open, so that all of them can be ended."""

    def __init__(self) -> None:
        self._streams: set[Stream] = set()

    def __len__(self) -> int:
        return len(self._streams)

    def enter(self, stream: Stream) -> None:
        self._streams.add(stream)

    def leave(self, stream: Stream) -> None:
        self._streams.discard(stream)
        stream.close()

    def end(self) -> None:
        for stream in self._streams:
            stream.close()


async def stream_watch(
    context: ServerContext, streams: OpenStreams, request: web.BaseRequest, call: Call, options: ReadOptions, form: Form
) -> web.StreamResponse:
    render = _render(context, call, form, request.query.get("includeObject", ""))
    timeout_s = float(options.timeout_s) if options.timeout_s else random.uniform(_SHORTEST_S, _LONGEST_S)
    stream = Stream(context, call, options, render, timeout_s, _heading(form))
    headers = {"Content-Type": "application/json", "Cache-Control": "no-cache", **call.headers}
    response = web.StreamResponse(status=200, headers=headers)
    streams.enter(stream)
    # Who does not read cannot be told that the time is up.
    alarm = asyncio.get_running_loop().call_later(timeout_s + _GRACE_S, cut_off, request.transport)
    try:
        await response.prepare(request)
        begun = call.begun
        if begun is not None and not stream.has_initial_events:
            begun()
        async for chunk in stream.lines():
            if begun is not None:
                begun()
            await send(request, response, chunk)
            if request.transport is None or request.transport.is_closing():
                break
        await response.write_eof()
    except ConnectionError:
        pass  # The client hung up: that is how most watches end.
    finally:
        alarm.cancel()
        streams.leave(stream)
    return response


def _heading(form: Form) -> tuple[str, str] | None:
    """What bookmarks call themselves, where it is not the kind of the resource."""
    if form.shape == "object":
        return None
    return ("Table" if form.shape == "table" else "PartialObjectMetadata", f"meta.k8s.io/{form.version}")


def _render(
    context: ServerContext, call: Call, form: Form, include: str
) -> Callable[[Record], Awaitable[bytes]] | None:
    if form.shape == "object":
        return None
    is_first = True

    async def render(record: Record) -> bytes:
        nonlocal is_first
        first, is_first = is_first, False
        return await answers.row(context, record, call, form, include, first=first)

    return render
