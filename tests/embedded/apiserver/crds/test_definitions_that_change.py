"""What is written while its definition changes is shown by the definition as it is then."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec

from build.in_process import JSON_PATCH, InProcess, in_process
from shoal.embedded.apiserver.resource import Home
from shoal.embedded.apiserver.storage.faulty import FaultyStorage
from shoal.embedded.apiserver.storage.memory import MemoryStorage

Obj = dict[str, Any]
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
DEFINITIONS = Home("apiextensions.k8s.io", "customresourcedefinitions")
THINGS = Home("x.io", "things")
WHOLE, TEXT = {"type": "integer"}, {"type": "string"}


def version(name: str, is_stored: bool, **fields: Obj) -> Obj:
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": fields}}}
    return {"name": name, "served": True, "storage": is_stored, "schema": {"openAPIV3Schema": schema}}


def definition(*versions: Obj) -> Obj:
    names = {"plural": "things", "kind": "Thing"}
    return {
        "kind": "CustomResourceDefinition",
        "apiVersion": "apiextensions.k8s.io/v1",
        "metadata": {"name": "things.x.io"},
        "spec": {"group": "x.io", "scope": "Namespaced", "names": names, "versions": list(versions)},
    }


def path(version: str, name: str = "") -> str:
    return f"/apis/x.io/{version}/namespaces/default/things" + (f"/{name}" if name else "")


async def define(api: InProcess, *versions: Obj) -> None:
    context = api.plane.context
    watch = context.state.watch(DEFINITIONS, None, context.state.revision)
    assert (await api.ask("POST", CRDS, definition(*versions))).code == 201
    async with asyncio.timeout(60):
        while context.catalog.find("x.io", "v1", "things") is None:
            await watch.next_batch()


async def written_while_it_changes(api: InProcess, storage: FaultyStorage, change: list[Obj], spec: Obj) -> None:
    storage.hold()
    changing = asyncio.create_task(api.ask("PATCH", f"{CRDS}/things.x.io", change, JSON_PATCH))
    await storage.held()
    thing = {"kind": "Thing", "apiVersion": "x.io/v1", "metadata": {"name": "t"}, "spec": spec}
    writing = asyncio.create_task(api.ask("POST", path("v1"), thing))
    for _ in range(20):
        await asyncio.sleep(0)
    storage.release()
    assert [(await changing).code, (await writing).code] == [200, 201]


async def test_an_object_in_the_former_storage_version_is_shown_in_the_version_asked_for(tmp_path: Path) -> None:
    storage = FaultyStorage(MemoryStorage())
    async with in_process(tmp_path, storage) as api:
        await define(api, version("v1", True), version("v2", False))
        move = [
            {"op": "replace", "path": "/spec/versions/0/storage", "value": False},
            {"op": "replace", "path": "/spec/versions/1/storage", "value": True},
        ]
        await written_while_it_changes(api, storage, move, {})
        for one in ("v1", "v2"):
            assert (await api.ask("GET", path(one, "t"))).body["apiVersion"] == f"x.io/{one}"
            listed = (await api.ask("GET", path(one))).body["items"]
            assert [item["apiVersion"] for item in listed] == [f"x.io/{one}"]


async def test_an_object_that_was_on_its_way_has_the_new_defaults_and_no_fields_that_are_gone(tmp_path: Path) -> None:
    storage = FaultyStorage(MemoryStorage())
    async with in_process(tmp_path, storage) as api:
        await define(api, version("v1", True, old=TEXT))
        added = [
            {"op": "replace", "path": "/spec/versions/0", "value": version("v1", True, new=WHOLE | {"default": 7})}
        ]
        await written_while_it_changes(api, storage, added, {"old": "x"})
        await asyncio.sleep(0)
        assert (await api.ask("GET", path("v1", "t"))).body["spec"] == {"new": 7}
        record = next(iter(api.plane.context.state.list(THINGS, None).records))
        assert record.obj()["spec"] == {"old": "x"}


async def test_a_definition_that_only_gets_a_label_is_not_read_again(tmp_path: Path) -> None:
    async with in_process(tmp_path) as api:
        await define(api, version("v1", True))
        catalog = api.plane.context.catalog
        before = catalog.stored(THINGS), catalog.stamp
        label = [{"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}]
        assert (await api.ask("PATCH", f"{CRDS}/things.x.io", label, JSON_PATCH)).code == 200
        assert (catalog.stored(THINGS), catalog.stamp) == before


async def test_a_short_name_that_is_given_later_is_served(tmp_path: Path) -> None:
    async with in_process(tmp_path) as api:
        await define(api, version("v1", True))
        other = definition(version("v1", True))
        other["metadata"]["name"] = "others.x.io"
        other["spec"]["names"] = {"plural": "others", "kind": "Other", "shortNames": ["o"]}
        assert (await api.ask("POST", CRDS, other)).code == 201
        context = api.plane.context
        watch = context.state.watch(DEFINITIONS, None, context.state.revision)
        wants = [{"op": "add", "path": "/spec/names/shortNames", "value": ["o"]}]
        assert (await api.ask("PATCH", f"{CRDS}/things.x.io", wants, JSON_PATCH)).code == 200
        assert (await api.ask("DELETE", f"{CRDS}/others.x.io")).code == 200
        async with asyncio.timeout(60):
            while True:
                stored = context.catalog.stored(THINGS)
                if stored is not None and stored.short_names == ("o",):
                    break
                await watch.next_batch()


async def test_a_webhook_that_converts_may_write_to_what_it_converts(tmp_path: Path) -> None:
    async with in_process(tmp_path) as api:
        hook = {"clientConfig": {"url": "https://127.0.0.1:1/"}, "conversionReviewVersions": ["v1"]}
        made = definition(version("v1", True), version("v2", False))
        made["spec"]["conversion"] = {"strategy": "Webhook", "webhook": hook}
        context = api.plane.context
        watch = context.state.watch(DEFINITIONS, None, context.state.revision)
        assert (await api.ask("POST", CRDS, made)).code == 201
        async with asyncio.timeout(60):
            while context.catalog.find("x.io", "v1", "things") is None:
                await watch.next_batch()
        thing = {"kind": "Thing", "apiVersion": "x.io/v1", "metadata": {"name": "t", "finalizers": ["x.io/hold"]}}
        assert (await api.ask("POST", path("v1"), thing)).code == 201
        written = list[int]()

        async def convert(objs: list[Obj], to: str, _: object) -> list[Obj]:
            if len(written) < 2 and any(obj["apiVersion"] != to for obj in objs):
                label = [{"op": "add", "path": "/metadata/labels", "value": {"try": str(len(written))}}]
                written.append(0)
                written[-1] = (await api.ask("PATCH", path("v1", "t"), label, JSON_PATCH)).code
            return [msgspec.json.decode(msgspec.json.encode(obj | {"apiVersion": to})) for obj in objs]

        context.convert = convert
        async with asyncio.timeout(60):
            labelled = [{"op": "add", "path": "/metadata/annotations", "value": {"c": "d"}}]
            changed = await api.ask("PATCH", path("v2", "t"), labelled, JSON_PATCH)
            assert (changed.code, written) == (200, [200, 200])
            written.clear()
            gone = await api.ask("DELETE", path("v2", "t"))
            assert (gone.code, written) == (200, [200, 200])
        left = (await api.ask("GET", path("v1", "t"))).body["metadata"]
        assert (left["labels"], left["annotations"]) == ({"try": "1"}, {"c": "d"})
        assert left["deletionTimestamp"]
