"""What a server answers to who comes back too late: it has forgotten what was, to keep its memory small."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import NamedTuple

import pytest

from build.api_objects import configmap, make_configmap, make_secret, names
from build.cluster_api import Api
from build.cluster_server import ServerProcess

REMEMBERED = 20


class Held(NamedTuple):
    """What a client had in its hands before the server forgot."""

    namespace: str
    version: str
    token: str


class Late(NamedTuple):
    api: Api
    version: str
    token: str


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    process = ServerProcess(tmp_path_factory.mktemp("forgotten"), "--history-events", str(REMEMBERED))
    yield process
    process.stop()


@pytest.fixture(scope="module")
def held(server: ServerProcess) -> Held:
    return asyncio.run(_outlived(server))


async def _outlived(server: ServerProcess) -> Held:
    async with Api.open(server.kubeconfig) as api:
        await api.make_namespace()
        for name in "abc":
            await make_secret(api, name)
        page = (await api.get(api.core("secrets"), limit=1)).ok()["metadata"]
        (await api.delete(api.core("secrets", "b"))).ok()
        await make_configmap(api, "busy")
        for step in range(3 * REMEMBERED):
            (await api.put(api.core("configmaps", "busy"), configmap("busy", {"step": str(step)}))).ok()
    return Held(api.namespace, page["resourceVersion"], page["continue"])


@pytest.fixture
async def late(server: ServerProcess, held: Held) -> AsyncIterator[Late]:
    async with Api.open(server.kubeconfig) as api:
        api.namespace = held.namespace
        yield Late(api, held.version, held.token)


async def test_a_watch_is_told_in_its_stream_that_it_comes_too_late(late: Late) -> None:
    api = late.api
    async with api.watch(api.core("secrets"), resourceVersion=late.version) as watch:
        event = await watch.next()
        assert await watch.is_at_end()
    assert event["type"] == "ERROR"
    found = event["object"]
    assert (found["kind"], found["code"], found["reason"]) == ("Status", 410, "Expired")
    assert found["message"].startswith(f"too old resource version: {late.version} (")


async def test_a_list_of_a_forgotten_moment_has_expired(late: Late) -> None:
    api = late.api
    query = {"resourceVersion": late.version, "resourceVersionMatch": "Exact"}
    answer = await api.get(api.core("secrets"), **query)
    assert answer.refused(410, "Expired") == "The resourceVersion for the provided list is too old."


async def test_the_rest_of_a_list_may_be_had_as_it_is_now(late: Late) -> None:
    api = late.api
    answer = await api.get(api.core("secrets"), limit=5, **{"continue": late.token})
    message = answer.refused(410, "Expired")
    assert message.startswith("The provided continue parameter is too old to display a consistent list result.")
    more = {"continue": answer.body["metadata"]["continue"]}
    rest = (await api.get(api.core("secrets"), limit=5, **more)).ok()
    assert names(rest) == ["c"]
    (await api.get(api.core("secrets"), limit=1, **more)).ok()
