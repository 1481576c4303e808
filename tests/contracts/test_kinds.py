"""Rules of single kinds: what the server drops, refuses and fills in."""

from __future__ import annotations

from typing import Any

import pytest

from build.cluster_api import STRATEGIC, Api, Obj
from build.contract_objects import config_map, container, deployment, gated_pod, made, service

PRIORITIES = "/apis/scheduling.k8s.io/v1/priorityclasses"


@pytest.mark.parametrize("name", ["system-node-critical", "system-cluster-critical"])
async def test_a_priority_class_of_the_system_cannot_be_deleted(api: Api, name: str) -> None:
    message = (await api.delete(f"{PRIORITIES}/{name}", dryRun="All")).refused(403, "Forbidden")
    words = "is forbidden: this is a system priority class and cannot be deleted"
    assert message == f'priorityclasses.scheduling.k8s.io "{name}" {words}'


@pytest.mark.parametrize("finalizer", ["bad one", "short", "", "A/b"])
async def test_the_finalizers_of_a_namespace_are_validated(api: Api, finalizer: str) -> None:
    path = f"/api/v1/namespaces/{api.namespace}"
    body = (await api.get(path)).ok()
    body["spec"]["finalizers"] = [finalizer]
    message = (await api.put(f"{path}/finalize", body)).refused(422, "Invalid")
    assert f'spec.finalizers[0]: Invalid value: "{finalizer}": ' in message
    assert (await api.get(path)).ok()["spec"]["finalizers"] == ["kubernetes"]


def _autoscaler(**target: Any) -> Obj:
    spec = {"maxReplicas": 2, "scaleTargetRef": {"kind": "Deployment", "name": "d", **target}}
    return {"metadata": {"name": "h"}, "spec": spec}


@pytest.mark.parametrize("version", ["autoscaling/v1", "autoscaling/v2"])
@pytest.mark.parametrize(
    ("target", "said"),
    [
        ({}, '"": apiVersion must specify API group'),
        ({"apiVersion": "v1"}, '"v1": apiVersion must specify API group'),
        ({"apiVersion": "a/b/c"}, '"a/b/c": unexpected GroupVersion string: a/b/c'),
    ],
)
async def test_an_autoscaler_says_the_group_of_its_target(api: Api, version: str, target: Obj, said: str) -> None:
    answer = await api.post(api.group(version, "horizontalpodautoscalers"), _autoscaler(**target))
    assert answer.refused(422, "Invalid") == (
        f'HorizontalPodAutoscaler.autoscaling "h" is invalid: spec.scaleTargetRef.apiVersion: Invalid value: {said}'
    )


@pytest.mark.parametrize("target", [{"apiVersion": "apps/v1"}, {"apiVersion": "v1", "kind": "ReplicationController"}])
async def test_an_autoscaler_may_scale_what_has_a_scale(api: Api, target: Obj) -> None:
    (await api.post(api.group("autoscaling/v2", "horizontalpodautoscalers"), _autoscaler(**target))).ok(201)


async def test_the_fields_of_coordinated_elections_are_dropped(api: Api) -> None:
    spec = {"strategy": "Odd", "preferredHolder": "b", "holderIdentity": "a"}
    path = api.group("coordination.k8s.io/v1", "leases")
    created = (await api.post(path, {"metadata": {"name": "l"}, "spec": spec})).ok(201)
    assert created["spec"] == {"holderIdentity": "a"}
    created["spec"] |= spec
    assert (await api.put(f"{path}/l", created)).ok()["spec"] == {"holderIdentity": "a"}


async def test_a_pod_never_has_less_than_no_time_to_end(api: Api) -> None:
    answer = await api.post(api.core("pods"), gated_pod("p", terminationGracePeriodSeconds=-1))
    assert answer.ok(201)["spec"]["terminationGracePeriodSeconds"] == 1
    assert not answer.warnings
    told = await api.post(
        api.group("apps/v1", "deployments"), deployment("d", template={"terminationGracePeriodSeconds": -1})
    )
    assert told.ok(201)["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] == -1
    assert any("negative values are invalid and will be treated as 1" in one for one in told.warnings)


async def test_a_pod_without_a_node_has_no_log(api: Api) -> None:
    await made(api, "pods", gated_pod("p"))
    answer = await api.get(api.core("pods", "p", "log"))
    assert (answer.code, answer.raw) == (204, b"")
    message = (await api.get(api.core("pods", "p", "log"), container="none")).refused(400, "BadRequest")
    assert message == "container none is not valid for pod p"


async def test_a_pod_that_is_deleted_at_once_says_so(api: Api) -> None:
    await made(api, "pods", gated_pod("p"))
    gone = (await api.delete(api.core("pods", "p"))).ok()["metadata"]
    assert gone["deletionTimestamp"]
    assert (gone["deletionGracePeriodSeconds"], gone["generation"]) == (0, 2)
    (await api.get(api.core("pods", "p"))).refused(404, "NotFound")


async def test_a_pod_on_its_way_out_that_is_deleted_at_once_says_so(api: Api) -> None:
    pod = gated_pod("p", nodeName=f"none-{api.namespace}", tolerations=[{"operator": "Exists"}])
    del pod["spec"]["schedulingGates"]
    await made(api, "pods", pod)
    going = (await api.delete(api.core("pods", "p"), {"gracePeriodSeconds": 100})).ok()["metadata"]
    assert (going["deletionGracePeriodSeconds"], going["generation"]) == (100, 2)
    gone = (await api.delete(api.core("pods", "p"), {"gracePeriodSeconds": 0})).ok()["metadata"]
    assert (gone["deletionGracePeriodSeconds"], gone["generation"]) == (0, 2)


async def test_what_is_no_pod_is_deleted_without_such_words(api: Api) -> None:
    await made(api, "configmaps", config_map("c", finalizers=["example.com/held"]))
    going = (await api.delete(api.core("configmaps", "c"), {"gracePeriodSeconds": 30})).ok()["metadata"]
    assert going["deletionGracePeriodSeconds"] == 0
    await api.patch(api.core("configmaps", "c"), {"metadata": {"finalizers": None}})


async def test_times_that_no_writer_says_are_null(api: Api) -> None:
    await made(api, "pods", gated_pod("p"))
    ended = {"terminated": {"exitCode": 1}}
    container_status = {
        "name": "main",
        "image": container()["image"],
        "imageID": "",
        "ready": False,
        "restartCount": 0,
        "state": {"running": {}},
        "lastState": ended,
    }
    patch = {"status": {"containerStatuses": [container_status]}}
    after = (await api.patch(api.core("pods", "p", "status"), patch, STRATEGIC)).ok()
    (found,) = after["status"]["containerStatuses"]
    assert found["state"] == {"running": {"startedAt": None}}
    assert found["lastState"] == {"terminated": {"exitCode": 1, "startedAt": None, "finishedAt": None}}
    await made(api, "services", service("s", {"port": 1}))
    conditions = {"status": {"conditions": [{"type": "A", "status": "True"}]}}
    (condition,) = (await api.patch(api.core("services", "s", "status"), conditions)).ok()["status"]["conditions"]
    assert condition["lastTransitionTime"] is None
