"""Claims and volumes: bound to each other, protected while they are in use, freed as their policy says."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

import pytest

from build.api_objects import IMAGE, make_pod
from build.cluster_api import Api, Obj
from build.live_waits import create, until, until_gone, until_said
from build.live_workloads import own_node

pytestmark = pytest.mark.needs("controllers")
VOLUMES, CLASSES = "/api/v1/persistentvolumes", "/apis/storage.k8s.io/v1/storageclasses"


def claim(class_name: str, size: str = "1Gi", **spec: Any) -> Obj:
    whole = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": class_name,
        "resources": {"requests": {"storage": size}},
        **spec,
    }
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"}, "spec": whole}


def at(api: Api) -> str:
    return api.core("persistentvolumeclaims", "data")


def is_bound(one: Obj) -> bool:
    return bool(one.get("status", {}).get("phase") == "Bound")


@asynccontextmanager
async def volume(api: Api, class_name: str, size: str = "1Gi", **spec: Any) -> AsyncIterator[str]:
    name = f"volume-{uuid4().hex[:10]}"
    whole = {
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": size},
        "storageClassName": class_name,
        "hostPath": {"path": "/var/lib/example"},
        **spec,
    }
    body = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": whole}
    (await api.post(VOLUMES, body)).ok(201)
    try:
        # Whoever binds volumes knows of it before a claim comes.
        await until(api, f"{VOLUMES}/{name}", lambda one: one["status"].get("phase") in ("Available", "Bound"))
        yield name
    finally:
        await api.delete(at(api))
        await api.delete(f"{VOLUMES}/{name}")
        await api.patch(f"{VOLUMES}/{name}", {"metadata": {"finalizers": None}})


@asynccontextmanager
async def storage_class(api: Api, **fields: Any) -> AsyncIterator[str]:
    name = unique()
    body = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": "kubernetes.io/no-provisioner",
        **fields,
    }
    (await api.post(CLASSES, body)).ok(201)
    try:
        yield name
    finally:
        await api.delete(f"{CLASSES}/{name}")


def unique() -> str:
    return f"example-{uuid4().hex[:10]}"


async def test_a_claim_finds_the_smallest_volume_that_is_large_enough(api: Api) -> None:
    kind = unique()
    async with volume(api, kind, "500Mi"), volume(api, kind, "5Gi"), volume(api, kind, "2Gi") as fitting:
        made = await create(api, claim(kind), "persistentvolumeclaims")
        found = await until(api, at(api), is_bound)
        assert found["spec"]["volumeName"] == fitting
        assert found["status"]["capacity"] == {"storage": "2Gi"}
        assert found["status"]["accessModes"] == ["ReadWriteOnce"]
        assert found["metadata"]["annotations"]["pv.kubernetes.io/bind-completed"] == "yes"
        assert found["metadata"]["annotations"]["pv.kubernetes.io/bound-by-controller"] == "yes"
        held = await until(api, f"{VOLUMES}/{fitting}", is_bound)
        reference = held["spec"]["claimRef"]
        assert (reference["name"], reference["namespace"]) == ("data", api.namespace)
        assert reference["uid"] == made["metadata"]["uid"]


async def test_a_volume_that_is_to_be_kept_is_released_and_not_used_again(api: Api) -> None:
    kind = unique()
    async with volume(api, kind) as name:
        await create(api, claim(kind), "persistentvolumeclaims")
        await until(api, at(api), is_bound)
        (await api.delete(at(api))).ok()
        await until_gone(api, at(api))
        await until(api, f"{VOLUMES}/{name}", lambda one: one["status"]["phase"] == "Released")


async def test_a_claim_waits_for_a_volume(api: Api) -> None:
    kind = unique()
    await create(api, claim(kind), "persistentvolumeclaims")
    event = (await until_said(api, "data", "ProvisioningFailed"))[0]
    assert event["message"] == f'storageclass.storage.k8s.io "{kind}" not found'
    assert (await api.get(at(api))).ok()["status"]["phase"] == "Pending"
    async with volume(api, kind):
        await until(api, at(api), is_bound)


async def test_a_claim_that_names_its_volume_gets_that_one(api: Api) -> None:
    kind = unique()
    async with volume(api, kind, "1Gi"), volume(api, kind, "9Gi") as large:
        await create(api, claim(kind, volumeName=large), "persistentvolumeclaims")
        found = await until(api, at(api), is_bound)
        assert found["status"]["capacity"] == {"storage": "9Gi"}


async def test_a_claim_of_a_patient_class_waits_for_its_first_consumer(api: Api) -> None:
    async with storage_class(api, volumeBindingMode="WaitForFirstConsumer") as kind, volume(api, kind):
        await create(api, claim(kind), "persistentvolumeclaims")
        (event, *_) = await until_said(api, "data", "WaitForFirstConsumer")
        assert event["message"] == "waiting for first consumer to be created before binding"
        assert (await api.get(at(api))).ok()["status"]["phase"] == "Pending"


async def test_a_claim_in_use_stays_until_the_pod_is_gone(api: Api) -> None:
    kind = unique()
    async with own_node(api) as node, volume(api, kind):
        await create(api, claim(kind), "persistentvolumeclaims")
        await until(api, at(api), is_bound)
        volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
        await make_pod(api, "user", nodeName=node, containers=[{"name": "main", "image": IMAGE}], volumes=volumes)
        going = (await api.delete(at(api))).ok()
        assert going["metadata"]["finalizers"] == ["kubernetes.io/pvc-protection"]
        await api.delete(api.core("pods", "user"))
        assert (await api.get(at(api))).code == 200
        await api.delete(api.core("pods", "user"), gracePeriodSeconds=0)
        await until_gone(api, at(api))


async def test_a_volume_in_use_stays_until_its_claim_is_gone(api: Api) -> None:
    kind = unique()
    async with volume(api, kind) as name:
        await create(api, claim(kind), "persistentvolumeclaims")
        await until(api, at(api), is_bound)
        going = (await api.delete(f"{VOLUMES}/{name}")).ok()
        assert going["metadata"]["finalizers"] == ["kubernetes.io/pv-protection"]
        await until(api, f"{VOLUMES}/{name}", lambda one: "deletionTimestamp" in one["metadata"])
        (await api.delete(at(api))).ok()
        await until_gone(api, f"{VOLUMES}/{name}")
