"""Clients that do not come to the end, send what is no HTTP, or do not read: each is let go in its time."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from aiohttp.abc import AbstractStreamWriter

from shoal.embedded.apiserver.calls import Actor
from shoal.embedded.apiserver.chunked import PIECE, ChunkedAnswer
from shoal.embedded.apiserver.server.accept import PLAIN
from shoal.embedded.apiserver.server.answers import answer, refusal
from shoal.embedded.apiserver.server.connections import USER, Connections, Patience
from shoal.embedded.apiserver.server.open_responses import Most, OpenResponses
from shoal.embedded.apiserver.server.receiving import body_bytes
from shoal.embedded.apiserver.server.run import listening
from shoal.embedded.apiserver.status import ApiError

_PATIENCE_S = 20
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Much(ChunkedAnswer):
    """More than a connection takes before its client reads. `ended` is set once nobody writes it any more."""

    def __init__(self) -> None:
        super().__init__([b"x" * (1 << 26)], 1 << 26, "text/plain")
        self.ended = asyncio.Event()

    async def write(self, writer: AbstractStreamWriter) -> None:
        try:
            await super().write(writer)
        finally:
            self.ended.set()


@asynccontextmanager
async def connected(
    patience: Patience | None = None, body_s: float = _PATIENCE_S, much: Much | None = None
) -> AsyncIterator[Streams]:
    """A client of a server that answers with the length of what it was sent, or with much."""

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        try:
            body = await body_bytes(request, body_s)
        except ApiError as error:
            return refusal(error, PLAIN)
        return web.Response(body=much) if much is not None else answer(200, str(len(body)).encode(), PLAIN)

    server = Connections(handle, patience or Patience())
    listener = await asyncio.get_running_loop().create_server(server, "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield reader, writer
    finally:
        writer.close()
        listener.close()
        await server.shutdown(0.1)


def head(length: int, *more: str) -> bytes:
    return "\r\n".join(("POST / HTTP/1.1", "Host: x", f"Content-Length: {length}", *more, "", "")).encode()


async def read_answer(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    async with asyncio.timeout(_PATIENCE_S):
        lines = (await reader.readuntil(b"\r\n\r\n")).decode().lower().split("\r\n")
        length = next(int(line.partition(":")[2]) for line in lines if line.startswith("content-length"))
        return int(lines[0].split()[1]), await reader.readexactly(length)


async def test_a_body_that_does_not_arrive_is_not_waited_for_for_ever() -> None:
    async with connected(body_s=0.05) as (reader, writer):
        writer.write(head(100) + b"{")
        code, body = await read_answer(reader)
        assert code == 408
        assert json.loads(body)["reason"] == "Timeout"


async def test_a_first_request_that_never_ends_is_cut_off() -> None:
    async with connected(Patience(first_request_s=0.05)) as (reader, writer):
        writer.write(b"POST / HTTP/1.1\r\nHost: x\r\n")
        async with asyncio.timeout(_PATIENCE_S):
            assert await reader.read() == b""


async def test_connections_beyond_the_limit_are_closed() -> None:
    async with connected(Patience(most=0)) as (reader, writer):
        writer.write(head(0))
        async with asyncio.timeout(_PATIENCE_S):
            with contextlib.suppress(ConnectionResetError):
                assert await reader.read() == b""


async def test_who_does_not_read_a_large_answer_is_cut_off() -> None:
    much = Much()
    async with connected(Patience(reading_s=0.05), much=much) as (reader, writer):
        writer.write(head(0))
        async with asyncio.timeout(_PATIENCE_S):
            await much.ended.wait()
            with pytest.raises((asyncio.IncompleteReadError, ConnectionResetError)):
                await reader.readexactly(1 << 26)


async def _until(is_true: Callable[[], bool]) -> None:
    async with asyncio.timeout(_PATIENCE_S):
        while True:
            if is_true():
                return
            await asyncio.sleep(0)


async def test_a_client_that_never_reads_has_no_more_than_some_pieces_in_the_buffers_of_its_connection() -> None:
    body = b"x" * (1 << 26)
    open_responses = OpenResponses(Most(response_bytes=len(body)))

    def has_room() -> bool:
        try:
            open_responses.check(Actor("alice"), is_watch=False)
        except ApiError:
            return False
        return True

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        request[USER] = "alice"
        return web.Response(body=body)

    server = Connections(handle, Patience(), open_responses)
    listener = await asyncio.get_running_loop().create_server(server, "127.0.0.1", 0)
    _, writer = await asyncio.open_connection("127.0.0.1", listener.sockets[0].getsockname()[1])
    writer.write(head(0))
    await _until(lambda: bool(server.connections) and server.connections[0].writing_paused)
    transport = server.connections[0].transport
    assert transport is not None
    assert transport.get_write_buffer_size() <= 2 * PIECE
    assert not has_room()
    writer.transport.abort()
    await _until(has_room)
    listener.close()
    await server.shutdown(0.1)


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
async def test_a_body_that_is_not_packed_as_it_says_is_refused(coding: str) -> None:
    async with connected() as (reader, writer):
        writer.write(head(8, f"Content-Encoding: {coding}") + b"garbage!")
        code, body = await read_answer(reader)
        assert code == 400
        assert json.loads(body)["reason"] == "BadRequest"


async def test_a_body_that_unpacks_to_too_much_is_refused() -> None:
    async with connected() as (reader, writer):
        bomb = gzip.compress(b" " * (50 << 20))
        writer.write(head(len(bomb), "Content-Encoding: gzip") + bomb)
        code, body = await read_answer(reader)
        assert code == 413
        assert json.loads(body)["reason"] == "RequestEntityTooLarge"


@pytest.mark.parametrize(
    "sent", [b"hello\r\n\r\n", b"GET /\xff HTTP/1.1\r\n\r\n", b"GET / HTTP/1.1\r\nHost: a\x00\r\n\r\n"]
)
async def test_what_is_no_http_is_answered_and_not_worth_a_line(sent: bytes, caplog: pytest.LogCaptureFixture) -> None:
    async with connected() as (reader, writer):
        writer.write(sent)
        assert (await read_answer(reader))[0] == 400
        assert not caplog.records


async def test_requests_that_are_sent_ahead_are_answered_in_order() -> None:
    async with connected() as (reader, writer):
        writer.write(b"".join(head(size) + b"x" * size for size in range(1, 50)))
        assert [(await read_answer(reader))[1] for _ in range(1, 50)] == [b"%d\n" % size for size in range(1, 50)]


async def test_a_client_that_does_not_begin_tls_is_cut_off() -> None:
    async def handle(_: web.BaseRequest) -> web.StreamResponse:
        return web.Response()

    server = Connections(handle, Patience())
    bound = socket.create_server(("127.0.0.1", 0))
    listener = await listening(server, bound, ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), handshake_s=0.05)
    reader, writer = await asyncio.open_connection(*bound.getsockname())
    async with asyncio.timeout(_PATIENCE_S):
        with contextlib.suppress(ConnectionResetError):
            assert await reader.read() == b""
    writer.close()
    listener.close()
    await server.shutdown(0.1)
