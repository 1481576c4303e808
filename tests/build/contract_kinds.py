"""Kinds of a test's own: definitions in a group that nobody else has, served before the test goes on, gone after it."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from build.cluster_api import PATIENCE_S, Answer, Api
from build.contract_objects import eventually

Obj = dict[str, Any]
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


_ANY: Obj = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def text(**more: Any) -> Obj:
    return {"type": "string", **more}


def whole(**more: Any) -> Obj:
    return {"type": "integer", **more}


def fields(properties: Obj | None = None, **more: Any) -> Obj:
    """The schema of an object with these fields."""
    return {"type": "object", **({"properties": properties} if properties else {}), **more}


def items(of: Obj, **more: Any) -> Obj:
    return {"type": "array", "items": of, **more}


def version(name: str = "v1", spec: Obj | None = None, *, root: Obj | None = None, **more: Any) -> Obj:
    """A served version; the one named v1 is stored. `spec` is the schema of spec, `root` the whole schema instead."""
    schema = root or fields({"spec": spec or _ANY, "status": _ANY})
    return {"name": name, "served": True, "storage": name == "v1", "schema": {"openAPIV3Schema": schema}, **more}


class Kind:
    """A defined kind: `Widget` in a group of its own."""

    def __init__(self, api: Api, crd: Obj) -> None:
        self.api = api
        self.crd = crd
        self.group: str = crd["spec"]["group"]
        self.kind: str = crd["spec"]["names"]["kind"]
        self.plural: str = crd["spec"]["names"]["plural"]
        self.name: str = crd["metadata"]["name"]
        self.definition = f"{CRDS}/{self.name}"

    def path(self, *rest: str, version: str = "v1") -> str:
        """In the test's namespace, or in none where the kind has none."""
        if self.crd["spec"]["scope"] == "Cluster":
            return "/".join((f"/apis/{self.group}/{version}/{self.plural}", *rest))
        return self.api.group(f"{self.group}/{version}", self.plural, *rest)

    def obj(self, name: str = "w", spec: Obj | None = None, *, version: str = "v1", **more: Any) -> Obj:
        made: Obj = {"apiVersion": f"{self.group}/{version}", "kind": self.kind, "metadata": {"name": name}, **more}
        return made if spec is None else {**made, "spec": spec}

    async def create(self, name: str = "w", spec: Obj | None = None, *, version: str = "v1", **more: Any) -> Answer:
        return await self.api.post(self.path(version=version), self.obj(name, spec, version=version, **more))

    async def made(self, name: str = "w", spec: Obj | None = None, *, version: str = "v1", **more: Any) -> Obj:
        return (await self.create(name, spec, version=version, **more)).ok(201)

    async def get(self, name: str = "w", *, version: str = "v1") -> Obj:
        return (await self.api.get(self.path(name, version=version))).ok()

    async def redefine(self, *versions: Obj) -> Obj:
        """The definition with these versions; what is served follows a little later."""
        return (await self.api.patch(self.definition, {"spec": {"versions": list(versions)}})).ok()


def definition(*versions: Obj, scope: str = "Namespaced", names: Obj | None = None, **spec: Any) -> Obj:
    group = f"t{uuid.uuid4().hex[:10]}.example.com"
    called = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList", **(names or {})}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{called['plural']}.{group}"},
        "spec": {"group": group, "scope": scope, "names": called, "versions": list(versions or [version()]), **spec},
    }


@asynccontextmanager
async def defined(api: Api, *versions: Obj, **spec: Any) -> AsyncIterator[Kind]:
    """The kind while it is served. Its definition is asked to go afterwards."""
    kind = Kind(api, definition(*versions, **spec))
    (await api.post(CRDS, kind.crd)).ok(201)
    try:
        await established(kind)
        yield kind
    finally:
        await api.delete(kind.definition)


async def established(kind: Kind) -> None:
    served = [one["name"] for one in kind.crd["spec"]["versions"] if one["served"]]
    for one in served:
        await eventually(partial(kind.api.get, kind.path(version=one)), lambda answer: answer.code == 200)


async def until_condition(api: Api, name: str, condition: str, wanted: str) -> Obj:
    """The definition once its condition says so."""

    def of(crd: Obj) -> Obj:
        conditions = crd.get("status", {}).get("conditions") or []
        return next((one for one in conditions if one["type"] == condition), {})

    found = await eventually(lambda: api.get(f"{CRDS}/{name}"), lambda answer: of(answer.body).get("status") == wanted)
    return of(found.body)


async def until_gone(api: Api, path: str) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while (await api.get(path)).code != 404:
            pass
