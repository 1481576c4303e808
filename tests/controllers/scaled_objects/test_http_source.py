"""Triggers ask HTTP servers that the users of a namespace choose: credentials stay with the server that is named."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from build.server_processes import LOOPBACK
from shoal.autoscale.scaled_objects.trigger_sources import HttpRequest
from shoal.controllers.scaled_objects.sources.http import HttpSource
from shoal.units.errors import TemporaryError

SECRET = "S3CRET"  # noqa: S105 - of the test


@asynccontextmanager
async def served(answer: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> AsyncIterator[str]:
    application = web.Application()
    application.router.add_get("/{path}", answer)
    runner = web.AppRunner(application)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


async def refused(asked: HttpRequest) -> str:
    source = HttpSource(LOOPBACK)
    try:
        with pytest.raises(TemporaryError) as refusal:
            await source.get(asked)
    finally:
        await source.close()
    return str(refusal.value)


async def test_the_error_of_a_malformed_answer_contains_no_credentials() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked = await reader.readline()
        writer.write(b"echo " + asked)
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        host = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        text = await refused(HttpRequest(f"http://user:{SECRET}@{host}/a?key={SECRET}", {"api_key": SECRET}))
    assert f"http://{host}/a cannot be asked" in text
    assert SECRET not in text


@pytest.mark.parametrize("url", ["http://user:S3CRET@[x/", "http://user:S3CRET@127.0.0.1:99999/", "http://:S3CRET@/"])
async def test_the_error_of_an_invalid_address_contains_no_credentials(url: str) -> None:
    text = await refused(HttpRequest(url))
    assert "cannot be asked" in text
    assert SECRET not in text


async def test_credentials_are_not_sent_to_the_target_of_a_redirect() -> None:
    seen: list[str] = []

    async def other(request: web.Request) -> web.StreamResponse:
        seen.append(request.headers.get("X-API-KEY", ""))
        return web.Response(text="1")

    async with served(other) as elsewhere:

        async def redirect(_: web.Request) -> web.StreamResponse:
            raise web.HTTPFound(f"{elsewhere}/x")

        async with served(redirect) as root:
            text = await refused(HttpRequest(f"{root}/x", headers={"X-API-KEY": SECRET}))
    assert "status code 302; redirects are not followed" in text
    assert seen == []


@pytest.mark.parametrize(
    "host", ["169.254.169.254", "[fe80::1]", "[::ffff:169.254.169.254]", "0xA9FEA9FE", "[fd00:ec2::254]"]
)
async def test_link_local_addresses_are_not_asked_in_any_notation(host: str) -> None:
    text = await refused(HttpRequest(f"http://{host}/latest/meta-data", timeout_s=1.0))
    assert "addresses are not asked; --trigger-network of shoal up and" in text


async def test_cookies_of_one_trigger_are_not_sent_for_another_one() -> None:
    seen: list[str] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        seen.append(request.headers.get("Cookie", ""))
        response = web.Response(text="1")
        response.set_cookie("session", SECRET)
        return response

    async with served(answer) as root:
        source = HttpSource(LOOPBACK)
        try:
            url = f"{root.replace('127.0.0.1', 'localhost')}/x"
            assert [await source.get(HttpRequest(url)) for _ in range(2)] == [b"1", b"1"]
        finally:
            await source.close()
    assert seen == ["", ""]
