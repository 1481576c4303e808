"""What is written to claims of devices before a pod is bound, and what is left when the writer dies on the way."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from build.deciders import decider
from build.frozen_api import FrozenApi
from build.small_clusters import SmallCluster, small_cluster
from build.virtual_time import in_virtual_time, virtual
from shoal.client.item import Obj
from shoal.client.kind import (
    DEVICE_CLASSES,
    NODES,
    PODS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
)
from shoal.embedded.controllers.claim_templates.controller import resource_claim_controller
from shoal.units.errors import ConflictError

DRIVER = "gpu.example.com"
SPEC = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpus"}}]}}
MINE = [{"name": "mine", "resourceClaimTemplateName": "one"}]
OURS = [{"name": "ours", "resourceClaimName": "common"}]


async def add_fleet(cluster: SmallCluster, nodes: int = 1, devices: int = 2, **of_class: Any) -> None:
    for name in (f"n{number}" for number in range(nodes)):
        has = {"cpu": "8", "memory": "32Gi", "pods": "110"}
        meta = {"name": name, "labels": {"kubernetes.io/hostname": name}}
        await cluster.create(NODES, {"metadata": meta, "status": {"capacity": has, "allocatable": has}})
        await cluster.patch(NODES, name, {"spec": {"taints": None}})
        pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
        listed = [{"name": f"gpu-{at}"} for at in range(devices)]
        spec = {"driver": DRIVER, "nodeName": name, "pool": pool, "devices": listed}
        await cluster.create(RESOURCE_SLICES, {"metadata": {"name": name}, "spec": spec})
    await cluster.create(DEVICE_CLASSES, {"metadata": {"name": "gpus"}, "spec": of_class})
    await cluster.create(RESOURCE_CLAIM_TEMPLATES, {"metadata": {"name": "one"}, "spec": {"spec": SPEC}})


def pod(name: str, claims: list[Obj] | None = None, limits: dict[str, str] | None = None) -> Obj:
    container: Obj = {"name": "main", "image": "i", "resources": {"limits": limits or {}}}
    if claims:
        container["resources"]["claims"] = [{"name": one["name"]} for one in claims]
    return {"metadata": {"name": name}, "spec": {"containers": [container], "resourceClaims": claims or []}}


async def add_pods(cluster: SmallCluster, *pods: Obj) -> None:
    """And wait for the claims that are made for them."""
    asked = sum("resourceClaimTemplateName" in claim for one in pods for claim in one["spec"]["resourceClaims"])
    wanted = len(await cluster.all(RESOURCE_CLAIMS)) + asked
    for one in pods:
        await cluster.create(PODS, one)

    async def are_made() -> bool:
        return len(await cluster.all(RESOURCE_CLAIMS)) >= wanted

    await cluster.until(are_made)


async def given(cluster: SmallCluster) -> dict[str, tuple[list[str], list[str]]]:
    """By the pod of a claim or by its name: devices, and the pods it is reserved for."""
    found = {}
    for claim in await cluster.all(RESOURCE_CLAIMS):
        status, meta = claim.get("status", {}), claim["metadata"]
        results = status.get("allocation", {}).get("devices", {}).get("results", [])
        owners = meta.get("ownerReferences", [])
        name = owners[0]["name"] if owners else meta["name"]
        devices = [f"{one['pool']}/{one['device']}" for one in results]
        found[name] = devices, [one["name"] for one in status.get("reservedFor", [])]
    return found


@virtual
async def test_a_claim_is_allocated_and_reserved_before_its_pod_is_bound(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [resource_claim_controller]) as cluster:
        await add_fleet(cluster)
        await add_pods(cluster, pod("a", MINE), pod("b", MINE))
        async with decider(cluster) as first:
            await first.bind("a")
            await first.bind("b")
        found = await given(cluster)
        assert sorted(devices for devices, _ in found.values()) == [["n0/gpu-0"], ["n0/gpu-1"]]
        assert {name: users for name, (_, users) in found.items()} == {"a": ["a"], "b": ["b"]}
        (claim, _) = await cluster.all(RESOURCE_CLAIMS)
        assert claim["metadata"]["finalizers"] == ["resource.kubernetes.io/delete-protection"]
        selector = claim["status"]["allocation"]["nodeSelector"]["nodeSelectorTerms"]
        assert selector == [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n0"]}]}]


@virtual
async def test_preparing_twice_writes_once(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [resource_claim_controller]) as cluster:
        await add_fleet(cluster)
        await add_pods(cluster, pod("a", MINE))
        async with decider(cluster) as first:
            decided = first.decided("a")
            assert not isinstance(decided, str)
            assert await first.writer.prepare(*decided) == {}
            (before,) = await cluster.all(RESOURCE_CLAIMS)
            await first.writer.prepare(*decided)
            (after,) = await cluster.all(RESOURCE_CLAIMS)
        assert before == after


@virtual
async def test_of_alternatives_only_the_chosen_one_configures_the_driver(tmp_path: Path) -> None:
    def config(text: str) -> Obj:
        return {"opaque": {"driver": DRIVER, "parameters": {"mode": text}}}

    tolerations = [{"key": "weak", "operator": "Exists", "effect": "NoSchedule"}]
    options = [
        {"name": "best", "deviceClassName": "none"},
        {"name": "good", "deviceClassName": "gpus", "tolerations": tolerations},
    ]
    devices = {"requests": [{"name": "gpu", "firstAvailable": options}], "config": [config("own")]}
    async with small_cluster(tmp_path, [resource_claim_controller]) as cluster:
        await add_fleet(cluster, config=[config("gpus")])
        never = [{"cel": {"expression": 'device.driver == "none"'}}]
        spec = {"selectors": never, "config": [config("none")]}
        await cluster.create(DEVICE_CLASSES, {"metadata": {"name": "none"}, "spec": spec})
        await cluster.create(RESOURCE_CLAIMS, {"metadata": {"name": "common"}, "spec": {"devices": devices}})
        await add_pods(cluster, pod("a", OURS))
        async with decider(cluster) as first:
            await first.bind("a")
        (claim,) = await cluster.all(RESOURCE_CLAIMS)
        found = claim["status"]["allocation"]["devices"]
        assert [(one["source"], one["opaque"]["parameters"]["mode"]) for one in found["config"]] == [
            ("FromClass", "gpus"),
            ("FromClaim", "own"),
        ]
        assert [(one["request"], one["tolerations"]) for one in found["results"]] == [("gpu/good", tolerations)]


@virtual
async def test_pods_that_share_a_claim_go_where_it_is(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [resource_claim_controller]) as cluster:
        await add_fleet(cluster, nodes=3)
        await cluster.create(RESOURCE_CLAIMS, {"metadata": {"name": "common"}, "spec": SPEC})
        await add_pods(cluster, pod("a", OURS), pod("b", OURS))
        async with decider(cluster) as first:
            assert (await first.bind("a")).node == (await first.bind("b")).node
        ((devices, users),) = (await given(cluster)).values()
        assert (len(devices), users) == (1, ["a", "b"])


@virtual
async def test_many_pods_of_one_claim_are_prepared_at_one_time(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [resource_claim_controller]) as cluster:
        await add_fleet(cluster, nodes=2)
        await cluster.create(RESOURCE_CLAIMS, {"metadata": {"name": "common"}, "spec": SPEC})
        names = [f"p{number}" for number in range(10)]
        await add_pods(cluster, *(pod(name, OURS) for name in names))
        async with decider(cluster) as first:
            decided = [first.decided(name) for name in names]
            work = [first.writer.prepare(*one) for one in decided if not isinstance(one, str)]
            assert await asyncio.gather(*work) == [{}] * len(names)
        ((devices, users),) = (await given(cluster)).values()
        assert (len(devices), sorted(users)) == (1, names)


@virtual
async def test_a_claim_that_somebody_else_allocated_otherwise_is_decided_anew(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [resource_claim_controller]) as cluster:
        await add_fleet(cluster, nodes=2)
        await cluster.create(RESOURCE_CLAIMS, {"metadata": {"name": "common"}, "spec": SPEC})
        await add_pods(cluster, pod("a", OURS), pod("b", OURS))
        async with decider(cluster) as first:
            decided = first.decided("a")
            assert not isinstance(decided, str)
            other = "n1" if decided[1].node == "n0" else "n0"
            claim = await cluster.get(RESOURCE_CLAIMS, "common")
            uid = (await cluster.get(PODS, "b"))["metadata"]["uid"]
            result = {"request": "gpu", "driver": DRIVER, "pool": other, "device": "gpu-0"}
            claim["status"] = {
                "allocation": {"devices": {"results": [result]}},
                "reservedFor": [{"resource": "pods", "name": "b", "uid": uid}],
            }
            await cluster.api.update(RESOURCE_CLAIMS, claim, "status")
            with pytest.raises(ConflictError, match="allocated otherwise"):
                await first.writer.prepare(*decided)
            await cluster.pass_time(1)
            await first.bind("a")
        assert await given(cluster) == {"common": ([f"{other}/gpu-0"], ["b", "a"])}


@virtual
async def test_what_an_earlier_try_gave_to_the_same_pod_alone_is_taken_back(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [resource_claim_controller]) as cluster:
        await add_fleet(cluster)
        await add_pods(cluster, pod("a", MINE))
        async with decider(cluster) as first:
            decided = first.decided("a")
            assert not isinstance(decided, str)
            (claim,) = await cluster.all(RESOURCE_CLAIMS)
            result = {"request": "gpu", "driver": DRIVER, "pool": "n0", "device": "gpu-1"}
            user = {"resource": "pods", "name": "a", "uid": decided[0].uid}
            claim["status"] = {"allocation": {"devices": {"results": [result]}}, "reservedFor": [user]}
            await cluster.api.update(RESOURCE_CLAIMS, claim, "status")
            await first.writer.prepare(*decided)
        assert await given(cluster) == {"a": (["n0/gpu-0"], ["a"])}


@virtual
async def test_a_device_that_another_claim_has_by_now_is_not_given_again(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [resource_claim_controller]) as cluster:
        await add_fleet(cluster, devices=1)
        await add_pods(cluster, pod("a", MINE), pod("b", MINE))
        async with decider(cluster) as first:
            decided = first.decided("a")
            await first.bind("b")
            assert not isinstance(decided, str)
            with pytest.raises(ConflictError, match="was given to"):
                await first.writer.prepare(*decided)
        assert (await given(cluster))["a"] == ([], [])


@virtual
async def test_what_a_try_reserved_is_given_back_when_the_rest_cannot_be_had(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [resource_claim_controller]) as cluster:
        await add_fleet(cluster, devices=2)
        await cluster.create(RESOURCE_CLAIMS, {"metadata": {"name": "common"}, "spec": SPEC})
        await add_pods(cluster, pod("a", [*OURS, *MINE]), pod("b", MINE))
        async with decider(cluster) as first:
            decided = first.decided("a")
            assert not isinstance(decided, str)
            grant = decided[1].grant
            assert grant is not None
            (pick,) = next(one.picks for one in grant.claims if one.name == "mine")
            claim = next(one for one in await cluster.all(RESOURCE_CLAIMS) if one["metadata"]["name"].startswith("b-"))
            device = pick.device.rpartition("/")[2]
            result = {"request": "gpu", "driver": DRIVER, "pool": "n0", "device": device}
            claim["status"] = {"allocation": {"devices": {"results": [result]}}}
            await cluster.api.update(RESOURCE_CLAIMS, claim, "status")
            await cluster.pass_time(1)
            with pytest.raises(ConflictError):
                await first.writer.prepare(*decided)
        assert (await given(cluster))["common"] == ([], [])


@virtual
async def test_a_resource_that_a_class_serves_gets_a_claim_of_its_own(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [resource_claim_controller]) as cluster:
        await add_fleet(cluster, extendedResourceName="example.com/gpu")
        await add_pods(cluster, pod("a", limits={"example.com/gpu": "2"}))
        async with decider(cluster) as first:
            decided = first.decided("a")
            assert not isinstance(decided, str)
            await first.writer.prepare(*decided)
            await first.writer.prepare(*decided)
            await first.bind("a")
        assert await given(cluster) == {"a": (["n0/gpu-0", "n0/gpu-1"], ["a"])}
        (claim,) = await cluster.all(RESOURCE_CLAIMS)
        assert claim["metadata"]["annotations"] == {"resource.kubernetes.io/extended-resource-claim": "true"}
        exact = {"deviceClassName": "gpus", "allocationMode": "ExactCount", "count": 2}
        assert claim["spec"]["devices"]["requests"] == [{"name": "container-0-request-0", "exactly": exact}]
        async with decider(cluster) as second:
            held = second.facts().pods["default/a"].grant
            assert held is not None
            assert [pick.device for one in held.claims for pick in one.picks] == [
                f"{DRIVER}/n0/gpu-0",
                f"{DRIVER}/n0/gpu-1",
            ]


@pytest.mark.parametrize("is_lost", [False, True])
@pytest.mark.parametrize("writes", range(6))
def test_whoever_follows_a_writer_that_died_finishes_its_work(tmp_path: Path, writes: int, *, is_lost: bool) -> None:
    async def story() -> None:
        async with small_cluster(tmp_path, [resource_claim_controller]) as cluster:
            await add_fleet(cluster, nodes=2, devices=2, extendedResourceName="example.com/gpu")
            await cluster.create(RESOURCE_CLAIMS, {"metadata": {"name": "common"}, "spec": SPEC})
            await add_pods(cluster, pod("a", [*OURS, *MINE]))
            await add_pods(cluster, pod("b", limits={"example.com/gpu": "1"}))
            api = FrozenApi(cluster.api, writes, is_lost=is_lost)
            async with decider(cluster, api) as first:
                work = asyncio.ensure_future(_all(first))
                frozen = asyncio.ensure_future(api.frozen.wait())
                await asyncio.wait([work, frozen], return_when="FIRST_COMPLETED")
                for task in (work, frozen):
                    task.cancel()
                await asyncio.gather(work, frozen, return_exceptions=True)
            async with decider(cluster) as second:
                await _all(second)
                facts = second.facts()
            found = await given(cluster)
            devices = [device for each, _ in found.values() for device in each]
            assert len(devices) == len(set(devices)) == 3
            users = {name: set(each) for name, (_, each) in found.items()}
            assert users["common"] == {"a"}
            assert users["b"] == {"b"}
            held = {
                pick.device.partition("/")[2]
                for holding in facts.pods.values()
                if holding.grant is not None
                for claim in holding.grant.claims
                for pick in claim.picks
            }
            assert held == set(devices)

    in_virtual_time(story())


async def _all(one: Any) -> None:
    for name in ("a", "b"):
        item = one.informers.of(PODS).get("default", name)
        if not item.obj()["spec"].get("nodeName"):
            await one.bind(name)
