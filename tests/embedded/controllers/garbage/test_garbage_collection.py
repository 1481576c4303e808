"""What goes and what stays when owners go: in the background, in the foreground, and orphaned."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import Any

from build.small_clusters import SmallCluster, small_cluster
from build.virtual_time import virtual
from shoal.client.item import Obj
from shoal.client.kind import CONFIG_MAPS, DEFINITIONS, NAMESPACES, SECRETS, Kind
from shoal.client.port import Deletion
from shoal.client.refusals import BusyError
from shoal.embedded.controllers.garbage.collector import garbage_collector

_WIDGETS = Kind("example.com", "v1", "widgets", "Widget")


def _reference(owner: Obj, *, blocks: bool = False, **changes: Any) -> Obj:
    reference = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
    }
    return reference | ({"blockOwnerDeletion": True} if blocks else {}) | changes


async def _made(
    cluster: SmallCluster, name: str, *owners: Obj, kind: Kind = CONFIG_MAPS, namespace: str = "default", **meta: Any
) -> Obj:
    meta |= {"name": name}
    if owners:
        meta["ownerReferences"] = list(owners)
    obj = await cluster.create(kind, {"metadata": meta}, namespace)
    return obj | {"apiVersion": kind.api_version, "kind": kind.name}


async def _let_go(cluster: SmallCluster, name: str) -> None:
    with contextlib.suppress(BusyError):
        await cluster.patch(CONFIG_MAPS, name, {"metadata": {"finalizers": None}})


async def _names(cluster: SmallCluster, kind: Kind = CONFIG_MAPS) -> set[str]:
    metas = [one["metadata"] for one in await cluster.all(kind)]
    return {meta["name"] for meta in metas if not meta["namespace"].startswith("kube-")} - {"kube-root-ca.crt"}


@virtual
async def test_dependents_go_after_their_only_owner_and_theirs_after_them(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [garbage_collector]) as cluster:
        owner = await _made(cluster, "owner")
        child = await _made(cluster, "child", _reference(owner))
        await _made(cluster, "grandchild", _reference(child), kind=SECRETS)
        await _made(cluster, "stranger")
        await cluster.pass_time(5)
        assert await _names(cluster) == {"owner", "child", "stranger"}
        await cluster.delete(CONFIG_MAPS, "owner")
        await cluster.pass_time(5)
        assert await _names(cluster) == {"stranger"}
        assert await _names(cluster, SECRETS) == set()


@virtual
async def test_a_second_owner_keeps_an_object_which_forgets_the_first(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [garbage_collector]) as cluster:
        first, second = await _made(cluster, "first"), await _made(cluster, "second")
        await _made(cluster, "child", _reference(first), _reference(second))
        await cluster.delete(CONFIG_MAPS, "first")
        await cluster.pass_time(5)
        left = (await cluster.get(CONFIG_MAPS, "child"))["metadata"]["ownerReferences"]
        assert [one["name"] for one in left] == ["second"]
        await cluster.delete(CONFIG_MAPS, "second")
        await cluster.pass_time(5)
        assert await _names(cluster) == set()


@virtual
async def test_an_owner_deleted_in_the_foreground_goes_after_those_that_block_it(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [garbage_collector]) as cluster:
        owner = await _made(cluster, "owner")
        await _made(cluster, "held", _reference(owner, blocks=True), finalizers=["example.com/hold"])
        await _made(cluster, "free", _reference(owner), finalizers=["example.com/hold"])
        await cluster.delete(CONFIG_MAPS, "owner", Deletion(policy="Foreground"))
        await cluster.pass_time(5)
        assert (await cluster.get(CONFIG_MAPS, "owner"))["metadata"]["finalizers"] == ["foregroundDeletion"]
        for name in ("held", "free"):
            assert (await cluster.get(CONFIG_MAPS, name))["metadata"]["deletionTimestamp"]
        await _let_go(cluster, "held")
        await cluster.pass_time(5)
        assert await _names(cluster) == {"free"}


@virtual
async def test_what_is_below_a_foreground_deletion_is_deleted_in_the_foreground_too(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [garbage_collector]) as cluster:
        owner = await _made(cluster, "owner")
        child = await _made(cluster, "child", _reference(owner, blocks=True))
        await _made(cluster, "leaf", _reference(child, blocks=True), finalizers=["example.com/hold"])
        await cluster.delete(CONFIG_MAPS, "owner", Deletion(policy="Foreground"))
        await cluster.pass_time(5)
        assert (await cluster.get(CONFIG_MAPS, "child"))["metadata"]["finalizers"] == ["foregroundDeletion"]
        await _let_go(cluster, "leaf")
        await cluster.pass_time(5)
        assert await _names(cluster) == set()


@virtual
async def test_a_circle_deleted_in_the_foreground_comes_to_an_end(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [garbage_collector]) as cluster:
        one = await _made(cluster, "one")
        two = await _made(cluster, "two", _reference(one, blocks=True))
        await cluster.patch(CONFIG_MAPS, "one", {"metadata": {"ownerReferences": [_reference(two, blocks=True)]}})
        await cluster.pass_time(5)
        await cluster.delete(CONFIG_MAPS, "one", Deletion(policy="Foreground"))
        await cluster.pass_time(5)
        assert await _names(cluster) == set()


@virtual
async def test_orphans_stay_and_name_their_owner_no_more(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [garbage_collector]) as cluster:
        owner, other = await _made(cluster, "owner"), await _made(cluster, "other")
        await _made(cluster, "alone", _reference(owner))
        await _made(cluster, "shared", _reference(owner), _reference(other))
        await cluster.delete(CONFIG_MAPS, "owner", Deletion(policy="Orphan"))
        await cluster.pass_time(5)
        assert await _names(cluster) == {"other", "alone", "shared"}
        assert "ownerReferences" not in (await cluster.get(CONFIG_MAPS, "alone"))["metadata"]
        left = (await cluster.get(CONFIG_MAPS, "shared"))["metadata"]["ownerReferences"]
        assert [one["name"] for one in left] == ["other"]


@virtual
async def test_an_owner_that_never_was_is_a_lost_one(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [garbage_collector]) as cluster:
        owner = await _made(cluster, "owner")
        await _made(cluster, "impostor", _reference(owner, uid="00000000-0000-0000-0000-000000000001"))
        await _made(cluster, "misnamed", _reference(owner, name="another"))
        await cluster.pass_time(5)
        assert await _names(cluster) == {"owner"}


@virtual
async def test_an_owner_of_a_kind_that_nobody_serves_is_waited_for(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [garbage_collector]) as cluster:
        owner = await _made(cluster, "owner")
        await _made(cluster, "child", _reference(owner, apiVersion="example.com/v1", kind="Unheard"))
        await cluster.pass_time(300)
        assert await _names(cluster) == {"owner", "child"}


@virtual
async def test_an_owner_is_judged_as_soon_as_its_kind_is_there_however_late(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [garbage_collector]) as cluster:
        owner = await _made(cluster, "owner")
        await _made(cluster, "child", _reference(owner, apiVersion="example.com/v1", kind="Widget"))
        await cluster.pass_time(301)
        await cluster.create(DEFINITIONS, _definition())
        await cluster.pass_time(2)
        assert await _names(cluster) == {"owner"}


@virtual
async def test_an_owner_in_another_namespace_is_no_owner_and_people_are_told(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [garbage_collector]) as cluster:
        await cluster.create(NAMESPACES, {"metadata": {"name": "elsewhere"}})
        owner = await _made(cluster, "owner")
        await _made(cluster, "child", _reference(owner), namespace="elsewhere")
        await cluster.pass_time(5)
        assert await _names(cluster) == {"owner"}
        (event,) = await cluster.events("child")
        assert event["reason"] == "OwnerRefInvalidNamespace"
        uid = owner["metadata"]["uid"]
        reference = f"[v1/ConfigMap, namespace: elsewhere, name: owner, uid: {uid}]"
        assert event["message"] == f'ownerRef {reference} does not exist in namespace "elsewhere"'


@virtual
async def test_a_cluster_wide_object_is_never_deleted_for_an_owner_in_a_namespace(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [garbage_collector]) as cluster:
        owner = await _made(cluster, "owner")
        space = {"metadata": {"name": "space", "ownerReferences": [_reference(owner)]}}
        await cluster.create(NAMESPACES, space)
        await cluster.delete(CONFIG_MAPS, "owner")
        await cluster.pass_time(60)
        assert "deletionTimestamp" not in (await cluster.get(NAMESPACES, "space"))["metadata"]


@virtual
async def test_custom_objects_own_and_are_owned_as_soon_as_they_are_defined(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [garbage_collector]) as cluster:
        await cluster.pass_time(1)
        await cluster.create(DEFINITIONS, _definition())
        await cluster.pass_time(2)
        widget = await _made(cluster, "widget", kind=_WIDGETS)
        await _made(cluster, "child", _reference(widget))
        await _made(cluster, "part", _reference(widget), kind=_WIDGETS)
        await cluster.pass_time(2)
        assert await _names(cluster) == {"child"}
        await cluster.delete(_WIDGETS, "widget")
        await cluster.pass_time(5)
        assert await _names(cluster) == set()
        assert await _names(cluster, _WIDGETS) == set()


@virtual
async def test_a_collector_that_broke_and_runs_again_goes_on_to_follow_custom_objects(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await cluster.create(DEFINITIONS, _definition())
        collector = garbage_collector(cluster.context())
        broken = asyncio.ensure_future(collector.run())
        await cluster.pass_time(5)
        broken.cancel()
        await asyncio.gather(broken, return_exceptions=True)
        cluster.tasks.append(asyncio.ensure_future(collector.run()))
        owner = await _made(cluster, "owner")
        await _made(cluster, "widget", _reference(owner), kind=_WIDGETS)
        await cluster.delete(CONFIG_MAPS, "owner")
        await cluster.pass_time(60)
        assert await _names(cluster, _WIDGETS) == set()


@virtual
async def test_a_collector_that_starts_later_finds_what_was_left_behind(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        for name, policy in (("gone", "Background"), ("front", "Foreground"), ("kept", "Orphan")):
            owner = await _made(cluster, name)
            await _made(cluster, f"below-{name}", _reference(owner, blocks=True))
            await cluster.delete(CONFIG_MAPS, name, Deletion(policy=policy))  # type: ignore[arg-type]
        cluster.start(garbage_collector)
        await cluster.pass_time(5)
        assert await _names(cluster) == {"below-kept"}


def _definition() -> Obj:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
    versions = [{"name": "v1", "served": True, "storage": True, "schema": schema}]
    spec = {"group": "example.com", "names": names, "scope": "Namespaced", "versions": versions}
    return {"metadata": {"name": "widgets.example.com"}, "spec": spec}
