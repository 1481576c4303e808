"""Warnings as headers: whatever they say, the answer arrives."""

from __future__ import annotations

import pytest
from aiohttp import ClientSession, web
from aiohttp.test_utils import RawTestServer
from hypothesis import given
from hypothesis import strategies as st

from shoal.embedded.apiserver.server.warning_headers import headers_of


@pytest.mark.parametrize("mark", ["\0", "\x01", "\x7f", "\x85", "\n", "\r\n", "\u2028", "\ud800"])
async def test_a_mark_that_no_header_can_carry_does_not_cost_the_client_its_answer(mark: str) -> None:
    async def handle(_: web.BaseRequest) -> web.StreamResponse:
        response = web.Response(text="done")
        for value in headers_of([f'unknown field "a{mark}b"']):
            response.headers.add("Warning", value)
        return response

    async with RawTestServer(handle) as server, ClientSession() as client, client.get(server.make_url("/")) as answer:
        assert answer.status == 200
        assert answer.headers["Warning"] == f'299 - "unknown field \\"a{" " * len(mark)}b\\""'


@given(st.lists(st.text(st.characters(), max_size=600), max_size=30))
def test_no_text_makes_a_header_that_does_not_fit(texts: list[str]) -> None:
    values = list(headers_of(texts))
    assert all(value.isprintable() for value in values)
    assert sum(len(value) for value in values) <= 2 * 4096 + len(values) * len('299 - ""')


def test_a_few_warnings_are_told_in_full_and_each_once() -> None:
    assert list(headers_of(["x" * 4000, "b\\", "b\\"])) == [f'299 - "{"x" * 4000}"', '299 - "b\\\\"']


def test_many_are_cut_and_then_left_out() -> None:
    values = list(headers_of([f"{place:03}{'u' * 20_000}" for place in range(100)]))
    assert len(values) == 16
    assert values[15] == f'299 - "015{"u" * 253}"'


def test_there_are_never_more_headers_than_clients_read() -> None:
    assert len(list(headers_of([f"u{place}" for place in range(150_000)]))) == 64
