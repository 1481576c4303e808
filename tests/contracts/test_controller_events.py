"""What controllers tell about the pods that they make and take away: `kubectl describe` shows nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from build.api_objects import NO_SCHEDULER, container
from build.cluster_api import Api, Obj
from build.live_waits import create, name_of, until, until_pods, until_said
from build.live_workloads import own_node, template, workload
from build.played_pods import end, everything_runs

pytestmark = pytest.mark.needs("controllers")


def job(**spec: Any) -> Obj:
    held = {"schedulerName": NO_SCHEDULER, "restartPolicy": "Never", "containers": [container()]}
    whole = {"template": {"spec": held}, **spec}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "train"}, "spec": whole}


async def test_a_replica_set_names_each_pod(api: Api) -> None:
    await create(api, workload("ReplicaSet", replicas=1), "replicasets")
    (pod,) = await until_pods(api, 1)
    (event,) = await until_said(api, "web", "SuccessfulCreate")
    assert (event["type"], event["message"]) == ("Normal", f"Created pod: {name_of(pod)}")
    assert event["source"]["component"] == "replicaset-controller"
    assert event["involvedObject"]["kind"] == "ReplicaSet"
    (await api.patch(api.group("apps/v1", "replicasets", "web"), {"spec": {"replicas": 0}})).ok()
    (event,) = await until_said(api, "web", "SuccessfulDelete")
    assert event["message"] == f"Deleted pod: {name_of(pod)}"


async def test_a_job_names_its_pods_and_its_end(api: Api) -> None:
    await create(api, job(), "jobs")
    (pod,) = await until_pods(api, 1)
    (event,) = await until_said(api, "train", "SuccessfulCreate")
    assert event["message"] == f"Created pod: {name_of(pod)}"
    assert event["source"]["component"] == "job-controller"
    await end(api, name_of(pod))
    (event,) = await until_said(api, "train", "Completed")
    assert (event["type"], event["message"]) == ("Normal", "Job completed")


async def test_a_suspended_job_says_so_each_time(api: Api) -> None:
    await create(api, job(suspend=True), "jobs")
    (event,) = await until_said(api, "train", "Suspended")
    assert event["message"] == "Job suspended"
    (await api.patch(api.group("batch/v1", "jobs", "train"), {"spec": {"suspend": False}})).ok()
    (event,) = await until_said(api, "train", "Resumed")
    assert event["message"] == "Job resumed"
    (pod,) = await until_pods(api, 1)
    (await api.patch(api.group("batch/v1", "jobs", "train"), {"spec": {"suspend": True}})).ok()
    (event,) = await until_said(api, "train", "SuccessfulDelete")
    assert event["message"] == f"Deleted pod: {name_of(pod)}"


async def test_a_stateful_set_names_pods_and_claims(api: Api) -> None:
    claim = {
        "metadata": {"name": "data"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "example-no-such-class",
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    made = workload("StatefulSet", "db", serviceName="db", replicas=1, volumeClaimTemplates=[claim])
    await create(api, made, "statefulsets")
    path = api.core("events")

    async def told(messages: set[str]) -> None:
        await until(
            api,
            path,
            lambda events: messages <= {event["message"] for event in events["items"]},
            fieldSelector="involvedObject.name=db",
        )

    await told(
        {
            "Create Claim data-db-0 Pod db-0 in StatefulSet db success",
            "Create Pod db-0 in StatefulSet db successful",
        }
    )
    (await api.patch(api.group("apps/v1", "statefulsets", "db"), {"spec": {"replicas": 0}})).ok()
    await told({"Delete Pod db-0 in StatefulSet db successful"})


async def test_a_daemon_set_names_each_pod(api: Api) -> None:
    labels = {"example.com/fleet": api.namespace}
    async with own_node(api, labels):
        held = template("agent", nodeSelector=labels)
        await create(api, workload("DaemonSet", "agent", template=held), "daemonsets")
        (pod,) = await until_pods(api, 1)
        (event,) = await until_said(api, "agent", "SuccessfulCreate")
        assert event["message"] == f"Created pod: {name_of(pod)}"
        assert event["source"]["component"] == "daemonset-controller"


async def test_a_deployment_tells_of_its_sets_as_they_grow_and_shrink(api: Api) -> None:
    path = api.group("apps/v1", "deployments", "web")
    async with everything_runs(api):
        await create(api, workload("Deployment", replicas=1), "deployments")
        await until(api, path, lambda one: one.get("status", {}).get("availableReplicas") == 1)
        (await api.patch(path, {"spec": {"replicas": 3}})).ok()
        await until(api, path, lambda one: one["status"].get("availableReplicas") == 3)
        (await api.patch(path, {"spec": {"replicas": 1}})).ok()
        await until(api, path, lambda one: one["status"].get("replicas") == 1)
    (owned,) = (await api.get(api.group("apps/v1", "replicasets"))).ok()["items"]
    wanted = {
        f"Scaled up replica set {name_of(owned)} from 0 to 1",
        f"Scaled up replica set {name_of(owned)} from 1 to 3",
        f"Scaled down replica set {name_of(owned)} from 3 to 1",
    }
    told = await until(
        api,
        api.core("events"),
        lambda events: wanted <= {event["message"] for event in events["items"]},
        fieldSelector="involvedObject.name=web,reason=ScalingReplicaSet",
    )
    assert {event["source"]["component"] for event in told["items"]} == {"deployment-controller"}
