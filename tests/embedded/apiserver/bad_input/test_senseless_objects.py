"""Whatever is sent as an object or a patch of any kind is taken or refused in Kubernetes' form, and nothing breaks."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

import build.kind_objects as kinds
from build.bad_objects import BadObjects
from build.depth import seeds
from build.in_process import APPLY, JSON, JSON_PATCH, MERGE, STRATEGIC, TABLE, InProcess, in_process
from shoal.embedded.apiserver.resource import Resource

_ROUNDS = 90
_PATCHES = (MERGE, STRATEGIC, JSON_PATCH, APPLY)
_DOORS = {"status", "scale", "binding", "eviction", "token", "ephemeralcontainers", "resize", "approval", "finalize"}


def path_of(resource: Resource, name: str = "") -> str:
    group = f"apis/{resource.group}" if resource.group else "api"
    namespace = "/namespaces/default" if resource.namespaced else ""
    return f"/{group}/{resource.version}{namespace}/{resource.plural}{f'/{name}' if name else ''}"


def sound_objects() -> list[dict[str, Any]]:
    return [
        kinds.pod(restartPolicy="Never", nodeSelector={"a": "b"}),
        kinds.workload("Deployment"),
        kinds.workload("StatefulSet", serviceName="web"),
        kinds.job(),
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}},
        {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": {"pods": "1000"}}},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "labels": {"a": "b"}}, "data": {"k": "v"}},
    ]


class Sender:
    """Sends what the generator of bad objects draws; every answer is looked at."""

    def __init__(self, api: InProcess, seed: int) -> None:
        self.api = api
        self.bad = BadObjects(seed)
        self.resources = [one for one in api.plane.context.catalog.all() if "create" in one.verbs]

    async def send(self, method: str, path: str, body: Any, media: str = JSON, accept: str = JSON) -> Any:
        async with asyncio.timeout(60):
            reply = await self.api.ask(method, path, body, media, {"Accept": accept})
        await asyncio.sleep(0)
        assert reply.is_sound(), (method, path, body, reply.raw[:500])
        assert not self.api.told.lines, (method, path, body, self.api.told.lines)
        return reply.body if reply.code < 300 else None

    async def any_object(self) -> None:
        resource = self.bad.pick(self.resources)
        await self.live(resource, self.bad.object_of(resource))

    async def worsened_object(self) -> None:
        obj = self.bad.pick(sound_objects())
        resource = next(
            one for one in self.resources if (one.api_version, one.kind) == (obj["apiVersion"], obj["kind"])
        )
        await self.live(resource, self.bad.worsened(obj, resource.schema, self.bad.pick((0, 1, 1, 2, 4))))

    async def live(self, resource: Resource, obj: dict[str, Any]) -> None:
        """Created, and if that was granted also changed, shown and deleted."""
        made = await self.send("POST", path_of(resource) + self.bad.pick(("", "?fieldValidation=Strict")), obj)
        if not made or "get" not in resource.verbs:
            return
        path = path_of(resource, made["metadata"]["name"])
        for _ in range(3):
            doors = ["", *(f"/{one.name}" for one in resource.subresources if one.name in _DOORS)]
            await self.change(path, self.bad.pick(doors), made, resource)
            await self.send("GET", path, b"", accept=TABLE)
        await self.send("DELETE", path, {"gracePeriodSeconds": self.bad.pick((0, -1, 5, 10**18, 10**30, "x"))})

    async def change(self, path: str, subresource: str, made: dict[str, Any], resource: Resource) -> None:
        worse = self.bad.worsened(made, resource.schema, self.bad.pick((1, 2, 3)))
        if isinstance(worse.get("metadata"), dict):
            worse["metadata"].pop("resourceVersion", None)
        if self.bad.random.random() < 0.4:
            await self.send(self.bad.pick(("PUT", "POST")), path + subresource, worse)
            return
        media = self.bad.pick(_PATCHES)
        if media == JSON_PATCH:
            worse = [self.operation(worse) for _ in range(self.bad.pick((1, 1, 2)))]
        elif isinstance(worse.get("metadata"), dict):
            worse["metadata"].pop("managedFields", None)
        await self.send(
            "PATCH", path + subresource + ("?fieldManager=m&force=true" if media == APPLY else ""), worse, media
        )

    def operation(self, obj: dict[str, Any]) -> Any:
        path, place = "", obj
        while isinstance(place, dict) and place and self.bad.random.random() < 0.7:
            key = self.bad.pick(list(place))
            path, place = f"{path}/{key}", place[key]
        paths = (path, path, path, f"{path}/-", f"{path}/01", "x", "/~2", None)
        operation = self.bad.pick(("add", "replace", "remove", "test", "copy", "move", None))
        return {"op": operation, "path": self.bad.pick(paths), "value": self.bad.junk(), "from": path}


@pytest.mark.parametrize("seed", seeds(2))
async def test_objects_of_any_kind_with_senseless_values_break_nothing(seed: int, tmp_path: Path) -> None:
    async with in_process(tmp_path) as api:
        sender = Sender(api, seed)
        for _ in range(_ROUNDS):
            await sender.any_object()
            await sender.worsened_object()


@pytest.mark.parametrize("seed", seeds(2))
async def test_bodies_with_broken_bytes_break_nothing(seed: int, tmp_path: Path) -> None:
    async with in_process(tmp_path) as api:
        sender = Sender(api, seed)
        for _ in range(_ROUNDS):
            for obj in sound_objects():
                body = sender.bad.broken(json.dumps(obj).encode())
                media = sender.bad.pick((JSON, JSON, "application/yaml", "application/vnd.kubernetes.protobuf"))
                await sender.send("POST", "/api/v1/namespaces/default/configmaps", body, media)
                await sender.send("PATCH", "/api/v1/namespaces/default/configmaps/c?fieldManager=m", body, APPLY)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [100 + seed for seed in seeds(1)])
async def test_many_objects_with_senseless_values_break_nothing(seed: int, tmp_path: Path) -> None:
    async with in_process(tmp_path) as api:
        sender = Sender(api, seed)
        for _ in range(3 * _ROUNDS):
            await sender.any_object()
            await sender.worsened_object()
