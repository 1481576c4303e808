"""Garbage collection: what goes with its owner, before it, or stays. Owners are plain ConfigMaps here."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import uuid4

import pytest

from build.api_objects import HELD, let_go, make_configmap
from build.cluster_api import Api, Obj
from build.live_waits import until, until_gone

pytestmark = pytest.mark.needs("controllers")


def reference(owner: Obj, **more: Any) -> Obj:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        **more,
    }


def at(api: Api, name: str) -> str:
    return api.core("configmaps", name)


async def family(api: Api, **child: Any) -> Obj:
    owner = await make_configmap(api, "owner")
    await make_configmap(api, "child", ownerReferences=[reference(owner, blockOwnerDeletion=True)], **child)
    return owner


async def known(api: Api, owner: Obj) -> None:
    """The collector knows of the child from now on: it has taken away another's."""
    await make_configmap(api, "probe", ownerReferences=[{**reference(owner), "uid": str(uuid4())}])
    await until_gone(api, at(api, "probe"))


async def test_children_go_after_their_owner_in_the_background(api: Api) -> None:
    await family(api)
    (await api.delete(at(api, "owner"), propagationPolicy="Background")).ok()
    assert (await api.get(at(api, "owner"))).code == 404
    await until_gone(api, at(api, "child"))


async def test_in_the_foreground_the_owner_waits_for_its_children(api: Api) -> None:
    owner = await family(api, finalizers=[HELD])
    await known(api, owner)
    going = (await api.delete(at(api, "owner"), propagationPolicy="Foreground")).ok()
    assert going["metadata"]["finalizers"] == ["foregroundDeletion"]
    await until(api, at(api, "child"), lambda one: "deletionTimestamp" in one["metadata"])
    assert (await api.get(at(api, "owner"))).code == 200
    await let_go(api, at(api, "child"))
    await until_gone(api, at(api, "child"))
    await until_gone(api, at(api, "owner"))


async def test_in_the_foreground_only_children_that_block_are_waited_for(api: Api) -> None:
    owner = await make_configmap(api, "owner")
    await make_configmap(api, "child", ownerReferences=[reference(owner)], finalizers=[HELD])
    await known(api, owner)
    (await api.delete(at(api, "owner"), propagationPolicy="Foreground")).ok()
    await until_gone(api, at(api, "owner"))
    await until(api, at(api, "child"), lambda one: "deletionTimestamp" in one["metadata"])
    await let_go(api, at(api, "child"))


async def test_orphans_stay_and_forget_their_owner(api: Api) -> None:
    owner = await family(api)
    await known(api, owner)
    going = (await api.delete(at(api, "owner"), propagationPolicy="Orphan")).ok()
    assert going["metadata"]["finalizers"] == ["orphan"]
    await until_gone(api, at(api, "owner"))
    child = (await api.get(at(api, "child"))).ok()
    assert "ownerReferences" not in child["metadata"]
    assert "deletionTimestamp" not in child["metadata"]


async def test_a_child_of_two_stays_while_one_is_there(api: Api) -> None:
    first, second = await make_configmap(api, "first"), await make_configmap(api, "second")
    await make_configmap(api, "child", ownerReferences=[reference(first), reference(second)])
    (await api.delete(at(api, "first"), propagationPolicy="Background")).ok()
    left = await until(api, at(api, "child"), lambda one: len(one["metadata"]["ownerReferences"]) == 1)
    assert left["metadata"]["ownerReferences"] == [reference(second)]
    (await api.delete(at(api, "second"), propagationPolicy="Background")).ok()
    await until_gone(api, at(api, "child"))


async def test_whoever_names_an_owner_that_never_was_goes(api: Api) -> None:
    nobody = {"apiVersion": "v1", "kind": "ConfigMap", "name": "nobody", "uid": str(uuid4())}
    await make_configmap(api, "child", ownerReferences=[nobody])
    await until_gone(api, at(api, "child"))


async def test_a_namesake_is_not_the_owner(api: Api) -> None:
    owner = await make_configmap(api, "owner")
    await make_configmap(api, "child", ownerReferences=[{**reference(owner), "uid": str(uuid4())}])
    await until_gone(api, at(api, "child"))
    assert (await api.get(at(api, "owner"))).code == 200


async def test_generations_go_one_after_the_other(api: Api) -> None:
    before = await make_configmap(api, "g0")
    for number in range(1, 5):
        before = await make_configmap(api, f"g{number}", ownerReferences=[reference(before, blockOwnerDeletion=True)])
    (await api.delete(at(api, "g0"), propagationPolicy="Background")).ok()
    await asyncio.gather(*(until_gone(api, at(api, f"g{number}")) for number in range(5)))


async def test_two_that_own_each_other_go_in_the_foreground(api: Api) -> None:
    first = await make_configmap(api, "first")
    second = await make_configmap(api, "second", ownerReferences=[reference(first, blockOwnerDeletion=True)])
    owners = [reference(second, blockOwnerDeletion=True)]
    (await api.patch(at(api, "first"), {"metadata": {"ownerReferences": owners}})).ok()
    await known(api, first)
    (await api.delete(at(api, "first"), propagationPolicy="Foreground")).ok()
    await asyncio.gather(until_gone(api, at(api, "first")), until_gone(api, at(api, "second")))


async def test_secrets_and_accounts_may_be_owned_as_well(api: Api) -> None:
    owner = await make_configmap(api, "owner")
    for kind, plural in (("Secret", "secrets"), ("ServiceAccount", "serviceaccounts"), ("Service", "services")):
        body: Obj = {"apiVersion": "v1", "kind": kind, "metadata": {"name": "child"}}
        body["metadata"]["ownerReferences"] = [reference(owner)]
        if kind == "Service":
            body["spec"] = {"ports": [{"port": 80}]}
        (await api.post(api.core(plural), body)).ok(201)
    (await api.delete(at(api, "owner"), propagationPolicy="Background")).ok()
    for plural in ("secrets", "serviceaccounts", "services"):
        await until_gone(api, api.core(plural, "child"))
