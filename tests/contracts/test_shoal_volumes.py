"""Volumes that wait for their first consumer: Shoal's scheduler chooses node and volume together."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import uuid4

import pytest

from build.cluster_api import Api, Obj
from build.live_waits import name_of, until
from build.shoal_pods import (
    KUBE,
    SHOAL,
    asking,
    create_pod,
    node_of,
    own_nodes,
    until_bound,
    until_refused,
    waiting_pod,
    words,
)

pytestmark = [pytest.mark.needs("controllers"), pytest.mark.usefixtures("shoal")]
both = pytest.mark.parametrize("scheduler", [KUBE, SHOAL])
VOLUMES, CLASSES = "/api/v1/persistentvolumes", "/apis/storage.k8s.io/v1/storageclasses"


@asynccontextmanager
async def waiting_class(api: Api) -> AsyncIterator[str]:
    name = f"waiting-{uuid4().hex[:10]}"
    body = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    (await api.post(CLASSES, body)).ok(201)
    try:
        yield name
    finally:
        await api.delete(f"{CLASSES}/{name}")


@asynccontextmanager
async def local_volume(api: Api, class_name: str, node: str) -> AsyncIterator[str]:
    name = f"volume-{uuid4().hex[:10]}"
    here = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": "1Gi"},
        "storageClassName": class_name,
        "local": {"path": "/var/lib/example"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}},
    }
    body = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec}
    (await api.post(VOLUMES, body)).ok(201)
    try:
        yield name
    finally:
        await api.delete(f"{VOLUMES}/{name}")
        await api.patch(f"{VOLUMES}/{name}", {"metadata": {"finalizers": None}})


async def claim(api: Api, class_name: str, name: str = "data") -> Obj:
    room = {"requests": {"storage": "1Gi"}}
    spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": class_name, "resources": room}
    body = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": spec}
    return (await api.post(api.core("persistentvolumeclaims"), body)).ok(201)


def mounting(api: Api, scheduler: str, name: str = "pod", claim: str = "data") -> Obj:
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]
    return waiting_pod(api, name, schedulerName=scheduler, volumes=volumes)


@both
async def test_the_pod_goes_where_the_volume_is_and_the_claim_is_bound_to_it(api: Api, scheduler: str) -> None:
    async with (
        own_nodes(api, 3) as nodes,
        waiting_class(api) as class_name,
        local_volume(api, class_name, nodes[1]) as volume,
    ):
        await claim(api, class_name)
        await create_pod(api, mounting(api, scheduler))
        assert node_of(await until_bound(api)) == nodes[1]
        found = (await api.get(api.core("persistentvolumeclaims", "data"))).ok()
        assert (found["status"]["phase"], found["spec"]["volumeName"]) == ("Bound", volume)
        await create_pod(api, mounting(api, scheduler, "second"))
        assert node_of(await until_bound(api, "second")) == nodes[1]
        for name in ("pod", "second"):
            await api.delete(api.core("pods", name), gracePeriodSeconds=0)
        await api.delete(api.core("persistentvolumeclaims", "data"))


@both
async def test_two_pods_never_take_one_volume(api: Api, scheduler: str) -> None:
    async with (
        own_nodes(api, 2) as (node, _),
        waiting_class(api) as class_name,
        local_volume(api, class_name, node),
    ):
        for name in ("one", "two"):
            await claim(api, class_name, name)
            await create_pod(api, mounting(api, scheduler, name, name))
        listed = await until(api, api.core("pods"), lambda pods: sum(bool(node_of(one)) for one in pods["items"]) == 1)
        (bound,) = [name_of(one) for one in listed["items"] if node_of(one)]
        other = {"one": "two", "two": "one"}[bound]
        await until_refused(api, other, "2 node(s) didn't find available persistent volumes to bind")
        async with local_volume(api, class_name, node):
            assert node_of(await until_bound(api, other)) == node
            for name in ("one", "two"):
                await api.delete(api.core("pods", name), gracePeriodSeconds=0)
                await api.delete(api.core("persistentvolumeclaims", name))


@both
async def test_a_claim_that_is_not_there_is_named(api: Api, scheduler: str) -> None:
    async with own_nodes(api) as (node,), waiting_class(api) as class_name:
        await create_pod(api, mounting(api, scheduler))
        assert 'persistentvolumeclaim "data" not found' in words(await until_refused(api))
        async with local_volume(api, class_name, node):
            await claim(api, class_name)
            assert node_of(await until_bound(api)) == node
            await api.delete(api.core("pods", "pod"), gracePeriodSeconds=0)
            await api.delete(api.core("persistentvolumeclaims", "data"))


@both
async def test_a_bound_volume_rules_out_the_nodes_that_have_room(api: Api, scheduler: str) -> None:
    async with (
        own_nodes(api, 3) as nodes,
        waiting_class(api) as class_name,
        local_volume(api, class_name, nodes[0]),
    ):
        await claim(api, class_name)
        first = mounting(api, scheduler)
        first["spec"]["containers"] = [asking(cpu="6")]
        await create_pod(api, first)
        await until_bound(api)
        second = mounting(api, scheduler, "second")
        second["spec"]["containers"] = [asking(cpu="6")]
        await create_pod(api, second)
        affinity = "2 node(s) didn't match PersistentVolume's node affinity"
        await until_refused(api, "second", "1 Insufficient cpu", affinity)
        await api.delete(api.core("pods", "pod"), gracePeriodSeconds=0)
        assert node_of(await until_bound(api, "second")) == nodes[0]
        await api.delete(api.core("pods", "second"), gracePeriodSeconds=0)
        await api.delete(api.core("persistentvolumeclaims", "data"))
