"""Claims that were allocated for a place which their pod did not get: nobody is kept from other places by them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from build.frozen_api import FrozenApi
from build.live_schedulers import add_node, places, start_scheduler
from build.live_schedulers import pod as plain
from build.small_clusters import SmallCluster, small_cluster
from build.virtual_time import virtual
from shoal.client.item import Obj
from shoal.client.kind import (
    DEVICE_CLASSES,
    NODES,
    PODS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    Kind,
)
from shoal.client.refusals import InvalidError
from shoal.client.write_through import WriteThroughApi
from shoal.embedded.controllers.claim_templates.controller import resource_claim_controller

_ASKS = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpus"}}]}}


async def _fleet(cluster: SmallCluster) -> None:
    """Two nodes with a device each."""
    for name in ("n1", "n2"):
        await add_node(cluster, name)
        pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": "gpu.example.com", "nodeName": name, "pool": pool, "devices": [{"name": "gpu-0"}]}
        await cluster.create(RESOURCE_SLICES, {"metadata": {"name": name}, "spec": spec})
    await cluster.create(DEVICE_CLASSES, {"metadata": {"name": "gpus"}, "spec": {}})
    await cluster.create(RESOURCE_CLAIM_TEMPLATES, {"metadata": {"name": "one"}, "spec": {"spec": _ASKS}})


def _pod(name: str) -> Obj:
    made = plain(name, resourceClaims=[{"name": "mine", "resourceClaimTemplateName": "one"}])
    made["spec"]["containers"][0]["resources"]["claims"] = [{"name": "mine"}]
    return made


async def _devices(cluster: SmallCluster) -> dict[str, str]:
    """By the pod that a claim was made for: where its device is; empty while it has none."""
    found = {}
    for claim in await cluster.all(RESOURCE_CLAIMS):
        results = claim.get("status", {}).get("allocation", {}).get("devices", {}).get("results", [])
        (owner,) = claim["metadata"]["ownerReferences"]
        found[owner["name"]] = results[0]["pool"] if results else ""
    return found


async def _cordon(cluster: SmallCluster, node: str) -> None:
    await cluster.patch(NODES, node, {"spec": {"unschedulable": True}})


@virtual
async def test_a_pod_whose_claim_a_killed_process_allocated_goes_where_it_can(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [resource_claim_controller]) as cluster:
        await _fleet(cluster)
        # The finalizer and the allocation are written, and nothing after them.
        api = FrozenApi(cluster.api, writes=2)
        first = start_scheduler(cluster, api)
        await cluster.create(PODS, _pod("a"))
        await cluster.until(lambda: api.frozen.is_set(), 10)
        await first.kill()
        node = (await _devices(cluster))["a"]
        assert node
        await _cordon(cluster, node)
        start_scheduler(cluster)
        other = ({"n1", "n2"} - {node}).pop()
        await cluster.until(lambda: _is_at(cluster, "a", other), 10)
        assert await _devices(cluster) == {"a": other}


@virtual
async def test_a_claim_that_fits_is_used_as_it_is(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [resource_claim_controller]) as cluster:
        await _fleet(cluster)
        api = FrozenApi(cluster.api, writes=2)
        first = start_scheduler(cluster, api)
        await cluster.create(PODS, _pod("a"))
        await cluster.until(lambda: api.frozen.is_set(), 10)
        await first.kill()
        (before,) = await cluster.all(RESOURCE_CLAIMS)
        start_scheduler(cluster)
        await cluster.until(
            lambda: _is_at(cluster, "a", before["status"]["allocation"]["devices"]["results"][0]["pool"])
        )
        (after,) = await cluster.all(RESOURCE_CLAIMS)
        assert after["status"]["allocation"] == before["status"]["allocation"]


class _Refusing(WriteThroughApi):
    """Nobody is bound to the node that the first pod was to go to."""

    node = ""

    async def post(self, kind: Kind, namespace: str, name: str, subresource: str, obj: Obj) -> Any:
        if subresource == "binding":
            self.node = self.node or obj["target"]["name"]
            if obj["target"]["name"] == self.node:
                raise InvalidError("not here")
        return await super().post(kind, namespace, name, subresource, obj)


@virtual
async def test_a_pod_that_was_not_bound_where_its_claim_was_allocated_goes_elsewhere(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [resource_claim_controller]) as cluster:
        await _fleet(cluster)
        api = _Refusing(cluster.api, cluster.informers)
        start_scheduler(cluster, api)
        await cluster.create(PODS, _pod("a"))
        await cluster.until(lambda: bool(api.node), 10)
        await _cordon(cluster, api.node)
        other = ({"n1", "n2"} - {api.node}).pop()
        await cluster.until(lambda: _is_at(cluster, "a", other), 120)
        assert await _devices(cluster) == {"a": other}


async def _is_at(cluster: SmallCluster, name: str, node: str) -> bool:
    return (await places(cluster))[name] == node
