"""Many writers at once: what followers were told, what pages showed and what quotas count is what there is."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from build.followers import Follower
from build.in_process import APPLY, JSON, MERGE, InProcess, in_process
from shoal.embedded.apiserver.resource import Home, Ref
from shoal.units.quantity import Quantity

Obj = dict[str, Any]
_KINDS = {"configmaps": "ConfigMap", "pods": "Pod", "secrets": "Secret", "services": "Service"}
_QUERIES = ("", "labelSelector=app%3Da", "labelSelector=x+notin+(1)", "fieldSelector=metadata.name%3Dn3")
_HARD = {
    "first": {"pods": "7", "requests.cpu": "3", "requests.nvidia.com/gpu": "4", "count/secrets": "6"},
    "second": {"count/pods": "8", "services": "5", "services.nodeports": "3", "count/configmaps": "9"},
}
_QUOTAS = Home("", "resourcequotas")


class Writer:
    """Does at random what clients do, and keeps what was acknowledged."""

    def __init__(self, api: InProcess, seed: int) -> None:
        self.api = api
        self.random = Random(seed)
        self.acknowledged: list[tuple[str, Obj]] = []

    async def write(self, times: int) -> None:
        for _ in range(times):
            plural = self.random.choice(list(_KINDS))
            does = self.random.choices(
                (
                    self.create,
                    self.update,
                    self.merge,
                    self.apply,
                    self.let_go,
                    self.delete,
                    self.delete_some,
                    self.page,
                ),
                (35, 15, 15, 8, 4, 18, 1, 4),
            )[0]
            await does(f"/api/v1/namespaces/default/{plural}", f"n{self.random.randrange(12)}", plural)

    async def send(self, plural: str, method: str, path: str, body: Any, media: str = JSON) -> None:
        async with asyncio.timeout(60):
            reply = await self.api.ask(method, path, body, media)
        await asyncio.sleep(0)
        assert reply.code < 500, reply.raw
        is_gone = method == "PATCH" and body == {"metadata": {"finalizers": None}}
        if reply.code in (200, 201) and method != "DELETE" and not is_gone:
            self.acknowledged.append((plural, reply.body))

    async def create(self, base: str, name: str, plural: str) -> None:
        await self.send(plural, "POST", base, self.drawn(plural, name))

    async def update(self, base: str, name: str, plural: str) -> None:
        found = await self.api.ask("GET", f"{base}/{name}")
        if found.code == 200:
            obj = found.body
            obj["metadata"].setdefault("labels", {})["x"] = str(self.random.randrange(3))
            if self.random.random() < 0.3:
                del obj["metadata"]["resourceVersion"]
            if obj["metadata"].get("finalizers") or "deletionTimestamp" not in obj["metadata"]:
                await self.send(plural, "PUT", f"{base}/{name}", obj)

    async def merge(self, base: str, name: str, plural: str) -> None:
        labels = {"app": self.random.choice("abc"), "w": str(self.random.random())}
        await self.send(plural, "PATCH", f"{base}/{name}", {"metadata": {"labels": labels}}, MERGE)

    async def apply(self, base: str, name: str, plural: str) -> None:
        obj = self.drawn(plural, name)
        # Held by every apply, so that none lets a deleted object go.
        obj["metadata"]["finalizers"] = ["example.com/held"]
        manager = self.random.choice("ab")
        await self.send(plural, "PATCH", f"{base}/{name}?fieldManager={manager}&force=true", obj, APPLY)

    async def let_go(self, base: str, name: str, plural: str) -> None:
        await self.send(plural, "PATCH", f"{base}/{name}", {"metadata": {"finalizers": None}}, MERGE)

    async def delete(self, base: str, name: str, plural: str) -> None:
        await self.send(plural, "DELETE", f"{base}/{name}", {"gracePeriodSeconds": self.random.choice((0, 0, 5))})

    async def delete_some(self, base: str, _: str, plural: str) -> None:
        await self.send(plural, "DELETE", f"{base}?labelSelector=app%3Da", {})

    async def page(self, base: str, _: str, __: str) -> None:
        """A list read in pages, with others writing between them, is the list at the revision of its first page."""
        page = (await self.api.ask("GET", f"{base}?limit=2")).body
        items, revision = page["items"], page["metadata"]["resourceVersion"]
        while page["metadata"].get("continue"):
            await asyncio.sleep(0)
            page = (await self.api.ask("GET", f"{base}?limit=2&continue={page['metadata']['continue']}")).body
            assert page["metadata"]["resourceVersion"] == revision
            items += page["items"]
        whole = await self.api.ask("GET", f"{base}?resourceVersion={revision}&resourceVersionMatch=Exact")
        assert whole.body["items"] == items

    def drawn(self, plural: str, name: str) -> Obj:
        labels = {"app": self.random.choice("ab"), "x": str(self.random.randrange(3))}
        obj: Obj = {"kind": _KINDS[plural], "apiVersion": "v1", "metadata": {"name": name, "labels": labels}}
        if self.random.random() < 0.2:
            obj["metadata"]["finalizers"] = ["example.com/held"]
        if plural == "pods":
            gpu = {"nvidia.com/gpu": "1"}
            asks = self.random.choice(({"requests": {"cpu": "1", **gpu}, "limits": gpu}, {"requests": {"cpu": "100m"}}))
            obj["spec"] = {"containers": [{"name": "c", "image": "i", "resources": asks}]}
            if self.random.random() < 0.3:
                obj["spec"]["nodeName"] = "n1"
        elif plural == "services":
            obj["spec"] = {"ports": [{"port": 80}], "type": self.random.choice(("ClusterIP", "NodePort"))}
        else:
            obj["data"] = {"k": "MQ=="}
        return obj


async def _limit(api: InProcess) -> None:
    watch = api.plane.context.state.watch(_QUOTAS, None, api.plane.context.state.revision)
    for name, hard in _HARD.items():
        quota = {"metadata": {"name": name}, "spec": {"hard": hard}}
        assert (await api.ask("POST", "/api/v1/namespaces/default/resourcequotas", quota)).code == 201
    counted: set[str] = set()
    while counted != set(_HARD):
        counted |= {event.record.ref.name for event in await watch.next_batch() if "used" in _status(event.record.data)}


def _status(data: bytes) -> Obj:
    found: Obj = json.loads(data).get("status") or {}
    return found


def _check_acknowledged(api: InProcess, writers: list[Writer], since: int) -> None:
    """Each is in the history as it was answered, once."""
    state = api.plane.context.state
    for plural in _KINDS:
        told = [obj for writer in writers for kind, obj in writer.acknowledged if kind == plural]
        happened = _history(state.watch(Home("", plural), None, since))
        for obj in told:
            assert happened[int(obj["metadata"]["resourceVersion"])] == obj


def _history(watch: Any) -> dict[int, Obj]:
    found: dict[int, Obj] = {}
    while events := watch._read():
        found |= {event.record.revision: event.record.obj() for event in events if event.kind != "DELETED"}
    return found


@pytest.mark.parametrize("seed", range(3))
async def test_followers_pages_quotas_and_acknowledgements_agree_after_a_storm(seed: int, tmp_path: Path) -> None:
    async with in_process(tmp_path) as api:
        state = api.plane.context.state
        await _limit(api)
        since = state.revision
        followers = [Follower(api, plural, query) for plural in _KINDS for query in _QUERIES]
        for follower in followers:
            await follower.start()
        used = state.watch(_QUOTAS, None, since)
        writers = [Writer(api, seed * 100 + number) for number in range(16)]
        await asyncio.gather(*(writer.write(40) for writer in writers))
        for follower in followers:
            followed, there = await follower.settled()
            assert followed == there, (follower.plural, follower.query)
        assert not api.told.lines
        _check_acknowledged(api, writers, since)
        for quota in _history(used).values():
            hard = quota["status"]["hard"]
            for name, amount in quota["status"]["used"].items():
                assert Quantity.parse(amount) <= Quantity.parse(hard[name]), (quota["metadata"]["name"], name)
        for name in _HARD:
            record = state.get(Ref(_QUOTAS, "default", name))
            assert record is not None
            assert api.plane.context.quotas.counted(record.obj()).used == _status(record.data)["used"]
