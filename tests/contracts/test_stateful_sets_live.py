"""StatefulSets: order, identity, claims of their own, updates from the last to the first.

The test plays the kubelet.
"""

from __future__ import annotations

from typing import Any

import pytest

from build.api_objects import IMAGE
from build.cluster_api import Api, Obj
from build.live_waits import create, living, name_of, until, until_items, until_pods
from build.live_workloads import images, workload
from build.played_pods import everything_runs, run

pytestmark = pytest.mark.needs("controllers")
NEXT = "registry.k8s.io/pause:3.9"


def at(api: Api) -> str:
    return api.group("apps/v1", "statefulsets", "db")


async def make(api: Api, **spec: Any) -> Obj:
    return await create(api, workload("StatefulSet", "db", serviceName="db", **spec), "statefulsets")


async def change(api: Api, **spec: Any) -> None:
    (await api.patch(at(api), {"spec": spec})).ok()


async def until_named(api: Api, *wanted: str) -> list[Obj]:
    pods = await until_items(api, api.core("pods"), lambda found: sorted(map(name_of, living(found))) == list(wanted))
    return sorted(living(pods), key=name_of)


async def test_pods_come_one_after_the_other_as_each_gets_ready(api: Api) -> None:
    made = await make(api, replicas=3)
    (first,) = await until_named(api, "db-0")
    assert first["spec"]["hostname"] == "db-0"
    assert first["spec"]["subdomain"] == "db"
    labels = first["metadata"]["labels"]
    assert labels["statefulset.kubernetes.io/pod-name"] == "db-0"
    assert labels["apps.kubernetes.io/pod-index"] == "0"
    assert labels["controller-revision-hash"].startswith("db-")
    assert first["metadata"]["ownerReferences"][0]["uid"] == made["metadata"]["uid"]
    await run(api, "db-0", ready=False)
    await until(api, at(api), lambda one: one["status"].get("currentReplicas") == 1)
    assert len(await until_pods(api, 1)) == 1
    await run(api, "db-0")
    await until_named(api, "db-0", "db-1")
    await run(api, "db-1")
    await until_named(api, "db-0", "db-1", "db-2")
    await run(api, "db-2")
    found = await until(api, at(api), lambda one: one["status"].get("availableReplicas") == 3)
    status = found["status"]
    assert (status["replicas"], status["readyReplicas"], status["updatedReplicas"]) == (3, 3, 3)
    assert status["currentRevision"] == status["updateRevision"] == labels["controller-revision-hash"]


async def test_the_last_goes_first_and_only_while_the_others_are_well(api: Api) -> None:
    async with everything_runs(api):
        await make(api, replicas=3)
        await until(api, at(api), lambda one: one["status"].get("availableReplicas") == 3)
        await change(api, replicas=1)
        await until_named(api, "db-0")


async def test_all_at_once_where_order_does_not_matter(api: Api) -> None:
    await make(api, replicas=3, podManagementPolicy="Parallel")
    await until_named(api, "db-0", "db-1", "db-2")
    await change(api, replicas=0)
    await until_pods(api, 0)


async def test_a_pod_that_is_lost_comes_back_under_its_name(api: Api) -> None:
    async with everything_runs(api):
        await make(api, replicas=2)
        await until(api, at(api), lambda one: one["status"].get("availableReplicas") == 2)
        (before, _) = await until_pods(api, 2)
        await api.delete(api.core("pods", "db-0"), gracePeriodSeconds=0)
        uid = before["metadata"]["uid"]
        await until(api, api.core("pods", "db-0"), lambda one: one["metadata"]["uid"] != uid)
        await until(api, at(api), lambda one: one["status"].get("availableReplicas") == 2)


async def test_an_update_goes_from_the_last_to_the_partition(api: Api) -> None:
    partition = {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}
    async with everything_runs(api):
        await make(api, replicas=3, updateStrategy=partition)
        await until(api, at(api), lambda one: one["status"].get("availableReplicas") == 3)
        await change(api, template={"spec": {"containers": [{"name": "main", "image": NEXT}]}})
        found = await until(
            api,
            at(api),
            lambda one: one["status"].get("updatedReplicas") == 2 and one["status"].get("availableReplicas") == 3,
        )
        assert [images([pod]) for pod in await until_pods(api, 3)] == [[IMAGE], [NEXT], [NEXT]]
        assert found["status"]["currentRevision"] != found["status"]["updateRevision"]
        await change(api, updateStrategy={"rollingUpdate": {"partition": 0}})
        done = await until(
            api, at(api), lambda one: one["status"].get("currentRevision") == found["status"]["updateRevision"]
        )
    assert done["status"]["updatedReplicas"] == 3
    revisions = (await api.get(api.group("apps/v1", "controllerrevisions"))).ok()["items"]
    assert sorted(one["revision"] for one in revisions) == [1, 2]


async def test_pods_are_updated_on_deletion_where_asked(api: Api) -> None:
    async with everything_runs(api):
        await make(api, replicas=1, updateStrategy={"type": "OnDelete"})
        await until(api, at(api), lambda one: one["status"].get("availableReplicas") == 1)
        await change(api, template={"spec": {"containers": [{"name": "main", "image": NEXT}]}})
        await until(api, at(api), lambda one: one["status"]["currentRevision"] != one["status"]["updateRevision"])
        assert images(await until_pods(api, 1)) == [IMAGE]
        await api.delete(api.core("pods", "db-0"), gracePeriodSeconds=0)
        await until_items(api, api.core("pods"), lambda pods: images(living(pods)) == [NEXT])


async def test_each_pod_has_claims_that_outlive_it_unless_said_otherwise(api: Api) -> None:
    claim = {
        "metadata": {"name": "data"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "example-no-such-class",
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    retention = {"whenScaled": "Delete", "whenDeleted": "Retain"}
    await make(
        api,
        replicas=2,
        podManagementPolicy="Parallel",
        volumeClaimTemplates=[claim],
        persistentVolumeClaimRetentionPolicy=retention,
    )
    for pod in await until_named(api, "db-0", "db-1"):
        (volume,) = [one for one in pod["spec"]["volumes"] if one["name"] == "data"]
        assert volume["persistentVolumeClaim"] == {"claimName": f"data-{name_of(pod)}"}
    claims = api.core("persistentvolumeclaims")
    found = await until_items(api, claims, lambda items: len(items) == 2)
    assert sorted(map(name_of, found)) == ["data-db-0", "data-db-1"]
    assert found[0]["metadata"]["labels"] == {"app": "db"}
    await change(api, replicas=1)
    left = await until_items(api, claims, lambda items: len(living(items)) == 1)
    assert name_of(living(left)[0]) == "data-db-0"
    (await api.delete(at(api), propagationPolicy="Background")).ok()
    await until_items(api, api.core("pods"), lambda pods: not pods)
    await until_items(api, claims, lambda items: [name_of(one) for one in items] == ["data-db-0"])


async def test_numbers_may_begin_elsewhere(api: Api) -> None:
    await make(api, replicas=2, podManagementPolicy="Parallel", ordinals={"start": 5})
    await until_named(api, "db-5", "db-6")
