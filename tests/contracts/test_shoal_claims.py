"""Device claims that schedulers allocate: written to the claim before the pod is bound, never one device twice."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

import pytest

from build.cluster_api import Api, Obj
from build.live_waits import until_gone, until_items
from build.shoal_pods import (
    KUBE,
    SHOAL,
    create_pod,
    node_of,
    own_nodes,
    until_bound,
    until_refused,
    waiting_pod,
)

pytestmark = [pytest.mark.needs("controllers"), pytest.mark.usefixtures("shoal")]
both = pytest.mark.parametrize("scheduler", [KUBE, SHOAL])
GROUP = "resource.k8s.io/v1"


@asynccontextmanager
async def devices(api: Api, node: str, number: int = 2) -> AsyncIterator[str]:
    """The name of a class whose devices are all on the node."""
    driver = f"{uuid4().hex[:10]}.example.com"
    rule = {"cel": {"expression": f'device.driver == "{driver}"'}}
    listed = [{"name": f"gpu-{place}", "attributes": {"index": {"int": place}}} for place in range(number)]
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    slices = {"driver": driver, "nodeName": node, "pool": pool, "devices": listed}
    made: dict[str, Obj] = {
        "deviceclasses": {"kind": "DeviceClass", "metadata": {"name": driver}, "spec": {"selectors": [rule]}},
        "resourceslices": {"kind": "ResourceSlice", "metadata": {"name": f"slice-{driver}"}, "spec": slices},
    }
    for plural, body in made.items():
        (await api.post(f"/apis/{GROUP}/{plural}", {"apiVersion": GROUP, **body})).ok(201)
    try:
        yield driver
    finally:
        for plural, body in made.items():
            await api.delete(f"/apis/{GROUP}/{plural}/{body['metadata']['name']}")


async def template(api: Api, class_name: str, **request: Any) -> None:
    asks = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": class_name, **request}}]}}
    body = {"apiVersion": GROUP, "kind": "ResourceClaimTemplate", "metadata": {"name": "one"}, "spec": {"spec": asks}}
    (await api.post(api.group(GROUP, "resourceclaimtemplates"), body)).ok(201)


async def user(api: Api, name: str, scheduler: str) -> None:
    claims = [{"name": "gpu", "resourceClaimTemplateName": "one"}]
    await create_pod(api, waiting_pod(api, name, schedulerName=scheduler, resourceClaims=claims))


async def claim_of(api: Api, pod: Obj) -> Obj:
    (said,) = pod["status"]["resourceClaimStatuses"]
    return (await api.get(api.group(GROUP, "resourceclaims", said["resourceClaimName"]))).ok()


def device_of(claim: Obj) -> str:
    (result,) = claim["status"]["allocation"]["devices"]["results"]
    found: str = result["device"]
    return found


@both
async def test_each_pod_has_a_device_of_its_own_and_the_next_one_waits(api: Api, scheduler: str) -> None:
    async with own_nodes(api, 2) as (node, _), devices(api, node) as class_name:
        await template(api, class_name)
        held = set()
        for name in ("a", "b"):
            await user(api, name, scheduler)
            pod = await until_bound(api, name)
            assert node_of(pod) == node
            claim = await claim_of(api, pod)
            held.add(device_of(claim))
            (result,) = claim["status"]["allocation"]["devices"]["results"]
            assert (result["request"], result["driver"], result["pool"]) == ("gpu", class_name, node)
            (holder,) = claim["status"]["reservedFor"]
            assert holder == {"resource": "pods", "name": name, "uid": pod["metadata"]["uid"]}
        assert held == {"gpu-0", "gpu-1"}
        await user(api, "c", scheduler)
        await until_refused(api, "c", "2 cannot allocate all claims")
        await api.delete(api.core("pods", "a"), gracePeriodSeconds=0)
        await until_gone(api, api.core("pods", "a"))
        assert node_of(await until_bound(api, "c")) == node


@both
async def test_a_selector_of_the_claim_chooses_among_devices(api: Api, scheduler: str) -> None:
    async with own_nodes(api) as (node,), devices(api, node, 4) as class_name:
        rule = f'device.attributes["{class_name}"].index >= 3'
        await template(api, class_name, selectors=[{"cel": {"expression": rule}}])
        await user(api, "pod", scheduler)
        assert device_of(await claim_of(api, await until_bound(api))) == "gpu-3"


@both
async def test_pods_that_share_a_claim_go_where_its_device_is(api: Api, scheduler: str) -> None:
    async with own_nodes(api, 2) as (node, _), devices(api, node) as class_name:
        asks = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": class_name}}]}}
        body = {"apiVersion": GROUP, "kind": "ResourceClaim", "metadata": {"name": "shared"}, "spec": asks}
        (await api.post(api.group(GROUP, "resourceclaims"), body)).ok(201)
        claims = [{"name": "gpu", "resourceClaimName": "shared"}]
        for name in ("a", "b", "c"):
            await create_pod(api, waiting_pod(api, name, schedulerName=scheduler, resourceClaims=claims))
        assert {node_of(await until_bound(api, name)) for name in ("a", "b", "c")} == {node}
        (found,) = await until_items(
            api,
            api.group(GROUP, "resourceclaims"),
            lambda claims: len(claims[0]["status"].get("reservedFor", ())) == 3,
        )
        assert sorted(one["name"] for one in found["status"]["reservedFor"]) == ["a", "b", "c"]


@both
async def test_a_pod_waits_for_a_claim_that_is_not_there(api: Api, scheduler: str) -> None:
    async with own_nodes(api) as (node,), devices(api, node) as class_name:
        await user(api, "pod", scheduler)
        if scheduler == SHOAL:
            # kube-scheduler does not try such a pod, and says nothing.
            await until_refused(api)
        await template(api, class_name)
        assert node_of(await until_bound(api)) == node
