"""Workloads from their creation to their end, with controllers, scheduler and simulated kubelets at work together."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from build.api_objects import IMAGE
from build.cluster_api import Api, Obj
from build.live_waits import create, is_true, name_of, until, until_gone, until_items
from build.simulated_pods import GPU, devices, simulated_nodes, tell, until_pod

pytestmark = [pytest.mark.needs("controllers", "kubelet"), pytest.mark.usefixtures("simulated_gpus")]


async def template(api: Api, app: str = "web", says: dict[str, str] | None = None, **spec: Any) -> Obj:
    kind = (await simulated_nodes(api))[0]["metadata"]["labels"]["node.kubernetes.io/instance-type"]
    notes = {f"shoal.dev/{key}": value for key, value in {"stop-after": "100ms", **(says or {})}.items()}
    held = {
        "nodeSelector": {"node.kubernetes.io/instance-type": kind},
        "terminationGracePeriodSeconds": 1,
        "containers": [{"name": "main", "image": IMAGE}],
        **spec,
    }
    return {"metadata": {"labels": {"app": app}, "annotations": notes}, "spec": held}


async def workload(api: Api, kind: str, **spec: Any) -> Obj:
    whole = {"selector": {"matchLabels": {"app": "web"}}, "template": await template(api), **spec}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "web"}, "spec": whole}


async def test_an_indexed_job_with_gpus_runs_to_its_end(api: Api) -> None:
    main = [{"name": "main", "image": IMAGE, "resources": {"limits": {GPU: "1"}}}]
    held = await template(api, says={"run-for": "1h"}, restartPolicy="Never", containers=main)
    spec = {"completionMode": "Indexed", "completions": 4, "parallelism": 4, "template": held}
    body = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "train"}, "spec": spec}
    await create(api, body, "jobs")
    path = api.group("batch/v1", "jobs", "train")
    found = await until(api, path, lambda one: one.get("status", {}).get("ready") == 4)
    assert found["status"]["active"] == 4
    pods = (await api.get(api.core("pods"))).ok()["items"]
    assert len({device for one in pods for device in devices(one)}) == 4
    for one in pods:
        await tell(api, {"run-for": "1ms"}, name_of(one))
    done = await until(api, path, lambda one: is_true(one, "Complete"))
    assert (done["status"]["succeeded"], done["status"]["completedIndexes"]) == (4, "0-3")


async def test_a_job_whose_program_fails_fails_as_it_was_told(api: Api) -> None:
    held = await template(api, says={"run-for": "200ms", "exit-code": "1"}, restartPolicy="Never")
    spec = {"backoffLimit": 0, "template": held}
    body = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "train"}, "spec": spec}
    await create(api, body, "jobs")
    path = api.group("batch/v1", "jobs", "train")
    found = await until(api, path, lambda one: is_true(one, "Failed"))
    assert found["status"]["failed"] == 1


async def test_a_deployment_serves_and_rolls_out(api: Api) -> None:
    await create(api, await workload(api, "Deployment", replicas=2), "deployments")
    service = {"selector": {"app": "web"}, "ports": [{"port": 80}]}
    body = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": service}
    (await api.post(api.core("services"), body)).ok(201)
    path = api.group("apps/v1", "deployments", "web")
    await until(api, path, lambda one: one.get("status", {}).get("availableReplicas") == 2)
    image = {"spec": {"containers": [{"name": "main", "image": "registry.k8s.io/pause:3.9"}]}}
    (await api.patch(path, {"spec": {"template": image}})).ok()
    await until(
        api,
        path,
        lambda one: (
            one["status"].get("observedGeneration", 0) >= one["metadata"]["generation"]
            and one["status"].get("updatedReplicas") == one["status"].get("availableReplicas") == 2
            and one["status"]["replicas"] == 2
        ),
    )
    pods = await until_items(api, api.core("pods"), lambda found: len(found) == 2)
    wanted = sorted(one["status"]["podIP"] for one in pods)

    def serves(slices: list[Obj]) -> bool:
        found = [one for each in slices for one in each.get("endpoints") or () if one["conditions"]["ready"]]
        return sorted(one["addresses"][0] for one in found) == wanted

    await until_items(api, api.group("discovery.k8s.io/v1", "endpointslices"), serves)
    (await api.delete(path, propagationPolicy="Foreground")).ok()
    await until_gone(api, path)
    assert (await api.get(api.core("pods"))).ok()["items"] == []


async def test_a_daemon_set_is_on_every_node_that_is_asked_for(api: Api) -> None:
    await create(api, await workload(api, "DaemonSet"), "daemonsets")
    names = sorted(map(name_of, await simulated_nodes(api)))
    path = api.group("apps/v1", "daemonsets", "web")
    await until(api, path, lambda one: one.get("status", {}).get("numberAvailable") == len(names))
    pods = (await api.get(api.core("pods"))).ok()["items"]
    assert sorted(one["spec"]["nodeName"] for one in pods) == names


async def test_a_stateful_set_starts_in_order_and_ends_from_the_last(api: Api) -> None:
    await create(api, await workload(api, "StatefulSet", replicas=2, serviceName="web"), "statefulsets")
    path = api.group("apps/v1", "statefulsets", "web")
    await until(api, path, lambda one: one.get("status", {}).get("availableReplicas") == 2)
    began = [(await api.get(api.core("pods", f"web-{index}"))).ok()["status"]["startTime"] for index in range(2)]
    assert began == sorted(began)
    (await api.patch(path, {"spec": {"replicas": 0}})).ok()
    await until_gone(api, api.core("pods", "web-1"))
    await until_gone(api, api.core("pods", "web-0"))


async def test_a_patient_claim_is_bound_where_its_first_consumer_goes(api: Api) -> None:
    node, kind = name_of((await simulated_nodes(api))[-1]), f"example-{uuid4().hex[:10]}"
    on_node = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
    class_ = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": kind},
        "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": kind},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": "1Gi"},
            "storageClassName": kind,
            "local": {"path": "/var/lib/example"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [on_node]}]}},
        },
    }
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": kind,
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    (await api.post("/apis/storage.k8s.io/v1/storageclasses", class_)).ok(201)
    (await api.post("/api/v1/persistentvolumes", volume)).ok(201)
    try:
        await create(api, claim, "persistentvolumeclaims")
        held = await template(api, volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}])
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": {**held["metadata"], "name": "user"}}
        await create(api, {**body, "spec": held["spec"]}, "pods")
        found = await until_pod(api, lambda one: one["status"].get("phase") == "Running", "user")
        assert found["spec"]["nodeName"] == node
        bound = (await api.get(api.core("persistentvolumeclaims", "data"))).ok()
        assert (bound["status"]["phase"], bound["spec"]["volumeName"]) == ("Bound", kind)
        await api.delete(api.core("pods", "user"), gracePeriodSeconds=0)
        await api.delete(api.core("persistentvolumeclaims", "data"))
        await until_gone(api, api.core("persistentvolumeclaims", "data"))
    finally:
        await api.delete(f"/api/v1/persistentvolumes/{kind}")
        await api.delete(f"/apis/storage.k8s.io/v1/storageclasses/{kind}")
