"""Server-side apply through subresources: who owns what of the status and of the scale."""

from typing import Any

from build.cluster_api import Api
from build.contract_objects import deployment, gated_pod, made, managers

Obj = dict[str, Any]


def _status(name: str, **status: Any) -> Obj:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "status": status}


def _condition(kind: str, value: str = "True") -> Obj:
    return {"type": f"example.com/{kind}", "status": value}


def _mine(pod: Obj) -> dict[str, str]:
    conditions = pod["status"].get("conditions", [])
    return {one["type"]: one["status"] for one in conditions if one["type"].startswith("example.com/")}


async def test_conditions_are_owned_one_by_one_through_the_status(api: Api) -> None:
    await made(api, "pods", gated_pod("p"))
    path = api.core("pods", "p", "status")
    (await api.apply(path, _status("p", conditions=[_condition("A")]), "alice")).ok(200)
    after = (await api.apply(path, _status("p", conditions=[_condition("B")]), "bob")).ok(200)
    assert _mine(after) == {"example.com/A": "True", "example.com/B": "True"}
    owned = managers(after)["bob", "Apply/status"]
    assert owned == {
        "f:status": {"f:conditions": {'k:{"type":"example.com/B"}': {".": {}, "f:status": {}, "f:type": {}}}}
    }
    message = (await api.apply(path, _status("p", conditions=[_condition("A", "False")]), "bob")).refused(
        409, "Conflict"
    )
    assert message == (
        'Apply failed with 1 conflict: conflict with "alice" with subresource "status": '
        '.status.conditions[type="example.com/A"].status'
    )
    after = (await api.apply(path, _status("p"), "alice")).ok(200)
    assert _mine(after) == {"example.com/B": "True"}


async def test_the_status_does_not_change_through_the_object(api: Api) -> None:
    body = {**gated_pod("p"), "status": {"conditions": [_condition("A")]}}
    created = (await api.apply(api.core("pods", "p"), body, "alice")).ok(201)
    assert _mine(created) == {}
    assert "f:status" not in managers(created)["alice", "Apply"]


async def test_the_spec_does_not_change_through_the_status(api: Api) -> None:
    await made(api, "pods", gated_pod("p"))
    body = {**_status("p", conditions=[_condition("A")]), "spec": {"activeDeadlineSeconds": 9}}
    after = (await api.apply(api.core("pods", "p", "status"), body, "alice")).ok(200)
    assert "activeDeadlineSeconds" not in after["spec"]
    assert "f:spec" not in managers(after)["alice", "Apply/status"]


async def test_the_status_of_what_is_not_there_cannot_be_applied(api: Api) -> None:
    message = (await api.apply(api.core("pods", "p", "status"), _status("p"), "alice")).refused(404, "NotFound")
    assert message == 'pods "p" not found'


async def test_the_same_manager_is_another_through_the_status(api: Api) -> None:
    (await api.apply(api.core("pods", "p"), gated_pod("p"), "alice")).ok(201)
    after = (await api.apply(api.core("pods", "p", "status"), _status("p", conditions=[_condition("A")]), "alice")).ok()
    assert {key for key in managers(after) if key[0] == "alice"} == {("alice", "Apply"), ("alice", "Apply/status")}


def _scale(name: str, replicas: int) -> Obj:
    return {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": name}, "spec": {"replicas": replicas}}


async def test_replicas_are_owned_through_the_scale(api: Api) -> None:
    body = deployment("d")
    del body["spec"]["replicas"]
    (await api.apply(api.group("apps/v1", "deployments", "d"), body, "creator")).ok(201)
    path = api.group("apps/v1", "deployments", "d", "scale")
    message = (await api.apply(path, _scale("d", 3), "hpa")).refused(409, "Conflict")
    assert message == (
        'Apply failed with 1 conflict: conflict with "before-first-apply" with subresource "scale" using '
        "autoscaling/v1: .spec.replicas"
    )
    scale = (await api.apply(path, _scale("d", 3), "hpa", force=True)).ok(200)
    assert scale["spec"] == {"replicas": 3}
    whole = (await api.get(api.group("apps/v1", "deployments", "d"))).ok()
    assert managers(whole)["hpa", "Apply/scale"] == {"f:spec": {"f:replicas": {}}}
    entry = next(one for one in whole["metadata"]["managedFields"] if one["manager"] == "hpa")
    assert entry["apiVersion"] == "apps/v1"


async def test_replicas_that_a_scale_leaves_as_they_are_have_two_owners(api: Api) -> None:
    body = deployment("d")
    del body["spec"]["replicas"]
    (await api.apply(api.group("apps/v1", "deployments", "d"), body, "creator")).ok(201)
    (await api.apply(api.group("apps/v1", "deployments", "d", "scale"), _scale("d", 1), "hpa")).ok(200)
    whole = (await api.get(api.group("apps/v1", "deployments", "d"))).ok()
    for owner in (("hpa", "Apply/scale"), ("before-first-apply", "Update/scale")):
        assert managers(whole)[owner] == {"f:spec": {"f:replicas": {}}}


async def test_an_update_of_a_scale_of_whose_replicas_there_is_no_owner_sets_none(api: Api) -> None:
    body = deployment("d")
    del body["spec"]["replicas"]
    (await api.apply(api.group("apps/v1", "deployments", "d"), body, "creator")).ok(201)
    patch = {"spec": {"replicas": 2}}
    (await api.patch(api.group("apps/v1", "deployments", "d", "scale"), patch, fieldManager="k")).ok(200)
    whole = (await api.get(api.group("apps/v1", "deployments", "d"))).ok()
    assert whole["spec"]["replicas"] == 2
    assert not any("f:replicas" in fields.get("f:spec", {}) for fields in managers(whole).values())


async def test_what_is_wrong_with_an_applied_scale_is_said_of_the_scale(api: Api) -> None:
    (await api.apply(api.group("apps/v1", "deployments", "d"), deployment("d"), "alice")).ok(201)
    path = api.group("apps/v1", "deployments", "d", "scale")
    message = (await api.apply(path, {**_scale("d", 3), "unheard": 1}, "hpa")).refused(500)
    assert message == (
        "failed to create typed patch object (/d; autoscaling/v1, Kind=Scale): .unheard: field not declared in schema"
    )
    message = (await api.apply(path, _scale("d", -1), "hpa", force=True)).refused(422, "Invalid")
    assert message.startswith('Scale.autoscaling "d" is invalid: spec.replicas: Invalid value: -1: ')


async def test_replicas_of_another_owner_conflict_through_the_scale(api: Api) -> None:
    (await api.apply(api.group("apps/v1", "deployments", "d"), deployment("d", replicas=0), "alice")).ok(201)
    path = api.group("apps/v1", "deployments", "d", "scale")
    message = (await api.apply(path, _scale("d", 3), "hpa")).refused(409, "Conflict")
    assert 'Apply failed with 1 conflict: conflict with "alice"' in message
    assert message.endswith(": .spec.replicas")
    (await api.apply(path, _scale("d", 3), "hpa", force=True)).ok(200)
    whole = (await api.get(api.group("apps/v1", "deployments", "d"))).ok()
    assert whole["spec"]["replicas"] == 3
    assert "f:replicas" not in managers(whole)["alice", "Apply"]["f:spec"]
    message = (await api.apply(api.group("apps/v1", "deployments", "d"), deployment("d"), "alice")).refused(409)
    assert message == 'Apply failed with 1 conflict: conflict with "hpa" with subresource "scale": .spec.replicas'


async def test_an_update_of_the_scale_owns_the_replicas(api: Api) -> None:
    (await api.apply(api.group("apps/v1", "deployments", "d"), deployment("d", replicas=0), "alice")).ok(201)
    path = api.group("apps/v1", "deployments", "d", "scale")
    scale = (await api.get(path)).ok()
    # Of whatever version: a controller may write to the deployment meanwhile.
    del scale["metadata"]["resourceVersion"]
    (await api.put(path, {**scale, "spec": {"replicas": 2}}, fieldManager="kubectl-scale")).ok(200)
    whole = (await api.get(api.group("apps/v1", "deployments", "d"))).ok()
    assert managers(whole)["kubectl-scale", "Update/scale"] == {"f:spec": {"f:replicas": {}}}
    assert "f:replicas" not in managers(whole)["alice", "Apply"]["f:spec"]
