"""What the port promises of reading and writing, of whoever stands behind it."""

from __future__ import annotations

import asyncio
from copy import deepcopy

import pytest

from build.port_objects import config, heard, pod
from shoal.client.item import Item
from shoal.client.kind import CONFIG_MAPS, DEPLOYMENTS, PODS, Kind
from shoal.client.port import Api, Patch, Select
from shoal.client.refusals import (
    AlreadyExistsError,
    BadRequestError,
    InvalidError,
    NotFoundError,
    StaleError,
)
from shoal.units.errors import ConflictError


async def test_what_is_created_is_read_back_whole(api: Api, home: str) -> None:
    made = await api.create(CONFIG_MAPS, config(home, "a", x="1"))
    found = await api.get(CONFIG_MAPS, home, "a")
    assert (found.key, found.uid, found.version) == ((home, "a"), made.uid, made.version)
    obj = found.obj()
    assert (obj["kind"], obj["apiVersion"], obj["data"]) == ("ConfigMap", "v1", {"x": "1"})
    assert obj["metadata"]["uid"] == found.uid
    assert int(obj["metadata"]["resourceVersion"]) == found.version


async def test_a_name_is_made_when_only_its_beginning_is_given(api: Api, home: str) -> None:
    made = await api.create(CONFIG_MAPS, {"metadata": {"generateName": "a-", "namespace": home}})
    assert made.name.startswith("a-")
    assert len(made.name) == len("a-") + 5


async def test_a_name_that_is_taken_is_told_apart_from_a_conflict(api: Api, home: str) -> None:
    await api.create(CONFIG_MAPS, config(home, "a"))
    with pytest.raises(AlreadyExistsError) as refused:
        await api.create(CONFIG_MAPS, config(home, "a"))
    assert not isinstance(refused.value, ConflictError)
    assert refused.value.reason == "AlreadyExists"
    assert refused.value.what == 'configmaps "a" already exists'


async def test_what_is_not_there_is_not_found(api: Api, home: str) -> None:
    for asked in (
        api.get(PODS, home, "none"),
        api.delete(PODS, home, "none"),
        api.patch(PODS, home, "none", Patch("merge", {"metadata": {"labels": {"a": "b"}}})),
    ):
        with pytest.raises(NotFoundError) as refused:
            await asked
        assert refused.value.what == 'pods "none" not found'


async def test_a_resource_that_is_not_served_is_not_found(api: Api, home: str) -> None:
    whales = Kind("sea.example.com", "v1", "whales", "Whale")
    with pytest.raises(NotFoundError):
        await api.list(whales, home)
    with pytest.raises(NotFoundError):
        await heard(api, whales, 1, home, 1)


async def test_an_object_that_is_wrong_is_invalid_and_says_where(api: Api, home: str) -> None:
    with pytest.raises(InvalidError) as refused:
        await api.create(CONFIG_MAPS, config(home, "Not_A_Name"))
    assert refused.value.details["causes"][0]["field"] == "metadata.name"


async def test_an_object_of_another_kind_is_a_bad_request(api: Api, home: str) -> None:
    with pytest.raises(BadRequestError):
        await api.create(CONFIG_MAPS, {**pod(home, "p"), "kind": "Pod", "apiVersion": "v1"})


async def test_a_list_is_whole_and_in_order_however_many_pages_it_takes(api: Api, home: str) -> None:
    names = [f"c-{at:02}" for at in range(11)]
    await asyncio.gather(*(api.create(CONFIG_MAPS, config(home, name)) for name in names))
    listed = await api.list(CONFIG_MAPS, home, Select(labels="app"))
    assert [item.name for item in listed.items] == names
    assert listed.version >= max(item.version for item in listed.items)
    assert {(item.obj()["kind"], item.obj()["apiVersion"]) for item in listed.items} == {("ConfigMap", "v1")}


async def test_selectors_choose_in_lists(api: Api, home: str) -> None:
    for name in ("a", "b", "c"):
        await api.create(CONFIG_MAPS, config(home, name))
    by_label = await api.list(CONFIG_MAPS, home, Select(labels="app in (a, c)"))
    assert [item.name for item in by_label.items] == ["a", "c"]
    by_field = await api.list(CONFIG_MAPS, "", Select(fields=f"metadata.namespace={home},metadata.name=b"))
    assert [item.key for item in by_field.items] == [(home, "b")]


async def test_an_update_of_what_was_read_is_done_and_one_of_an_older_reading_is_stale(api: Api, home: str) -> None:
    first = await api.create(CONFIG_MAPS, config(home, "a", x="1"))
    second = await api.update(CONFIG_MAPS, {**first.obj(), "data": {"x": "2"}})
    assert second.version > first.version
    with pytest.raises(StaleError) as refused:
        await api.update(CONFIG_MAPS, {**first.obj(), "data": {"x": "3"}})
    assert isinstance(refused.value, ConflictError)
    assert refused.value.reason == "Conflict"


async def test_an_update_that_changes_nothing_keeps_the_version(api: Api, home: str) -> None:
    made = await api.create(CONFIG_MAPS, config(home, "a", x="1"))
    assert (await api.update(CONFIG_MAPS, made.obj())).version == made.version


async def test_a_status_is_written_by_its_own_door(api: Api, home: str) -> None:
    made = await api.create(PODS, pod(home, "p"))
    status = {"phase": "Running", "message": "by its door"}
    assert (await api.update(PODS, {**made.obj(), "status": dict(status)})).obj()["status"]["phase"] == "Pending"
    after = await api.update(PODS, {**made.obj(), "status": dict(status)}, "status")
    assert after.obj()["status"]["message"] == "by its door"


@pytest.mark.parametrize(
    ("patch", "after"),
    [
        (Patch("merge", {"data": {"x": None, "y": "2"}}), {"y": "2"}),
        (Patch("strategic", {"data": {"y": "2"}}), {"x": "1", "y": "2"}),
        (Patch("json", [{"op": "replace", "path": "/data/x", "value": "3"}]), {"x": "3"}),
    ],
)
async def test_patches_of_each_kind(api: Api, home: str, patch: Patch, after: dict[str, str]) -> None:
    await api.create(CONFIG_MAPS, config(home, "a", x="1"))
    assert (await api.patch(CONFIG_MAPS, home, "a", patch)).obj()["data"] == after


async def test_a_patch_of_an_older_reading_is_stale(api: Api, home: str) -> None:
    made = await api.create(CONFIG_MAPS, config(home, "a", x="1"))
    await api.patch(CONFIG_MAPS, home, "a", Patch("merge", {"data": {"x": "2"}}))
    old = {"metadata": {"resourceVersion": str(made.version)}, "data": {"x": "3"}}
    with pytest.raises(StaleError):
        await api.patch(CONFIG_MAPS, home, "a", Patch("merge", old))


async def test_an_apply_creates_and_needs_force_to_take_a_field_of_somebody_else(api: Api, home: str) -> None:
    typed = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a"}}
    made = await api.patch(CONFIG_MAPS, home, "a", Patch("apply", {**typed, "data": {"x": "1"}}))
    managers = {(one["manager"], one["operation"]) for one in made.obj()["metadata"]["managedFields"]}
    assert managers == {("test", "Apply")}
    await api.patch(CONFIG_MAPS, home, "a", Patch("merge", {"data": {"x": "2"}}))
    again = {**typed, "data": {"x": "3"}}
    with pytest.raises(StaleError):
        await api.patch(CONFIG_MAPS, home, "a", Patch("apply", deepcopy(again)))
    taken = await api.patch(CONFIG_MAPS, home, "a", Patch("apply", deepcopy(again), force=True))
    assert taken.obj()["data"] == {"x": "3"}


async def test_every_resource_is_found_in_one_version_with_its_verbs(api: Api) -> None:
    served = {(one.kind.group, one.kind.plural): one for one in await api.served()}
    assert served["", "pods"].kind == PODS
    assert served["apps", "deployments"].kind == DEPLOYMENTS
    assert {"get", "list", "watch", "create", "update", "patch", "delete"} <= served["", "pods"].verbs
    assert not served["", "namespaces"].kind.is_namespaced
    assert "list" not in served["authorization.k8s.io", "subjectaccessreviews"].verbs


async def test_calls_at_once_are_each_answered(api: Api, home: str) -> None:
    made: list[Item] = await asyncio.gather(*(api.create(CONFIG_MAPS, config(home, f"c-{at}")) for at in range(100)))
    assert len({item.version for item in made}) == 100
    found = await asyncio.gather(*(api.get(CONFIG_MAPS, home, item.name) for item in made))
    assert [item.uid for item in found] == [item.uid for item in made]


async def test_a_patch_of_an_object_that_was_made_anew_since_is_like_one_that_came_too_late(
    api: Api, home: str
) -> None:
    await api.create(CONFIG_MAPS, config(home, "a"))
    gone = Patch("merge", {"metadata": {"uid": "11111111-2222-3333-4444-555555555555"}, "data": {"x": "2"}})
    with pytest.raises(StaleError):
        await api.patch(CONFIG_MAPS, home, "a", gone)
    assert (await api.get(CONFIG_MAPS, home, "a")).obj().get("data") in (None, {})
