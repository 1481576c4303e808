"""Replacing objects: what may change, who was quicker, and what counts as a change."""

from __future__ import annotations

from typing import Any

import pytest

from build.api_objects import HELD, configmap, deployment, let_go, make_configmap, make_pod, make_secret, secret
from build.cluster_api import Api, Obj

STALE = "the object has been modified; please apply your changes to the latest version and try again"


async def _put(api: Api, obj: Obj, **query: object) -> Obj:
    return (await api.put(api.core("configmaps", obj["metadata"]["name"]), obj, **query)).ok(200)


async def test_a_change_is_stored_and_moves_the_version(api: Api) -> None:
    made = await make_configmap(api, "a", {"k": "1"})
    changed = await _put(api, {**made, "data": {"k": "2"}})
    assert changed["data"] == {"k": "2"}
    assert int(changed["metadata"]["resourceVersion"]) > int(made["metadata"]["resourceVersion"])
    assert changed["metadata"]["uid"] == made["metadata"]["uid"]
    assert (await api.get(api.core("configmaps", "a"))).ok() == changed


async def test_a_change_of_nothing_leaves_the_version(api: Api) -> None:
    made = await make_configmap(api, "a", {"k": "1"})
    assert await _put(api, made) == made


async def test_a_change_of_an_old_version_is_refused(api: Api) -> None:
    made = await make_configmap(api, "a", {"k": "1"})
    await _put(api, {**made, "data": {"k": "2"}})
    answer = await api.put(api.core("configmaps", "a"), {**made, "data": {"k": "3"}})
    assert answer.refused(409, "Conflict") == f'Operation cannot be fulfilled on configmaps "a": {STALE}'
    assert answer.body["details"] == {"name": "a", "kind": "configmaps"}
    assert (await api.get(api.core("configmaps", "a"))).ok()["data"] == {"k": "2"}


async def test_without_a_version_the_last_writer_wins(api: Api) -> None:
    await make_configmap(api, "a", {"k": "1"}, labels={"l": "1"})
    changed = await _put(api, configmap("a", {"k": "2"}))
    assert changed["data"] == {"k": "2"}
    assert "labels" not in changed["metadata"]


async def test_a_replacement_of_another_life_is_refused(api: Api) -> None:
    await make_configmap(api, "a")
    other = "11111111-2222-3333-4444-555555555555"
    answer = await api.put(api.core("configmaps", "a"), configmap("a", uid=other))
    message = answer.refused(409, "Conflict")
    assert message.startswith('Operation cannot be fulfilled on configmaps "a": ')
    assert f"Precondition failed: UID in precondition: {other}, UID in object meta: " in message


async def test_what_is_not_there_cannot_be_replaced(api: Api) -> None:
    answer = await api.put(api.core("configmaps", "none"), configmap("none"))
    assert answer.refused(404, "NotFound") == 'configmaps "none" not found'


async def test_the_name_in_the_object_is_that_of_the_path(api: Api) -> None:
    await make_configmap(api, "a")
    answer = await api.put(api.core("configmaps", "a"), configmap("b"))
    assert answer.refused(400, "BadRequest") == "the name of the object (b) does not match the name on the URL (a)"
    answer = await api.put(api.core("configmaps", "a"), {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}})
    message = answer.refused(400, "BadRequest")
    assert message == "the name of the object (a based on URL) was undeterminable: name must be provided"


async def test_the_namespace_in_the_object_is_that_of_the_path(api: Api) -> None:
    await make_configmap(api, "a")
    answer = await api.put(api.core("configmaps", "a"), configmap("a", namespace="default"))
    message = answer.refused(400, "BadRequest")
    assert message == "the namespace of the provided object does not match the namespace sent on the request"


async def test_what_only_the_server_sets_stays(api: Api) -> None:
    before = (await make_configmap(api, "a"))["metadata"]
    given: Obj = {"creationTimestamp": "2001-01-01T00:00:00Z", "labels": {"new": "1"}}
    after = (await _put(api, configmap("a", **given)))["metadata"]
    assert after["creationTimestamp"] == before["creationTimestamp"]
    assert after["uid"] == before["uid"]
    assert "deletionTimestamp" not in after
    assert after["labels"] == {"new": "1"}


@pytest.mark.parametrize(
    ("field", "value", "shown"),
    [("deletionTimestamp", "2001-01-01T00:00:00Z", '"2001-01-01T00:00:00Z"'), ("deletionGracePeriodSeconds", 5, "5")],
)
async def test_an_update_is_no_deletion(api: Api, field: str, value: Any, shown: str) -> None:
    await make_configmap(api, "a")
    answer = await api.put(api.core("configmaps", "a"), configmap("a", **{field: value}))
    words = f'ConfigMap "a" is invalid: metadata.{field}: Invalid value: {shown}: field is immutable'
    assert answer.refused(422, "Invalid") == words
    message = (await api.patch(api.core("configmaps", "a"), {"metadata": {field: value}})).refused(422, "Invalid")
    assert message == words


async def test_the_generation_counts_changes_of_what_is_wanted_only(api: Api) -> None:
    path = api.group("apps/v1", "deployments")
    made = (await api.post(path, deployment("web", paused=True))).ok(201)
    assert made["metadata"]["generation"] == 1
    labelled = (await api.patch(f"{path}/web", {"metadata": {"labels": {"l": "1"}}})).ok()
    assert labelled["metadata"]["generation"] == 1
    status = (await api.patch(f"{path}/web/status", {"status": {"collisionCount": 1}})).ok()
    assert status["metadata"]["generation"] == 1
    changed = (await api.patch(f"{path}/web", {"spec": {"minReadySeconds": 1}})).ok()
    assert changed["metadata"]["generation"] == 2
    forged = (await api.patch(f"{path}/web", {"metadata": {"generation": 9}})).ok()
    assert forged["metadata"]["generation"] == 2


async def test_the_status_is_not_written_through_the_front_door(api: Api) -> None:
    made = await make_pod(api, "p")
    given = {**made, "status": {"phase": "Running"}}
    assert (await api.put(api.core("pods", "p"), given)).ok()["status"]["phase"] == "Pending"


async def test_nothing_but_the_status_is_written_through_its_door(api: Api) -> None:
    made = await make_pod(api, "p")
    message = {"phase": "Running", "message": "told"}
    given = {**made, "spec": {**made["spec"], "activeDeadlineSeconds": 9}, "status": message}
    changed = (await api.put(api.core("pods", "p", "status"), given)).ok()
    assert changed["status"]["message"] == "told"
    assert "activeDeadlineSeconds" not in changed["spec"]


async def test_an_immutable_config_map_stays_as_it_is(api: Api) -> None:
    made = (await api.post(api.core("configmaps"), {**configmap("a", {"k": "1"}), "immutable": True})).ok(201)
    answer = await api.put(api.core("configmaps", "a"), {**made, "data": {"k": "2"}})
    assert answer.refused(422, "Invalid") == (
        'ConfigMap "a" is invalid: data: Forbidden: field is immutable when `immutable` is set'
    )
    answer = await api.put(api.core("configmaps", "a"), {**made, "immutable": False})
    assert answer.refused(422, "Invalid") == (
        'ConfigMap "a" is invalid: immutable: Forbidden: field is immutable when `immutable` is set'
    )
    labelled = (await api.patch(api.core("configmaps", "a"), {"metadata": {"labels": {"l": "1"}}})).ok()
    assert labelled["metadata"]["labels"] == {"l": "1"}


async def test_an_immutable_secret_stays_as_it_is(api: Api) -> None:
    made = await make_secret(api, "s", immutable=True, data={"k": "MQ=="})
    answer = await api.put(api.core("secrets", "s"), {**made, "data": {"k": "Mg=="}})
    words = 'Secret "s" is invalid: data: Forbidden: field is immutable when `immutable` is set'
    assert answer.refused(422, "Invalid") == words


async def test_a_secret_keeps_its_type(api: Api) -> None:
    await make_secret(api, "s")
    answer = await api.put(api.core("secrets", "s"), secret("s", type="example.com/other"))
    words = 'Secret "s" is invalid: type: Invalid value: "example.com/other": field is immutable'
    assert answer.refused(422, "Invalid") == words


async def test_plain_text_of_a_secret_becomes_data(api: Api) -> None:
    made = await make_secret(api, "s", data={"a": "MQ==", "b": "MQ=="}, stringData={"b": "2"})
    assert made["data"] == {"a": "MQ==", "b": "Mg=="}
    assert "stringData" not in made
    assert made["type"] == "Opaque"


async def test_a_trial_of_a_change_shows_it_and_stores_nothing(api: Api) -> None:
    made = await make_configmap(api, "a", {"k": "1"})
    shown = await _put(api, configmap("a", {"k": "2"}), dryRun="All")
    assert shown["data"] == {"k": "2"}
    assert (await api.get(api.core("configmaps", "a"))).ok() == made


async def test_an_object_that_is_going_takes_no_new_finalizers(api: Api) -> None:
    await make_configmap(api, "a", finalizers=[HELD])
    (await api.delete(api.core("configmaps", "a"))).ok()
    answer = await api.patch(api.core("configmaps", "a"), {"metadata": {"finalizers": [HELD, "example.com/new"]}})
    assert answer.refused(422, "Invalid") == (
        'ConfigMap "a" is invalid: metadata.finalizers: Forbidden: no new finalizers can be added if the object is '
        'being deleted, found new finalizers []string{"example.com/new"}'
    )
    await let_go(api, api.core("configmaps", "a"))


async def test_a_lease_is_made_by_a_replacement_of_nothing_and_then_only_changed_as_it_was_read(api: Api) -> None:
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l"}, "spec": {}}
    path = api.group("coordination.k8s.io/v1", "leases", "l")
    made = (await api.put(path, lease)).ok(201)
    answer = await api.put(path, lease)
    words = 'leases.coordination.k8s.io "l" is invalid: metadata.resourceVersion: Invalid value: '
    assert answer.refused(422, "Invalid").startswith(words)
    assert answer.body["message"].endswith(": must be specified for an update")
    assert (await api.put(path, {**made, "spec": {"holderIdentity": "me"}})).ok(200)["spec"] == {"holderIdentity": "me"}
