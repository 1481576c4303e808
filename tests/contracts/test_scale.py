"""The scale of workloads: one small object for everybody who only counts."""

from __future__ import annotations

import pytest

from build.api_objects import deployment
from build.cluster_api import MERGE, Api, Obj


async def make(api: Api) -> tuple[str, Obj]:
    """A deployment whose pods nobody schedules."""
    path = api.group("apps/v1", "deployments", "web")
    made = (await api.post(api.group("apps/v1", "deployments"), deployment("web", replicas=1))).ok(201)
    return path, made


async def test_a_scale_shows_what_is_wanted_and_of_whom(api: Api) -> None:
    path, made = await make(api)
    scale = (await api.get(f"{path}/scale")).ok(200)
    assert (scale["kind"], scale["apiVersion"]) == ("Scale", "autoscaling/v1")
    assert scale["metadata"]["name"] == "web"
    assert scale["metadata"]["uid"] == made["metadata"]["uid"]
    assert scale["spec"] == {"replicas": 1}
    assert scale["status"]["selector"] == "app=web"


async def test_a_scale_is_replaced_and_patched(api: Api) -> None:
    path, made = await make(api)
    scale = (await api.get(f"{path}/scale")).ok()
    del scale["metadata"]["resourceVersion"]
    assert (await api.put(f"{path}/scale", {**scale, "spec": {"replicas": 2}})).ok(200)["spec"] == {"replicas": 2}
    assert (await api.patch(f"{path}/scale", {"spec": {"replicas": 0}}, MERGE)).ok(200)["spec"] == {}
    found = (await api.get(path)).ok()
    assert found["spec"]["replicas"] == 0
    assert found["metadata"]["generation"] == made["metadata"]["generation"] + 2
    assert {key: found["spec"][key] for key in ("selector", "template")} == {
        key: made["spec"][key] for key in ("selector", "template")
    }


async def test_a_scale_of_an_old_version_is_refused(api: Api) -> None:
    path, made = await make(api)
    (await api.patch(path, {"metadata": {"labels": {"l": "1"}}})).ok()
    scale = {"apiVersion": "autoscaling/v1", "kind": "Scale", "spec": {"replicas": 2}}
    scale["metadata"] = {
        "name": "web",
        "namespace": api.namespace,
        "resourceVersion": made["metadata"]["resourceVersion"],
    }
    answer = await api.put(f"{path}/scale", scale)
    assert answer.refused(409, "Conflict") == (
        'Operation cannot be fulfilled on deployments.apps "web": the object has been modified; please apply your '
        "changes to the latest version and try again"
    )


async def test_nothing_is_scaled_below_nothing(api: Api) -> None:
    path, _ = await make(api)
    answer = await api.patch(f"{path}/scale", {"spec": {"replicas": -1}}, MERGE)
    message = answer.refused(422, "Invalid")
    assert message.startswith('Scale.autoscaling "web" is invalid: ')
    assert "spec.replicas: Invalid value: -1: must be greater than or equal to 0" in message


async def test_the_scale_of_what_is_not_there_is_not_found(api: Api) -> None:
    answer = await api.get(api.group("apps/v1", "deployments", "none", "scale"))
    assert answer.refused(404, "NotFound") == 'deployments.apps "none" not found'
    answer = await api.patch(api.group("apps/v1", "deployments", "none", "scale"), {"spec": {"replicas": 1}}, MERGE)
    assert answer.code == 404


async def test_a_scale_without_a_count_is_none(api: Api) -> None:
    path, _ = await make(api)
    scale = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "web"}, "spec": {}}
    assert (await api.put(f"{path}/scale", scale)).ok(200)["spec"] == {}
    assert (await api.get(path)).ok()["spec"]["replicas"] == 0


async def test_a_trial_of_a_scale_scales_nothing(api: Api) -> None:
    path, _ = await make(api)
    (await api.patch(f"{path}/scale", {"spec": {"replicas": 5}}, MERGE, dryRun="All")).ok(200)
    assert (await api.get(path)).ok()["spec"]["replicas"] == 1


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"name": "e"}, "the name of the object (e) does not match the name on the URL (web)"),
        ({"name": None}, "the name of the object (web based on URL) was undeterminable: name must be provided"),
        (
            {"namespace": "other"},
            "the namespace of the provided object does not match the namespace sent on the request",
        ),
    ],
)
async def test_a_scale_of_another_object_is_refused(api: Api, change: Obj, said: str) -> None:
    whole, _ = await make(api)
    path = f"{whole}/scale"
    scale = (await api.get(path)).ok()
    scale["metadata"] = {**scale["metadata"], **change}
    del scale["metadata"]["resourceVersion"]
    assert (await api.put(path, {**scale, "spec": {"replicas": 3}})).refused(400, "BadRequest") == said
    assert (await api.patch(path, {"metadata": change, "spec": {"replicas": 3}})).refused(400, "BadRequest") == said
    assert (await api.get(whole)).ok()["spec"]["replicas"] == 1
