"""Pods: binding, eviction, what may change and what may not, and the doors below them."""

from __future__ import annotations

import pytest

from build.api_objects import ABSENT, IMAGE, container, make_pod, pod, ready_for_pods
from build.cluster_api import JSON_PATCH, STRATEGIC, Api, Obj

ONLY = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


def binding(name: str, node: str = ABSENT, **metadata: object) -> Obj:
    target = {"apiVersion": "v1", "kind": "Node", "name": node}
    return {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name, **metadata}, "target": target}


def budget(name: str, labels: dict[str, str], **spec: object) -> Obj:
    whole = {"selector": {"matchLabels": labels}, **spec}
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name}, "spec": whole}


def eviction(name: str) -> Obj:
    return {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}


async def make_running(api: Api, name: str, labels: dict[str, str]) -> None:
    made = await make_pod(api, name, labels=labels, nodeName=ABSENT)
    conditions = [{"type": "Ready", "status": "True"}]
    (
        await api.put(
            api.core("pods", name, "status"), {**made, "status": {"phase": "Running", "conditions": conditions}}
        )
    ).ok()


async def test_a_binding_places_a_pod(api: Api) -> None:
    await make_pod(api, "p")
    answer = await api.post(api.core("pods", "p", "binding"), binding("p", annotations={"example.com/gpu": "3"}))
    assert answer.ok(201) == {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
    placed = (await api.get(api.core("pods", "p"))).ok()
    assert placed["spec"]["nodeName"] == ABSENT
    assert placed["metadata"]["annotations"]["example.com/gpu"] == "3"
    (condition,) = [one for one in placed["status"]["conditions"] if one["type"] == "PodScheduled"]
    assert condition["status"] == "True"


async def test_a_pod_is_bound_once(api: Api) -> None:
    await make_pod(api, "p", nodeName=ABSENT)
    answer = await api.post(api.core("pods", "p", "binding"), binding("p", "other"))
    words = f'Operation cannot be fulfilled on pods/binding "p": pod p is already assigned to node "{ABSENT}"'
    assert answer.refused(409, "Conflict") == words


async def test_the_old_path_of_bindings_is_served(api: Api) -> None:
    await make_pod(api, "p")
    (await api.post(api.core("bindings"), binding("p"))).ok(201)
    assert (await api.get(api.core("pods", "p"))).ok()["spec"]["nodeName"] == ABSENT


async def test_a_binding_needs_a_pod_and_a_node(api: Api) -> None:
    answer = await api.post(api.core("pods", "none", "binding"), binding("none"))
    assert answer.refused(404, "NotFound") == 'pods "none" not found'
    await make_pod(api, "p")
    answer = await api.post(api.core("pods", "p", "binding"), binding("p", ""))
    assert 400 <= answer.code <= 500
    assert answer.body["message"] == "target.name: Required value"


async def test_a_trial_of_a_binding_binds_nothing(api: Api) -> None:
    await make_pod(api, "p")
    (await api.post(api.core("pods", "p", "binding"), binding("p"), dryRun="All")).ok(201)
    assert "nodeName" not in (await api.get(api.core("pods", "p"))).ok()["spec"]


async def test_only_a_little_of_a_pod_may_change(api: Api) -> None:
    made = await make_pod(api, "p")
    changed = {**made, "spec": {**made["spec"], "restartPolicy": "Never"}}
    message = (await api.put(api.core("pods", "p"), changed)).refused(422, "Invalid")
    assert message.startswith(f'Pod "p" is invalid: spec: Forbidden: {ONLY}')
    image = [{"op": "replace", "path": "/spec/containers/0/image", "value": "registry.k8s.io/pause:3.9"}]
    new = (await api.patch(api.core("pods", "p"), image, JSON_PATCH)).ok()
    assert new["spec"]["containers"][0]["image"].endswith(":3.9")
    assert new["metadata"]["generation"] == made["metadata"]["generation"] + 1


async def test_tolerations_may_only_be_added(api: Api) -> None:
    one = {"key": "a", "operator": "Exists", "effect": "NoSchedule"}
    made = await make_pod(api, "p", tolerations=[one])
    more = [*made["spec"]["tolerations"], {**one, "key": "b"}]
    (await api.patch(api.core("pods", "p"), {"spec": {"tolerations": more}})).ok()
    answer = await api.patch(api.core("pods", "p"), {"spec": {"tolerations": []}})
    assert "spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds" in (
        answer.refused(422, "Invalid")
    )


async def test_a_pod_needs_containers_with_names_and_images(api: Api) -> None:
    await ready_for_pods(api)
    answer = await api.post(api.core("pods"), pod("p", containers=[]))
    assert answer.refused(422, "Invalid") == 'Pod "p" is invalid: spec.containers: Required value'
    answer = await api.post(api.core("pods"), pod("p", containers=[{"name": "Main"}, {"name": "b", "image": IMAGE}]))
    message = answer.refused(422, "Invalid")
    assert "spec.containers[0].image: Required value" in message
    assert 'spec.containers[0].name: Invalid value: "Main": a lowercase RFC 1123 label must consist of' in message
    answer = await api.post(api.core("pods"), pod("p", containers=[container(), container()]))
    assert 'spec.containers[1].name: Duplicate value: "main"' in answer.refused(422, "Invalid")


async def test_amounts_of_resources_are_checked(api: Api) -> None:
    await ready_for_pods(api)
    for resources, words in (
        (
            {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}},
            'requests: Invalid value: "2": must be less than or equal to cpu limit of 1',
        ),
        ({"limits": {"cpu": "-1"}}, 'limits[cpu]: Invalid value: "-1": must be greater than or equal to 0'),
        (
            {"requests": {"nvidia.com/gpu": "1"}},
            "limits: Required value: Limit must be set for non overcommitable resources",
        ),
        (
            {"requests": {"nvidia.com/gpu": "1"}, "limits": {"nvidia.com/gpu": "2"}},
            'requests: Invalid value: "1": must be equal to nvidia.com/gpu limit of 2',
        ),
        ({"limits": {"nvidia.com/gpu": "500m"}}, 'limits[nvidia.com/gpu]: Invalid value: "500m": must be an integer'),
    ):
        answer = await api.post(api.core("pods"), pod("p", containers=[container(resources=resources)]))
        assert f"spec.containers[0].resources.{words}" in answer.refused(422, "Invalid")


async def test_a_quantity_that_is_none_cannot_be_read(api: Api) -> None:
    await ready_for_pods(api)
    answer = await api.post(api.core("pods"), pod("p", containers=[container(resources={"limits": {"cpu": "lots"}})]))
    assert answer.refused(400, "BadRequest") == (
        'Pod in version "v1" cannot be handled as a Pod: quantities must match the regular expression '
        "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
    )


async def test_an_eviction_deletes_a_pod(api: Api) -> None:
    await make_pod(api, "p")
    answer = await api.post(api.core("pods", "p", "eviction"), eviction("p"))
    assert answer.ok(201)["status"] == "Success"
    assert (await api.get(api.core("pods", "p"))).code == 404
    assert (await api.post(api.core("pods", "p", "eviction"), eviction("p"))).refused(
        404, "NotFound"
    ) == 'pods "p" not found'


async def test_an_eviction_of_old_clients_is_understood(api: Api) -> None:
    await make_pod(api, "p")
    old = {**eviction("p"), "apiVersion": "policy/v1beta1"}
    (await api.post(api.core("pods", "p", "eviction"), old)).ok(201)
    assert (await api.get(api.core("pods", "p"))).code == 404


async def test_an_eviction_of_one_version_of_one_pod_is_of_no_other(api: Api) -> None:
    path, subresource = api.core("pods", "p"), api.core("pods", "p", "eviction")
    await make_running(api, "p", {"app": "x"})
    present = (await api.get(path)).ok()
    another = {**eviction("p"), "deleteOptions": {"preconditions": {"uid": "another"}}}
    message = (await api.post(subresource, another)).refused(409, "Conflict")
    assert "the UID in the precondition (another) does not match the UID in record" in message
    assert (await api.get(path)).ok() == present
    version = present["metadata"]["resourceVersion"]
    (
        await api.post(subresource, {**eviction("p"), "deleteOptions": {"preconditions": {"resourceVersion": version}}})
    ).ok(201)


async def test_an_eviction_that_a_budget_forbids_is_to_be_tried_again(api: Api) -> None:
    (await api.post(api.group("policy/v1", "poddisruptionbudgets"), budget("b", {"app": "x"}, maxUnavailable=0))).ok(
        201
    )
    await make_running(api, "p", {"app": "x"})
    answer = await api.post(api.core("pods", "p", "eviction"), eviction("p"))
    words = "Cannot evict pod as it would violate the pod's disruption budget."
    assert answer.refused(429, "TooManyRequests") == words
    assert answer.body["details"]["causes"][0]["reason"] == "DisruptionBudget"
    assert "deletionTimestamp" not in (await api.get(api.core("pods", "p"))).ok()["metadata"]


async def test_a_budget_does_not_hold_pods_that_never_ran(api: Api) -> None:
    (await api.post(api.group("policy/v1", "poddisruptionbudgets"), budget("b", {"app": "x"}, maxUnavailable=0))).ok(
        201
    )
    await make_pod(api, "p", labels={"app": "x"})
    (await api.post(api.core("pods", "p", "eviction"), eviction("p"))).ok(201)


async def test_a_container_to_look_around_may_join_and_stays(api: Api) -> None:
    await make_pod(api, "p", nodeName=ABSENT)
    path = api.core("pods", "p", "ephemeralcontainers")
    joined = {"spec": {"ephemeralContainers": [{"name": "debug", "image": IMAGE}]}}
    found = (await api.patch(path, joined, STRATEGIC)).ok(200)
    (one,) = found["spec"]["ephemeralContainers"]
    assert one["name"] == "debug"
    assert one["terminationMessagePolicy"] == "File"
    gone = await api.patch(path, {"spec": {"ephemeralContainers": []}})
    assert "existing ephemeral containers" in gone.refused(422, "Invalid")
    answer = await api.patch(api.core("pods", "p"), joined | {"spec": {"ephemeralContainers": []}})
    assert answer.code == 422


@pytest.mark.parametrize("subresource", ["log", "exec", "attach", "portforward"])
async def test_the_doors_of_a_pod_that_is_not_there_are_not_found(api: Api, subresource: str) -> None:
    answer = await api.get(api.core("pods", "none", subresource), command="true", stdout="true")
    assert answer.code in (400, 404)
    if answer.code == 404:
        assert answer.refused(404, "NotFound") == 'pods "none" not found'
