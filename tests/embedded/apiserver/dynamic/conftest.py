"""A control plane in the test's own loop, and a server of webhooks beside it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from build.hook_server import HookServer, hook_server
from build.planes import Operations, operations


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Operations]:
    async with operations(tmp_path) as found:
        yield found


@pytest.fixture
async def server() -> AsyncIterator[HookServer]:
    async with hook_server("hooks.default.svc") as found:
        yield found
