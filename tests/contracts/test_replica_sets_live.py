"""ReplicaSets and ReplicationControllers keep a number of pods, take in what is theirs and let go what is not."""

from __future__ import annotations

import pytest

from build.api_objects import make_pod
from build.cluster_api import Api
from build.live_waits import create, is_true, name_of, until, until_pods, until_said
from build.live_workloads import template, workload
from build.played_pods import end, everything_runs, run

pytestmark = pytest.mark.needs("controllers")


def at(api: Api) -> str:
    return api.group("apps/v1", "replicasets", "web")


async def test_a_pod_that_goes_is_replaced_and_too_many_are_taken_away(api: Api) -> None:
    await create(api, workload("ReplicaSet", replicas=2), "replicasets")
    first, second = await until_pods(api, 2)
    await api.delete(api.core("pods", name_of(first)))
    await until_pods(api, 2)
    await run(api, name_of(second))
    found = await until(api, at(api), lambda one: one["status"].get("readyReplicas") == 1)
    status = found["status"]
    assert (status["replicas"], status["fullyLabeledReplicas"], status["availableReplicas"]) == (2, 2, 1)
    assert status["observedGeneration"] == 1
    scale = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "web"}, "spec": {"replicas": 1}}
    (await api.put(f"{at(api)}/scale", scale)).ok()
    (left,) = await until_pods(api, 1)
    # Those that are not ready go first.
    assert name_of(left) == name_of(second)


async def test_a_failed_pod_is_replaced_and_stays_to_be_looked_at(api: Api) -> None:
    await create(api, workload("ReplicaSet", replicas=1), "replicasets")
    (pod,) = await until_pods(api, 1)
    await end(api, name_of(pod), 1)
    await until_pods(api, 2)
    await until(api, at(api), lambda one: one["status"]["replicas"] == 1)


async def test_a_pod_without_owner_is_taken_in(api: Api) -> None:
    await make_pod(api, "found", labels={"app": "web"})
    made = await create(api, workload("ReplicaSet", replicas=1), "replicasets")
    pod = await until(api, api.core("pods", "found"), lambda one: "ownerReferences" in one["metadata"])
    (owner,) = pod["metadata"]["ownerReferences"]
    assert (owner["uid"], owner["controller"], owner["blockOwnerDeletion"]) == (made["metadata"]["uid"], True, True)
    await until_pods(api, 1)


async def test_a_pod_that_loses_its_label_is_let_go_and_replaced(api: Api) -> None:
    await create(api, workload("ReplicaSet", replicas=1), "replicasets")
    (pod,) = await until_pods(api, 1)
    path = api.core("pods", name_of(pod))
    (await api.patch(path, {"metadata": {"labels": {"app": "debug"}}})).ok()
    await until(api, path, lambda one: "ownerReferences" not in one["metadata"])
    await until_pods(api, 1, "app=web")


async def test_a_full_quota_is_a_condition_and_an_event(api: Api) -> None:
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none"}, "spec": {"hard": {"pods": "0"}}}
    (await api.post(api.core("resourcequotas"), quota)).ok(201)
    await until(api, api.core("resourcequotas", "none"), lambda one: one.get("status", {}).get("hard") == {"pods": "0"})
    await create(api, workload("ReplicaSet", replicas=1), "replicasets")
    found = await until(api, at(api), lambda one: is_true(one, "ReplicaFailure"))
    (condition,) = found["status"]["conditions"]
    assert condition["reason"] == "FailedCreate"
    assert "exceeded quota: none, requested: pods=1, used: pods=0, limited: pods=0" in condition["message"]
    event = (await until_said(api, "web", "FailedCreate"))[0]
    assert event["message"].startswith("Error creating: pods ")


async def test_the_old_kind_works_as_well(api: Api) -> None:
    spec = {"replicas": 2, "selector": {"app": "web"}, "template": template()}
    body = {"apiVersion": "v1", "kind": "ReplicationController", "metadata": {"name": "web"}, "spec": spec}
    async with everything_runs(api):
        await create(api, body, "replicationcontrollers")
        await until(
            api, api.core("replicationcontrollers", "web"), lambda one: one["status"].get("availableReplicas") == 2
        )
