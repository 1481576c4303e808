"""Starts real servers as processes, for tests of what Shoal asks them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from ipaddress import ip_network

from shoal.autoscale.scaled_objects.trigger_addresses import TriggerAddresses
from shoal.controllers.scaled_objects.sources.connections import Connections
from shoal.embedded.apiserver.server.bound_socket import bind

LOOPBACK = TriggerAddresses((ip_network("127.0.0.0/8"), ip_network("::1/128")))
LOCAL = Connections(LOOPBACK)


def free_port() -> int:
    bound = bind("127.0.0.1", 0)
    port = int(bound.getsockname()[1])
    bound.close()
    return port


@asynccontextmanager
async def running(
    *command: str, env: Mapping[str, str] | None = None, user: str | None = None
) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT, env=env, user=user
    )
    try:
        yield process
    finally:
        # A server that ended by itself, such as a command, needs no signal.
        with suppress(ProcessLookupError):
            process.terminate()
        await process.wait()


async def said(process: asyncio.subprocess.Process, words: bytes) -> None:
    """Returns when the process has written these words."""
    assert process.stdout is not None
    async with asyncio.timeout(60):
        async for line in process.stdout:
            if words in line:
                return
    raise AssertionError(f"it ended without {words!r}")
