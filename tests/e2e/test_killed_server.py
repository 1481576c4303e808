"""A server that is killed while thousands write: what it acknowledged is there again, and watches go on from before."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import pytest

from build.cluster_api import Api, Obj
from build.cluster_server import ServerProcess

OBJECTS = 5_000
"""Each is created and then replaced: twice as many writes."""
ACKNOWLEDGED_AT_THE_KILL = 6_000
IN_FLIGHT = 64


class Writers:
    """Clients that write without a pause and remember what they were told is done."""

    def __init__(self, api: Api) -> None:
        self.acknowledged: dict[str, int] = {}
        self._api = api
        self._writes = 0
        self._enough = asyncio.Event()
        self._slots = asyncio.Semaphore(IN_FLIGHT)

    async def run(self, server: ServerProcess) -> None:
        writing = [asyncio.create_task(self._write(f"object-{number}")) for number in range(OBJECTS)]
        await self._enough.wait()
        server.process.send_signal(signal.SIGKILL)
        await asyncio.gather(*writing, return_exceptions=True)

    async def _write(self, name: str) -> None:
        async with self._slots:
            path = self._api.core("configmaps")
            made = (await self._api.post(path, content(name, 1))).ok(201)
            self._told(name, 1)
            (await self._api.put(f"{path}/{name}", content(name, 2, made["metadata"]["resourceVersion"]))).ok(200)
            self._told(name, 2)

    def _told(self, name: str, value: int) -> None:
        self.acknowledged[name] = value
        self._writes += 1
        if self._writes >= ACKNOWLEDGED_AT_THE_KILL:
            self._enough.set()


def content(name: str, value: int, version: str = "") -> Obj:
    metadata = {"name": name, **({"resourceVersion": version} if version else {})}
    # The value twice, with much between: an object that is half written would show.
    data = {"first": str(value), "middle": "x" * 500, "second": str(value)}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


async def replayed(api: Api, since: str, objects: dict[str, Obj]) -> dict[str, list[tuple[str, int]]]:
    """The kind and version of every event since then, by object, until the newest of the list was seen."""
    newest = max(int(one["metadata"]["resourceVersion"]) for one in objects.values())
    seen: dict[str, list[tuple[str, int]]] = {}
    last = 0
    async with api.watch(api.core("configmaps"), resourceVersion=since) as watch:
        while last < newest:
            event = await watch.next()
            metadata = event["object"]["metadata"]
            version = int(metadata["resourceVersion"])
            assert version > last
            last = version
            seen.setdefault(metadata["name"], []).append((event["type"], version))
    return seen


@pytest.mark.slow
async def test_killed_amid_ten_thousand_writes_it_has_lost_nothing_it_acknowledged(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path)
    async with Api.open(server.kubeconfig) as api:
        await api.make_namespace()
        since = (await api.get(api.core("configmaps"))).ok()["metadata"]["resourceVersion"]
        writers = Writers(api)
        await writers.run(server)
        namespace = api.namespace
    server.stop(signal.SIGKILL)
    assert ACKNOWLEDGED_AT_THE_KILL / 2 <= len(writers.acknowledged) < OBJECTS

    again = ServerProcess(tmp_path)
    async with Api.open(again.kubeconfig) as api:
        api.namespace = namespace
        listed = (await api.get(api.core("configmaps"))).ok()["items"]
        found = {one["metadata"]["name"]: one for one in listed if one["metadata"]["name"].startswith("object-")}
        for name, value in writers.acknowledged.items():
            assert int(found[name]["data"]["first"]) >= value
        assert all(one["data"]["first"] == one["data"]["second"] for one in found.values())
        events = await replayed(api, since, found)
        for name, one in found.items():
            kinds = ["ADDED", "MODIFIED"][: int(one["data"]["first"])]
            assert [kind for kind, _ in events[name]] == kinds
            assert events[name][-1][1] == int(one["metadata"]["resourceVersion"])
        (await api.post(api.core("configmaps"), content("afterwards", 1))).ok(201)
    again.stop()
