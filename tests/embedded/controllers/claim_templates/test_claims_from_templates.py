"""Pods get the claims that they ask for by template, and claims end with those who used them."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Any

import pytest

from build.small_clusters import SmallCluster, small_cluster
from build.stormy_api import STORM, StormyApi
from build.virtual_time import virtual
from shoal.client.item import Obj, item_of
from shoal.client.kind import PODS, RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS
from shoal.embedded.controllers.claim_templates.claim import ClaimingPod, PodClaim, new_claim
from shoal.embedded.controllers.claim_templates.controller import resource_claim_controller

_SPEC: Obj = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}}]}}
_PROTECTION = "resource.kubernetes.io/delete-protection"


async def _template(cluster: SmallCluster) -> None:
    spec = {"metadata": {"labels": {"team": "a"}, "annotations": {"note": "b"}}, "spec": _SPEC}
    await cluster.create(RESOURCE_CLAIM_TEMPLATES, {"metadata": {"name": "one-gpu"}, "spec": spec})


async def _pod(cluster: SmallCluster, name: str = "pod", **spec: Any) -> Obj:
    claims = [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}]
    containers = [{"name": "c", "image": "i"}]
    return await cluster.create(
        PODS, {"metadata": {"name": name}, "spec": {"containers": containers, "resourceClaims": claims, **spec}}
    )


async def _allocate(cluster: SmallCluster, claim: Obj, pod: Obj | None) -> None:
    name = claim["metadata"]["name"]
    await cluster.patch(RESOURCE_CLAIMS, name, {"metadata": {"finalizers": [_PROTECTION]}})
    results = [{"request": "gpu", "driver": "gpu.example.com", "pool": "n", "device": "gpu-0"}]
    status: Obj = {"allocation": {"devices": {"results": results}}}
    if pod is not None:
        meta = pod["metadata"]
        status["reservedFor"] = [{"resource": "pods", "name": meta["name"], "uid": meta["uid"]}]
    await cluster.patch(RESOURCE_CLAIMS, name, {"status": status}, "status")


@virtual
async def test_a_pod_gets_a_claim_of_its_own_and_learns_its_name(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [resource_claim_controller]) as cluster:
        await _template(cluster)
        pod = await _pod(cluster)
        await cluster.pass_time(2)
        (claim,) = await cluster.all(RESOURCE_CLAIMS)
        meta = claim["metadata"]
        assert meta["name"].startswith("pod-gpu-")
        assert meta["annotations"] == {"note": "b", "resource.kubernetes.io/pod-claim-name": "gpu"}
        assert meta["labels"] == {"team": "a"}
        owner = {"apiVersion": "v1", "kind": "Pod", "name": "pod", "uid": pod["metadata"]["uid"]}
        assert meta["ownerReferences"] == [owner | {"controller": True, "blockOwnerDeletion": True}]
        statuses = (await cluster.get(PODS, "pod"))["status"]["resourceClaimStatuses"]
        assert statuses == [{"name": "gpu", "resourceClaimName": meta["name"]}]


@virtual
async def test_a_pod_whose_template_is_missing_is_told_and_served_when_it_comes(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [resource_claim_controller]) as cluster:
        await _pod(cluster)
        await cluster.pass_time(2)
        (event, *_) = await cluster.events("pod")
        assert event["reason"] == "FailedResourceClaimCreation"
        words = 'resource claim template "one-gpu": resourceclaimtemplate.resource.k8s.io "one-gpu" not found'
        assert event["message"] == f"PodResourceClaim gpu: {words}"
        await _template(cluster)
        await cluster.pass_time(2)
        assert len(await cluster.all(RESOURCE_CLAIMS)) == 1


@virtual
async def test_a_claim_that_was_made_just_before_a_crash_is_not_made_twice(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await _template(cluster)
        pod = item_of((await cluster.api.create(PODS, _bare_pod())).data).read(ClaimingPod)
        template = await cluster.get(RESOURCE_CLAIM_TEMPLATES, "one-gpu")
        await cluster.create(RESOURCE_CLAIMS, new_claim(pod, PodClaim("gpu"), template))
        cluster.start(resource_claim_controller)
        await cluster.pass_time(2)
        (claim,) = await cluster.all(RESOURCE_CLAIMS)
        statuses = (await cluster.get(PODS, "pod"))["status"]["resourceClaimStatuses"]
        assert statuses == [{"name": "gpu", "resourceClaimName": claim["metadata"]["name"]}]


@virtual
async def test_each_pod_has_one_claim_after_a_storm_of_crashes(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await _template(cluster)
        names = [f"pod-{number}" for number in range(8)]
        for name in names:
            await _pod(cluster, name)
        storm = StormyApi(cluster.api, cluster.clock, random.Random(3), STORM)
        for seconds in (0.1, 0.2, 0.4, 0.8, 1.6):
            cluster.start(resource_claim_controller, api=storm)
            await cluster.pass_time(seconds)
            killed, cluster.tasks = cluster.tasks, []
            for task in killed:
                task.cancel()
            await asyncio.gather(*killed, return_exceptions=True)
        storm.calm()
        cluster.start(resource_claim_controller)
        await cluster.pass_time(120)
        assert storm.happened
        owners = [one["metadata"]["ownerReferences"][0]["name"] for one in await cluster.all(RESOURCE_CLAIMS)]
        assert sorted(owners) == names
        assert all(pod["status"]["resourceClaimStatuses"] for pod in await cluster.pods())


def _bare_pod() -> Obj:
    claims = [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}]
    spec = {"containers": [{"name": "c", "image": "i"}], "resourceClaims": claims}
    return {"metadata": {"name": "pod", "namespace": "default"}, "spec": spec}


@virtual
async def test_a_pod_that_is_done_gives_its_devices_back_and_its_claim_goes(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [resource_claim_controller]) as cluster:
        await _template(cluster)
        pod = await _pod(cluster)
        await cluster.pass_time(2)
        (claim,) = await cluster.all(RESOURCE_CLAIMS)
        await _allocate(cluster, claim, pod)
        await cluster.pass_time(2)
        assert (await cluster.all(RESOURCE_CLAIMS))[0]["status"]["allocation"]
        await cluster.patch(PODS, "pod", {"status": {"phase": "Succeeded"}}, "status")
        await cluster.pass_time(2)
        assert not await cluster.all(RESOURCE_CLAIMS)


@virtual
async def test_a_claim_of_its_own_is_free_again_when_its_last_user_is_gone(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [resource_claim_controller]) as cluster:
        claim = await cluster.create(RESOURCE_CLAIMS, {"metadata": {"name": "shared"}, "spec": _SPEC})
        claims = [{"name": "gpu", "resourceClaimName": "shared"}]
        pod = await _pod(cluster, resourceClaims=claims)
        await _allocate(cluster, claim, pod)
        await cluster.delete(PODS, "pod")
        await cluster.pass_time(2)
        left = await cluster.get(RESOURCE_CLAIMS, "shared")
        assert not left.get("status")
        assert "finalizers" not in left["metadata"]


@virtual
async def test_a_pod_bound_by_hand_has_its_claim_reserved(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [resource_claim_controller]) as cluster:
        await _template(cluster)
        pod = await _pod(cluster, nodeName="n")
        await cluster.pass_time(2)
        (claim,) = await cluster.all(RESOURCE_CLAIMS)
        await _allocate(cluster, claim, None)
        await cluster.patch(PODS, "pod", {"metadata": {"labels": {"seen": "again"}}})
        await cluster.pass_time(2)
        (user,) = (await cluster.all(RESOURCE_CLAIMS))[0]["status"]["reservedFor"]
        assert user == {"resource": "pods", "name": "pod", "uid": pod["metadata"]["uid"]}


@pytest.mark.parametrize(
    ("pod", "claim", "expected"),
    [
        pytest.param("pod", "gpu", "pod-gpu-", id="short names are kept"),
        pytest.param("p" * 60, "c" * 30, "p" * 37 + "-" + "c" * 18 + "-", id="long ones are shortened in proportion"),
    ],
)
def test_names_of_claims_tell_the_pod_and_its_word_for_them(pod: str, claim: str, expected: str) -> None:
    made = new_claim(_named(pod), PodClaim(claim), {"spec": {"spec": _SPEC}})
    assert made["metadata"]["generateName"] == expected


def _named(name: str) -> ClaimingPod:
    data = f'{{"metadata":{{"name":"{name}","namespace":"n","uid":"u"}},"spec":{{}}}}'
    return item_of(data.encode()).read(ClaimingPod)
