"""Objects of custom kinds as owners and as what is owned: operators live by this.

A real cluster learns of new kinds from time to time only, so that these wait longer than others.
"""

from __future__ import annotations

import pytest

from build.api_objects import make_configmap
from build.cluster_api import Api, Obj
from build.contract_kinds import Kind, defined
from build.live_waits import NAMESPACE_ENDS_S, conditions, living, name_of, until, until_gone, until_items

pytestmark = pytest.mark.needs("controllers")
LEARNED_S = 90.0


def reference(owner: Obj, **more: object) -> Obj:
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": name_of(owner),
        "uid": owner["metadata"]["uid"],
        **more,
    }


async def own(kind: Kind, owner: Obj, name: str) -> Obj:
    body = kind.obj(name)
    body["metadata"]["ownerReferences"] = [reference(owner, blockOwnerDeletion=True)]
    return (await kind.api.post(kind.path(), body)).ok(201)


@pytest.mark.slow
async def test_what_a_custom_object_owns_goes_with_it(api: Api) -> None:
    async with defined(api) as kind:
        owner = await kind.made("owner")
        await make_configmap(api, "child", ownerReferences=[reference(owner)])
        (await api.delete(kind.path("owner"), propagationPolicy="Background")).ok()
        await until_gone(api, api.core("configmaps", "child"), within_s=LEARNED_S)


async def test_custom_objects_go_with_what_owns_them(api: Api) -> None:
    async with defined(api) as kind:
        owner = await make_configmap(api, "owner")
        await own(kind, owner, "child")
        (await api.delete(api.core("configmaps", "owner"), propagationPolicy="Background")).ok()
        await until_gone(api, kind.path("child"), within_s=LEARNED_S)


async def test_a_kind_that_is_taken_away_takes_its_objects(api: Api) -> None:
    async with defined(api) as kind:
        await kind.made("one")
        (await api.delete(kind.definition)).ok()
        await until_gone(api, kind.definition)
        assert (await api.get(kind.path("one"))).code == 404


async def test_a_namespace_ends_with_custom_objects_in_it(api: Api) -> None:
    namespace = f"/api/v1/namespaces/{api.namespace}"
    async with defined(api) as kind:
        held = kind.obj("held")
        held["metadata"]["finalizers"] = ["example.com/held"]
        (await api.post(kind.path(), held)).ok(201)
        (await api.delete(namespace)).ok()
        found = await until(
            api,
            namespace,
            lambda one: kind.plural in conditions(one).get("NamespaceContentRemaining", ("", "", ""))[2],
            within_s=NAMESPACE_ENDS_S,
        )
        said = conditions(found)["NamespaceContentRemaining"][2]
        assert f"{kind.plural}.{kind.group} has 1 resource instances" in said
        await until_items(api, kind.path(), lambda items: not living(items))
        (await api.patch(kind.path("held"), {"metadata": {"finalizers": None}})).ok()
        await until_gone(api, namespace, within_s=NAMESPACE_ENDS_S)
