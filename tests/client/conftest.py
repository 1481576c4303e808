"""Both ways to an API server: inside its process, and over HTTP to one in a process of its own.

With SHOAL_TEST_KUBECONFIG set, the second is the cluster that names.
"""

from __future__ import annotations

import asyncio
import os
import random
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from build.cluster_server import ServerProcess
from shoal.client.clock import LoopClock
from shoal.client.http.api import KubeApi
from shoal.client.http.locate import locate
from shoal.client.http.settings import KubeSettings
from shoal.client.kind import NAMESPACES, SERVICE_ACCOUNTS
from shoal.client.port import Api
from shoal.client.refusals import NotFoundError
from shoal.embedded.apiserver.calls import Actor
from shoal.embedded.apiserver.inside.api import InsideApi
from shoal.embedded.apiserver.server.control_plane import open_plane
from shoal.embedded.apiserver.settings import Settings
from shoal.embedded.apiserver.storage.memory import MemoryStorage

_ADMIN = Actor("admin", ("system:masters", "system:authenticated"))
HISTORY = 150
"""Changes that a watch can go on from: few, so that a test can outlive them."""


@pytest.fixture(scope="session")
def server_kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    given = os.environ.get("SHOAL_TEST_KUBECONFIG")
    if given:
        yield Path(given)
        return
    server = ServerProcess(tmp_path_factory.mktemp("live"), "--memory", "--history-events", str(HISTORY))
    yield server.kubeconfig
    server.stop()


@pytest.fixture(params=["inside", "http"])
async def api(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Api]:
    if request.param == "http":
        kubeconfig: Path = request.getfixturevalue("server_kubeconfig")
        # Small pages, so that lists of a few objects take several.
        client = KubeApi(locate(kubeconfig), random.Random(1), KubeSettings(manager="test", page=3))
        yield client
        await client.close()
        return
    clock = LoopClock(1_767_225_600.0)
    settings = Settings(None, tmp_path / "kubeconfig", history_events=HISTORY)
    plane = await open_plane(settings, ("127.0.0.1", 1), MemoryStorage(), clock)
    yield InsideApi(plane, _ADMIN, "test")
    await plane.close()


@pytest.fixture
async def home(api: Api) -> AsyncIterator[str]:
    """A namespace of the test's own."""
    name = f"t-{uuid.uuid4().hex[:10]}"
    await api.create(NAMESPACES, {"metadata": {"name": name}})
    async with asyncio.timeout(60):
        if os.environ.get("SHOAL_TEST_KUBECONFIG") and isinstance(api, KubeApi):
            await _can_have_pods(api, name)
        yield name
    await api.delete(NAMESPACES, "", name)


async def _can_have_pods(api: Api, namespace: str) -> None:
    """Where controllers run, one makes the account without which no pod is taken."""
    while True:
        try:
            await api.get(SERVICE_ACCOUNTS, namespace, "default")
        except NotFoundError:
            await asyncio.sleep(0.05)
        else:
            return
