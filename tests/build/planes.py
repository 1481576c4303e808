"""A whole control plane inside the test's own loop, without a socket: the operations as the door calls them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from copy import deepcopy
from pathlib import Path
from typing import Any

from shoal.embedded.apiserver.calls import Actor, Call, Verb
from shoal.embedded.apiserver.resource import Obj, Resource
from shoal.embedded.apiserver.rest.changing import change
from shoal.embedded.apiserver.rest.creating import create
from shoal.embedded.apiserver.rest.deleting import DeleteOptions, delete
from shoal.embedded.apiserver.rest.incoming import accepted
from shoal.embedded.apiserver.server.control_plane import ControlPlane, open_plane
from shoal.embedded.apiserver.settings import Settings
from shoal.embedded.apiserver.state.record import Record
from shoal.embedded.apiserver.storage.memory import MemoryStorage
from shoal.embedded.apiserver.storage.port import Storage

ADMIN = Actor("admin", ("system:masters", "system:authenticated"))


class Operations:
    """Reads and writes of one user, by plain names."""

    def __init__(self, plane: ControlPlane) -> None:
        self.plane = plane
        self.context = plane.context
        self.state = plane.context.state

    def resource(self, plural: str, group: str = "", version: str = "v1") -> Resource:
        found = self.context.catalog.find(group, version, plural)
        assert found is not None
        return found

    def call(self, verb: Verb, plural: str, name: str = "", group: str = "", **more: Any) -> Call:
        return Call(verb, self.resource(plural, group), ADMIN, "default", name, field_manager="test", **more)

    async def create(self, plural: str, obj: Obj, group: str = "", **more: Any) -> Obj:
        call = self.call("create", plural, group=group, **more)
        return _shown(await create(self.context, call, accepted(call, obj)))

    async def update(self, plural: str, obj: Obj, group: str = "", **more: Any) -> Obj:
        call = self.call("update", plural, obj["metadata"]["name"], group, **more)

        async def make(_: Obj) -> Obj:
            return accepted(call, deepcopy(obj))

        return _shown(await change(self.context, call, make))

    async def delete(self, plural: str, name: str, options: DeleteOptions | None = None, group: str = "") -> bool:
        """Whether it is gone at once."""
        return (await delete(self.context, self.call("delete", plural, name, group), options or DeleteOptions()))[1]

    def find(self, plural: str, name: str, group: str = "") -> Record | None:
        return self.state.get(self.resource(plural, group).ref("default", name))


@asynccontextmanager
async def operations(folder: Path, storage: Storage | None = None) -> AsyncIterator[Operations]:
    plane = await open_plane(Settings(None, folder / "kubeconfig"), ("127.0.0.1", 1), storage or MemoryStorage())
    yield Operations(plane)
    await plane.close()


def config_map(name: str, **data: str) -> Obj:
    return {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name}, "data": data}


def _shown(found: Obj | Record) -> Obj:
    return found.obj() if isinstance(found, Record) else found
