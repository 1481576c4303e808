"""Deleting: at once or by and by, only under conditions, one or many."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from build.api_objects import ABSENT, HELD, let_go, make_configmap, make_pod, make_secret, names
from build.cluster_api import Api, Obj


def seconds_between(metadata: Obj) -> timedelta:
    ends, starts = (datetime.fromisoformat(metadata[key]) for key in ("deletionTimestamp", "creationTimestamp"))
    return ends - starts


async def test_a_deletion_that_is_done_says_what_is_gone(api: Api) -> None:
    made = await make_configmap(api, "a")
    assert (await api.delete(api.core("configmaps", "a"))).ok(200) == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": {"name": "a", "kind": "configmaps", "uid": made["metadata"]["uid"]},
    }
    assert (await api.get(api.core("configmaps", "a"))).code == 404


async def test_what_is_not_there_cannot_be_deleted(api: Api) -> None:
    assert (await api.delete(api.core("configmaps", "a"))).refused(404, "NotFound") == 'configmaps "a" not found'


async def test_a_trial_deletes_nothing(api: Api) -> None:
    made = await make_configmap(api, "a")
    assert (await api.delete(api.core("configmaps", "a"), dryRun="All")).ok(200)["status"] == "Success"
    in_body = {"kind": "DeleteOptions", "apiVersion": "v1", "dryRun": ["All"]}
    assert (await api.delete(api.core("configmaps", "a"), in_body)).ok(200)["status"] == "Success"
    assert (await api.get(api.core("configmaps", "a"))).ok() == made


async def test_finalizers_hold_an_object_that_is_going(api: Api) -> None:
    path = api.core("configmaps", "a")
    await make_configmap(api, "a", finalizers=[HELD])
    going = (await api.delete(path)).ok(200)
    assert going["kind"] == "ConfigMap"
    assert going["metadata"]["finalizers"] == [HELD]
    assert going["metadata"]["deletionGracePeriodSeconds"] == 0
    assert going["metadata"]["deletionTimestamp"]
    again = (await api.delete(path)).ok(200)
    assert again["metadata"]["resourceVersion"] == going["metadata"]["resourceVersion"]
    gone = (await api.patch(path, {"metadata": {"finalizers": None}})).ok(200)
    assert "finalizers" not in gone["metadata"]
    assert (await api.get(path)).code == 404


async def test_watchers_see_an_object_going_and_gone(api: Api) -> None:
    path = api.core("secrets", "a")
    await make_secret(api, "a")
    (await api.patch(path, {"metadata": {"finalizers": [HELD]}})).ok()
    since = (await api.get(path)).ok()["metadata"]["resourceVersion"]
    async with api.watch(api.core("secrets"), resourceVersion=since) as watch:
        (await api.delete(path)).ok()
        await let_go(api, path)
        events = await watch.take(2)
    assert [event["type"] for event in events] == ["MODIFIED", "DELETED"]
    assert all("deletionTimestamp" in event["object"]["metadata"] for event in events)


@pytest.mark.parametrize(
    ("policy", "added"), [("Foreground", "foregroundDeletion"), ("Orphan", "orphan"), ("Background", "")]
)
async def test_the_fate_of_dependents_is_written_down_for_the_collector(api: Api, policy: str, added: str) -> None:
    path = api.core("configmaps", "a")
    await make_configmap(api, "a", finalizers=[HELD])
    options = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": policy}
    going = (await api.delete(path, options)).ok(200)
    assert set(going["metadata"]["finalizers"]) == {HELD, added} - {""}
    await let_go(api, path)


async def test_the_options_may_stand_in_the_query(api: Api) -> None:
    await make_configmap(api, "a", finalizers=[HELD])
    going = (await api.delete(api.core("configmaps", "a"), propagationPolicy="Foreground")).ok(200)
    assert "foregroundDeletion" in going["metadata"]["finalizers"]
    await let_go(api, api.core("configmaps", "a"))


async def test_a_policy_that_is_none_is_invalid(api: Api) -> None:
    await make_configmap(api, "a")
    answer = await api.delete(api.core("configmaps", "a"), propagationPolicy="Sideways")
    message = answer.refused(422, "Invalid")
    assert message.startswith('DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: ')
    assert (await api.get(api.core("configmaps", "a"))).code == 200


async def test_a_deletion_may_name_the_life_that_it_means(api: Api) -> None:
    uid, other = (await make_configmap(api, "a"))["metadata"]["uid"], "11111111-2222-3333-4444-555555555555"
    path = api.core("configmaps", "a")
    answer = await api.delete(path, {"preconditions": {"uid": other}})
    assert answer.refused(409, "Conflict") == (
        f'Operation cannot be fulfilled on ConfigMap "a": the UID in the precondition ({other}) does not match the UID '
        f"in record ({uid}). The object might have been deleted and then recreated"
    )
    assert (await api.delete(path, {"preconditions": {"uid": uid}})).ok(200)["status"] == "Success"


async def test_a_deletion_may_name_the_version_that_it_means(api: Api) -> None:
    version = (await make_configmap(api, "a"))["metadata"]["resourceVersion"]
    path = api.core("configmaps", "a")
    answer = await api.delete(path, {"preconditions": {"resourceVersion": "1"}})
    assert answer.refused(409, "Conflict") == (
        'Operation cannot be fulfilled on ConfigMap "a": the ResourceVersion in the precondition (1) does not match '
        f"the ResourceVersion in record ({version}). The object might have been modified"
    )
    assert (await api.delete(path, {"preconditions": {"resourceVersion": version}})).code == 200


async def test_a_pod_without_a_node_is_gone_at_once(api: Api) -> None:
    made = await make_pod(api, "p")
    found = (await api.delete(api.core("pods", "p"))).ok(200)
    assert found["kind"] == "Pod"
    assert found["metadata"]["uid"] == made["metadata"]["uid"]
    assert (await api.get(api.core("pods", "p"))).code == 404


async def test_a_pod_on_a_node_is_given_time(api: Api) -> None:
    made, path = await make_pod(api, "p", nodeName=ABSENT), api.core("pods", "p")
    going = (await api.delete(path)).ok(200)["metadata"]
    assert going["deletionGracePeriodSeconds"] == 30
    assert timedelta(seconds=30) <= seconds_between(going) < timedelta(seconds=600)
    assert going["generation"] == made["metadata"]["generation"] + 1
    assert (await api.get(path)).ok()["metadata"]["deletionTimestamp"] == going["deletionTimestamp"]
    assert (await api.delete(path, gracePeriodSeconds=0)).code == 200
    assert (await api.get(path)).code == 404


async def test_the_time_of_a_pod_may_be_asked_for_and_only_shortened(api: Api) -> None:
    await make_pod(api, "p", nodeName=ABSENT, terminationGracePeriodSeconds=600)
    path = api.core("pods", "p")
    assert (await api.delete(path)).ok()["metadata"]["deletionGracePeriodSeconds"] == 600
    shorter = (await api.delete(path, {"gracePeriodSeconds": 60})).ok()["metadata"]
    assert shorter["deletionGracePeriodSeconds"] == 60
    assert seconds_between(shorter) < timedelta(seconds=600)
    longer = (await api.delete(path, {"gracePeriodSeconds": 300})).ok()["metadata"]
    assert longer["deletionGracePeriodSeconds"] == 60
    (await api.delete(path, {"gracePeriodSeconds": 0})).ok()


async def test_a_pod_that_has_ended_is_given_no_time(api: Api) -> None:
    made = await make_pod(api, "p", nodeName=ABSENT)
    path = api.core("pods", "p")
    (await api.put(f"{path}/status", {**made, "status": {"phase": "Succeeded"}})).ok()
    (await api.delete(path)).ok(200)
    assert (await api.get(path)).code == 404


async def test_a_deletion_of_many_lists_them(api: Api) -> None:
    for name in "abc":
        await make_secret(api, name)
    (await api.patch(api.core("secrets", "b"), {"metadata": {"labels": {"keep": "1"}}})).ok()
    gone = (await api.delete(api.core("secrets"), labelSelector="!keep")).ok(200)
    assert gone["kind"] == "SecretList"
    assert names(gone) == ["a", "c"]
    assert names((await api.get(api.core("secrets"))).ok()) == ["b"]


async def test_a_deletion_of_many_leaves_what_finalizers_hold(api: Api) -> None:
    await make_secret(api, "a")
    await make_secret(api, "b")
    (await api.patch(api.core("secrets", "b"), {"metadata": {"finalizers": [HELD]}})).ok()
    (await api.delete(api.core("secrets"))).ok(200)
    (left,) = (await api.get(api.core("secrets"))).ok()["items"]
    assert left["metadata"]["name"] == "b"
    assert "deletionTimestamp" in left["metadata"]
    await let_go(api, api.core("secrets", "b"))
    assert names((await api.get(api.core("secrets"))).ok()) == []


async def test_a_trial_of_a_deletion_of_many_deletes_none(api: Api) -> None:
    await make_secret(api, "a")
    (await api.delete(api.core("secrets"), dryRun="All")).ok(200)
    assert names((await api.get(api.core("secrets"))).ok()) == ["a"]


async def test_everything_everywhere_cannot_be_deleted_at_once(api: Api) -> None:
    answer = await api.delete("/api/v1/secrets")
    answer.refused(405, "MethodNotAllowed")
