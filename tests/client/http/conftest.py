"""A client, and the server that answers it as the test says."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from build.told_server import Server
from shoal.client.http.access import Access
from shoal.client.http.api import KubeApi
from shoal.client.http.settings import KubeSettings


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    found = Server()
    runner = web.ServerRunner(web.Server(found.answer), shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    found.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield found
    await runner.cleanup()


@pytest.fixture
async def api(server: Server) -> AsyncIterator[KubeApi]:
    access = Access(server.url, "here", token="t0", headers=(("Impersonate-User", "you"),))  # noqa: S106 - not one
    client = KubeApi(access, random.Random(1), KubeSettings(manager="me", timeout_s=5))
    yield client
    await client.close()
