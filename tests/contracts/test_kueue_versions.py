"""Kueue's kinds in both of their versions: stored once, and each version reads, writes and watches in its own words."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from build.cluster_api import Api
from build.contract_objects import managers
from build.kubectl_runs import Kubectl
from build.live_waits import until

Obj = dict[str, Any]
GROUP = "kueue.x-k8s.io"
OLD, NEW = f"{GROUP}/v1beta1", f"{GROUP}/v1beta2"
FLAVORS = [
    {
        "coveredResources": ["cpu"],
        "flavors": [{"name": "spot", "resources": [{"name": "cpu", "nominalQuota": "4", "borrowingLimit": "2"}]}],
    }
]
TEMPLATE = {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox"}]}}


@pytest.fixture(autouse=True)
async def converting(api: Api) -> None:
    """Elsewhere it is for whoever installed these kinds to say who converts them."""
    answer = await api.get(f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/clusterqueues.{GROUP}")
    if answer.code != 200:
        pytest.skip("nobody serves Kueue's kinds here")
    found = answer.ok()
    is_ours = found["metadata"].get("labels", {}).get("shoal.dev/provided") == "kueue"
    if found["spec"]["conversion"]["strategy"] != "Webhook" and not (is_ours and await _is_embedded(api)):
        pytest.skip("nobody converts Kueue's kinds here")


async def _is_embedded(api: Api) -> bool:
    return (await api.get("/apis/rbac.authorization.k8s.io/v1/clusterroles/system:shoal:fleet")).code == 200


def queue_of(api: Api, version: str, **spec: Any) -> Obj:
    return {"apiVersion": version, "kind": "ClusterQueue", "metadata": {"name": api.namespace}, "spec": spec}


def path_of(api: Api, version: str) -> str:
    return f"/apis/{version}/clusterqueues/{api.namespace}"


@pytest.fixture
async def queues(api: Api) -> AsyncIterator[Api]:
    yield api
    await api.delete(path_of(api, NEW))


async def test_a_queue_written_in_the_old_version_is_read_in_the_new_one(queues: Api) -> None:
    fungibility = {"whenCanBorrow": "Borrow", "whenCanPreempt": "Preempt"}
    body = queue_of(
        queues, OLD, cohort="x", admissionChecks=["a"], flavorFungibility=fungibility, resourceGroups=FLAVORS
    )
    made = (await queues.post(f"/apis/{OLD}/clusterqueues", body)).ok(201)
    assert (made["apiVersion"], made["spec"]["cohort"]) == (OLD, "x")
    new = (await queues.get(path_of(queues, NEW))).ok()
    assert new["spec"]["cohortName"] == "x"
    assert "cohort" not in new["spec"]
    assert "admissionChecks" not in new["spec"]
    assert [one["name"] for one in new["spec"]["admissionChecksStrategy"]["admissionChecks"]] == ["a"]
    fungibility = {"whenCanBorrow": "MayStopSearch", "whenCanPreempt": "MayStopSearch"}
    assert new["spec"]["flavorFungibility"] == fungibility
    assert new["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0]["borrowingLimit"] == "2"
    for name in ("uid", "resourceVersion", "creationTimestamp"):
        assert new["metadata"][name]
    old = (await queues.get(path_of(queues, OLD))).ok()
    assert old["spec"]["flavorFungibility"] == {"whenCanBorrow": "Borrow", "whenCanPreempt": "Preempt"}
    assert "cohortName" not in old["spec"]


async def test_what_is_left_out_is_the_default_of_the_version_it_is_read_in(queues: Api) -> None:
    (await queues.post(f"/apis/{NEW}/clusterqueues", queue_of(queues, NEW, cohortName="x"))).ok(201)
    new, old = [(await queues.get(path_of(queues, version))).ok()["spec"] for version in (NEW, OLD)]
    assert new["flavorFungibility"] == {"whenCanBorrow": "MayStopSearch", "whenCanPreempt": "TryNextFlavor"}
    assert old["flavorFungibility"] == {"whenCanBorrow": "Borrow", "whenCanPreempt": "TryNextFlavor"}
    assert (old["cohort"], "cohortName" in old) == ("x", False)
    listed = (await queues.get(f"/apis/{OLD}/clusterqueues")).ok()
    (one,) = [item for item in listed["items"] if item["metadata"]["name"] == queues.namespace]
    assert (one["apiVersion"], one["spec"]["cohort"]) == (OLD, "x")


async def test_a_queue_is_changed_in_either_version(queues: Api) -> None:
    (await queues.post(f"/apis/{OLD}/clusterqueues", queue_of(queues, OLD, cohort="x"))).ok(201)
    (await queues.patch(path_of(queues, NEW), {"spec": {"cohortName": "y"}})).ok(200)
    put = await replaced(queues, "y", "z")
    assert put["spec"]["cohort"] == "z"
    assert (await queues.get(path_of(queues, NEW))).ok()["spec"]["cohortName"] == "z"
    again = (await queues.patch(path_of(queues, OLD), {"spec": {"cohort": "z"}})).ok(200)
    assert again["metadata"]["generation"] == put["metadata"]["generation"]


async def replaced(queues: Api, present: str, cohort: str) -> Obj:
    """As the old version writes it, again if somebody told of its status meanwhile."""
    while True:
        old = (await queues.get(path_of(queues, OLD))).ok()
        assert old["spec"]["cohort"] == present
        answer = await queues.put(path_of(queues, OLD), {**old, "spec": {**old["spec"], "cohort": cohort}})
        if answer.code != 409:
            return answer.ok(200)


async def test_a_watch_speaks_its_own_version(queues: Api) -> None:
    fields = f"metadata.name={queues.namespace}"
    since = await queues.get(f"/apis/{OLD}/clusterqueues")
    version = since.ok()["metadata"]["resourceVersion"]
    query = {"resourceVersion": version, "fieldSelector": fields}
    async with (
        queues.watch(f"/apis/{OLD}/clusterqueues", **query) as old,
        queues.watch(f"/apis/{NEW}/clusterqueues", **query) as new,
    ):
        (await queues.post(f"/apis/{OLD}/clusterqueues", queue_of(queues, OLD, cohort="x"))).ok(201)
        assert (await old.next_of("ADDED"))["object"]["spec"]["cohort"] == "x"
        assert (await new.next_of("ADDED"))["object"]["spec"]["cohortName"] == "x"
        (await queues.patch(path_of(queues, NEW), {"spec": {"cohortName": "y"}})).ok(200)
        while (said := (await old.next_of("MODIFIED"))["object"]["spec"]["cohort"]) == "x":
            continue
        assert said == "y"
        (await queues.delete(path_of(queues, OLD))).ok()
        gone = (await old.next_of("DELETED"))["object"]
        assert (gone["apiVersion"], gone["spec"]["cohort"]) == (OLD, "y")


async def test_fields_are_applied_in_one_version_and_then_in_the_other(queues: Api) -> None:
    body = queue_of(queues, OLD, cohort="x", resourceGroups=FLAVORS)
    (await queues.apply(path_of(queues, OLD), body, "alice")).ok(201)
    body = queue_of(queues, NEW, cohortName="y", resourceGroups=FLAVORS)
    after = (await queues.apply(path_of(queues, NEW), body, "alice")).ok(200)
    assert after["spec"]["cohortName"] == "y"
    assert after["spec"]["resourceGroups"] == FLAVORS
    assert "f:cohortName" in managers(after)["alice", "Apply"]["f:spec"]
    other = queue_of(queues, OLD, cohort="z")
    refusal = (await queues.apply(path_of(queues, OLD), other, "bob")).refused(409)
    assert ".spec.cohort" in refusal
    await queues.apply(path_of(queues, NEW), queue_of(queues, NEW, resourceGroups=FLAVORS), "alice")
    assert "cohort" not in (await queues.get(path_of(queues, OLD))).ok()["spec"]


async def test_applying_the_same_again_changes_nothing(queues: Api) -> None:
    body = queue_of(queues, OLD, cohort="x", admissionChecks=["a"], flavorFungibility={"whenCanBorrow": "Borrow"})
    (await queues.apply(path_of(queues, OLD), body, "alice")).ok(201)
    first = (await queues.get(path_of(queues, OLD))).ok()["metadata"]["generation"]
    again = (await queues.apply(path_of(queues, OLD), body, "alice")).ok(200)
    assert again["metadata"]["generation"] == first


async def test_a_check_that_is_applied_no_more_is_demanded_no_more(queues: Api) -> None:
    (await queues.apply(path_of(queues, OLD), queue_of(queues, OLD, cohort="x", admissionChecks=["a"]), "alice")).ok()
    after = (await queues.apply(path_of(queues, OLD), queue_of(queues, OLD, cohort="x"), "alice")).ok(200)
    assert "admissionChecksStrategy" not in after["spec"]


async def test_a_local_queue_says_its_usage_as_each_version_calls_it(api: Api) -> None:
    old, new = (api.group(version, "localqueues") for version in (OLD, NEW))
    # Nobody looks after a queue that leads nowhere, so that what is written stays.
    body = {"apiVersion": OLD, "kind": "LocalQueue", "metadata": {"name": "q"}, "spec": {"clusterQueue": api.namespace}}
    (await api.post(old, body)).ok(201)
    usage = [{"name": "spot", "resources": [{"name": "cpu", "total": "3"}]}]
    (await api.patch(f"{old}/q/status", {"status": {"flavorUsage": usage}})).ok(200)
    shown = (await until(api, f"{new}/q", lambda one: one.get("status")))["status"]
    assert "flavorUsage" not in shown
    seen = (await api.get(f"{old}/q")).ok()["status"]
    assert "flavorsUsage" not in seen
    assert seen.get("flavorUsage") == shown.get("flavorsUsage")


async def test_a_workload_is_what_the_other_version_calls_it(api: Api) -> None:
    old, new = (api.group(version, "workloads") for version in (OLD, NEW))
    spec = {
        "queueName": "nobody",
        "active": False,
        "podSets": [{"name": "main", "count": 1, "template": TEMPLATE}],
        "priority": 7,
        "priorityClassName": "high",
        "priorityClassSource": f"{GROUP}/workloadpriorityclass",
    }
    (await api.post(old, {"apiVersion": OLD, "kind": "Workload", "metadata": {"name": "w"}, "spec": spec})).ok(201)
    shown = (await api.get(f"{new}/w")).ok()["spec"]
    assert shown["priorityClassRef"] == {"group": GROUP, "kind": "WorkloadPriorityClass", "name": "high"}
    assert not {"priorityClassName", "priorityClassSource"} & set(shown)
    domains = {"levels": ["host"], "domains": [{"values": ["a"], "count": 1}, {"values": ["b"], "count": 2}]}
    assignment = {"name": "main", "count": 3, "topologyAssignment": domains}
    status = {
        "admission": {"clusterQueue": "c", "podSetAssignments": [assignment]},
        "accumulatedPastExexcutionTimeSeconds": 5,
    }
    written = (await api.patch(f"{old}/w/status", {"status": status})).ok(200)["status"]
    assert written["accumulatedPastExexcutionTimeSeconds"] == 5
    assert written["admission"]["podSetAssignments"][0]["topologyAssignment"] == domains


async def test_a_status_written_in_the_old_version_is_packed_in_the_new_one(api: Api) -> None:
    old, new = (api.group(version, "workloads") for version in (OLD, NEW))
    spec = {"active": False, "podSets": [{"name": "main", "count": 3, "template": TEMPLATE}]}
    (await api.post(old, {"apiVersion": OLD, "kind": "Workload", "metadata": {"name": "w"}, "spec": spec})).ok(201)
    domains = {"levels": ["host"], "domains": [{"values": ["a"], "count": 1}, {"values": ["b"], "count": 2}]}
    assignment = {"name": "main", "count": 3, "topologyAssignment": domains}
    admission = {"clusterQueue": "c", "podSetAssignments": [assignment]}
    async with api.watch(new, fieldSelector="metadata.name=w") as watch:
        (await api.patch(f"{old}/w/status", {"status": {"admission": admission}})).ok(200)
        while "admission" not in (said := (await watch.next_of("ADDED", "MODIFIED"))["object"].get("status", {})):
            continue
    packed = said["admission"]["podSetAssignments"][0]["topologyAssignment"]
    assert packed["levels"] == ["host"]
    assert "domains" not in packed
    assert sum(one["domainCount"] for one in packed["slices"]) == 2


async def test_kinds_that_differ_in_nothing_keep_all_they_have(api: Api) -> None:
    body = {
        "apiVersion": OLD,
        "kind": "ResourceFlavor",
        "metadata": {"name": api.namespace},
        "spec": {"nodeLabels": {"a": "b"}},
    }
    (await api.post(f"/apis/{OLD}/resourceflavors", body)).ok(201)
    try:
        shown = (await api.get(f"/apis/{NEW}/resourceflavors/{api.namespace}")).ok()
        assert (shown["apiVersion"], shown["spec"]["nodeLabels"]) == (NEW, {"a": "b"})
    finally:
        await api.delete(f"/apis/{NEW}/resourceflavors/{api.namespace}")


@pytest.mark.parametrize("is_applied_by_server", [False, True])
async def test_kubectl_sees_no_difference_in_what_it_applied(
    queues: Api, kubeconfig: Path, tmp_path: Path, is_applied_by_server: bool
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    kubectl = Kubectl(kubeconfig, home)
    body = queue_of(queues, OLD, cohort="x", admissionChecks=["a"], resourceGroups=FLAVORS, preemption={})
    body["spec"]["flavorFungibility"] = {"whenCanBorrow": "Borrow", "whenCanPreempt": "Preempt"}
    file = tmp_path / "queue.yaml"
    file.write_text(yaml.safe_dump(body))
    how = ("--server-side",) if is_applied_by_server else ()
    kubectl("apply", *how, "--validate=strict", "-f", str(file))
    for _ in range(3):
        difference = kubectl.run("diff", *how, "-f", str(file))
        if difference.code == 0:
            break
        # What was told of its status while they were compared is a difference too.
    assert (difference.code, difference.out) == (0, ""), difference.out + difference.err
    name = queues.namespace
    shown = kubectl("get", f"clusterqueues.v1beta2.{GROUP}", name, "-o", "jsonpath={.spec.cohortName}{.apiVersion}")
    assert shown == f"x{NEW}"
    shown = kubectl("get", f"clusterqueues.v1beta1.{GROUP}", name, "-o", "jsonpath={.spec.cohort}{.apiVersion}")
    assert shown == f"x{OLD}"
    assert kubectl("get", f"clusterqueues.v1beta1.{GROUP}", name).split("\n")[1].split()[:2] == [name, "x"]
