"""Requests over our own connections: whatever a server does with bytes, an answer belongs to the request before it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from build.virtual_time import in_virtual_time, virtual
from shoal.client.http.connection_pool import ConnectionPool
from shoal.client.http.http1_connection import Http1Connection, HttpResponse

ASK = b"POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n{}"
FINE = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\none"
IN_PIECES = b"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n4\r\n two\r\n0\r\n\r\n"


END = b""


class Told:
    """Answers each request with the next that it was told to say, piece by piece; `END` ends the connection."""

    def __init__(self, *says: Sequence[bytes]) -> None:
        self.says = list(says)
        self.lines = 0
        self.open = 0
        self.most_open = 0
        self.asked: list[bytes] = []
        self.heard = asyncio.Event()
        self.goes_on = asyncio.Event()
        self.goes_on.set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.lines += 1
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        try:
            while True:
                self.asked.append(await reader.readexactly(len(ASK)))
                self.heard.set()
                await self.goes_on.wait()
                said = self.says.pop(0) if len(self.says) > 1 else self.says[0]
                for piece in said:
                    if piece == END:
                        return
                    writer.write(piece)
                    await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        finally:
            self.open -= 1
            writer.close()


@asynccontextmanager
async def served(told: Told, most: int = 4) -> AsyncIterator[ConnectionPool]:
    server = await asyncio.start_server(told.serve, "127.0.0.1", 0)
    wires = ConnectionPool(*server.sockets[0].getsockname(), tls=None, server_name="", most=most, connect_s=5)
    try:
        yield wires
    finally:
        wires.close()
        server.close()
        await server.wait_closed()


async def asked(wires: ConnectionPool) -> HttpResponse:
    return await wires.ask(ASK, 5)


async def test_one_connection_serves_one_request_after_the_other() -> None:
    told = Told([FINE], [IN_PIECES], [b"HTTP/1.1 429 Too Many\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n"])
    async with served(told) as wires:
        answers = [await asked(wires) for _ in range(3)]
    assert answers == [
        HttpResponse(200, "OK", "", b"one"),
        HttpResponse(201, "Created", "", b"one two"),
        HttpResponse(429, "Too Many", "7", b""),
    ]
    assert (told.lines, told.asked) == (1, [ASK] * 3)


async def test_a_word_on_the_way_is_no_answer() -> None:
    async with served(Told([b"HTTP/1.1 100 Continue\r\n\r\n", FINE])) as wires:
        assert [await asked(wires) for _ in range(2)] == [HttpResponse(200, "OK", "", b"one")] * 2


async def test_an_answer_without_a_length_ends_with_its_connection() -> None:
    told = Told([b"HTTP/1.1 502 Bad Gateway\r\n\r\nno", b" server", END])
    async with served(told) as wires:
        assert [await asked(wires) for _ in range(2)] == [HttpResponse(502, "Bad Gateway", "", b"no server")] * 2
    assert told.lines == 2


async def test_a_server_that_wants_to_close_gets_another_connection_next_time() -> None:
    told = Told([FINE.replace(b"Content", b"Connection: close\r\nContent")])
    async with served(told) as wires:
        assert [(await asked(wires)).body for _ in range(2)] == [b"one", b"one"]
    assert told.lines == 2


FAULTS: list[tuple[str, Sequence[bytes]]] = [
    ("nothing", [END]),
    ("half of an answer", [b"HTTP/1.1 200 OK\r\nContent-Length: 30\r\n\r\none", END]),
    ("no HTTP", [b"go away\r\n\r\n"]),
    ("a length that is no number", [b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n"]),
]


@pytest.mark.parametrize("said", [row[1] for row in FAULTS], ids=[row[0] for row in FAULTS])
async def test_what_is_no_answer_ends_the_connection_and_no_more(said: Sequence[bytes]) -> None:
    told = Told(said, [FINE])
    async with served(told) as wires:
        with pytest.raises(OSError, match=r"closed the connection|is not HTTP"):
            await asked(wires)
        assert (await asked(wires)).body == b"one"
    # A write is sent once: whether it was done is for those to find out who asked.
    assert told.asked == [ASK, ASK]


async def test_half_an_answer_is_waited_for_no_longer_than_was_said() -> None:
    told = Told([b"HTTP/1.1 200 OK\r\nContent-Length: 30\r\n\r\none"], [FINE])
    async with served(told) as wires:
        with pytest.raises(TimeoutError):
            await wires.ask(ASK, 0.05)
        # What still comes on the first connection is nobody's.
        assert (await asked(wires)).body == b"one"
    assert told.lines == 2


async def test_a_second_answer_to_one_request_is_never_the_answer_to_the_next() -> None:
    told = Told([FINE + FINE.replace(b"one", b"two")], [FINE])
    async with served(told) as wires:
        assert [(await asked(wires)).body for _ in range(2)] == [b"one", b"one"]
    assert told.lines == 2


async def test_who_stops_waiting_ends_the_connection() -> None:
    told = Told([FINE])
    async with served(told) as wires:
        told.goes_on.clear()
        asking = asyncio.ensure_future(asked(wires))
        await told.heard.wait()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        told.goes_on.set()
        assert (await asked(wires)).body == b"one"
    assert told.lines == 2


async def test_no_more_connections_are_open_at_once_than_may_be() -> None:
    told = Told([FINE])
    async with served(told, most=3) as wires:
        answers = await asyncio.gather(*(asked(wires) for _ in range(30)))
    assert [one.body for one in answers] == [b"one"] * 30
    assert told.most_open == 3


async def test_a_connection_that_was_silent_for_long_is_not_used_any_more() -> None:
    told = Told([FINE])
    async with served(told) as wires:
        await asked(wires)
        (wire,) = wires._idle
        wire.idle_since_s -= 31
        await asked(wires)
    assert told.lines == 2


class Ear(asyncio.Transport):
    """Takes everything and says nothing."""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        pass

    def is_closing(self) -> bool:
        return False

    def abort(self) -> None:
        pass


@given(st.sampled_from([FINE, IN_PIECES]), st.lists(st.integers(1, 80), max_size=6))
def test_an_answer_is_the_same_in_whatever_pieces_it_comes(said: bytes, cuts: list[int]) -> None:
    async def explanation() -> HttpResponse:
        wire = Http1Connection()
        wire.connection_made(Ear())
        asking = asyncio.ensure_future(wire.ask(ASK))
        await asyncio.sleep(0)
        ends = sorted({*(cut for cut in cuts if cut < len(said)), len(said)})
        for start, end in zip([0, *ends], ends, strict=False):
            wire.data_received(said[start:end])
        assert wire.is_open
        return await asking

    whole = HttpResponse(200, "OK", "", b"one") if said is FINE else HttpResponse(201, "Created", "", b"one two")
    assert in_virtual_time(explanation()) == whole


@virtual
async def test_an_answer_has_its_limit() -> None:
    wire = Http1Connection(most_bytes=2)
    wire.connection_made(Ear())
    asking = asyncio.ensure_future(wire.ask(ASK))
    await asyncio.sleep(0)
    wire.data_received(FINE)
    with pytest.raises(ConnectionError, match="its answer has more than 2 bytes"):
        await asking
    assert not wire.is_open


async def test_who_waits_for_a_turn_when_all_is_closed_sends_nothing() -> None:
    told = Told([FINE])
    told.goes_on.clear()
    async with served(told, most=1) as wires:
        asking = [asyncio.ensure_future(asked(wires)) for _ in range(3)]
        await told.heard.wait()
        wires.close()
        found = await asyncio.gather(*asking, return_exceptions=True)
    assert all(isinstance(one, OSError) for one in found)
    assert len(told.asked) == 1


async def test_an_answer_without_length_and_body_is_one() -> None:
    async with served(Told([b"HTTP/1.1 503 Busy\r\n\r\n", END])) as wires:
        assert await asked(wires) == HttpResponse(503, "Busy", "", b"")
