"""Server-side apply: what it creates and owns, what it changes, what goes when it is applied no more."""

import msgspec
import yaml

from build.cluster_api import APPLY, Api
from build.contract_objects import config_map, container, deployment, made, managers


async def test_apply_creates_what_is_not_there_and_owns_what_it_says(api: Api) -> None:
    body = config_map("c", {"a": "1"}, labels={"app": "x"})
    created = (await api.apply(api.core("configmaps", "c"), body, "alice")).ok(201)
    (entry,) = created["metadata"]["managedFields"]
    assert entry["fieldsV1"] == {"f:data": {"f:a": {}}, "f:metadata": {"f:labels": {"f:app": {}}}}
    assert (entry["manager"], entry["operation"], entry["apiVersion"]) == ("alice", "Apply", "v1")
    assert entry["fieldsType"] == "FieldsV1"
    assert entry["time"]
    assert "subresource" not in entry


async def test_the_configuration_may_be_yaml(api: Api) -> None:
    body = yaml.safe_dump(config_map("c", {"a": "line\nline\n"})).encode()
    created = (await api.apply(api.core("configmaps", "c"), body, "alice")).ok(201)
    assert created["data"] == {"a": "line\nline\n"}


async def test_the_same_configuration_again_writes_nothing(api: Api) -> None:
    body = config_map("c", {"a": "1"})
    first = (await api.apply(api.core("configmaps", "c"), body, "alice")).ok(201)
    assert (await api.apply(api.core("configmaps", "c"), body, "alice")).ok(200) == first


async def test_what_is_applied_no_more_is_removed(api: Api) -> None:
    path = api.core("configmaps", "c")
    (await api.apply(path, config_map("c", {"a": "1", "b": "2"}, labels={"x": "y"}), "alice")).ok(201)
    after = (await api.apply(path, config_map("c", {"b": "3"}), "alice")).ok(200)
    assert after["data"] == {"b": "3"}
    assert "labels" not in after["metadata"]
    assert managers(after) == {("alice", "Apply"): {"f:data": {"f:b": {}}}}


async def test_fields_of_nobody_and_of_others_stay(api: Api) -> None:
    path = api.core("configmaps", "c")
    await made(api, "configmaps", config_map("c", {"theirs": "1"}), fieldManager="bob")
    after = (await api.apply(path, config_map("c", {"mine": "1"}), "alice")).ok(200)
    assert after["data"] == {"mine": "1", "theirs": "1"}
    after = (await api.apply(path, config_map("c"), "alice")).ok(200)
    assert after["data"] == {"theirs": "1"}
    assert set(managers(after)) == {("bob", "Update")}


async def test_two_may_own_the_same_value_and_it_stays_until_both_let_go(api: Api) -> None:
    path = api.core("configmaps", "c")
    for manager in ("alice", "bob"):
        (await api.apply(path, config_map("c", {"shared": "1", manager: "1"}), manager)).ok()
    after = (await api.apply(path, config_map("c", {"alice": "1"}), "alice")).ok()
    assert after["data"] == {"shared": "1", "alice": "1", "bob": "1"}
    after = (await api.apply(path, config_map("c", {"bob": "1"}), "bob")).ok()
    assert after["data"] == {"alice": "1", "bob": "1"}


async def test_defaults_are_owned_by_nobody(api: Api) -> None:
    body = deployment("d")
    del body["spec"]["replicas"], body["spec"]["paused"]
    body["spec"]["template"]["spec"]["schedulingGates"] = [{"name": "example.com/never"}]
    created = (await api.apply(api.group("apps/v1", "deployments", "d"), body, "alice")).ok(201)
    assert created["spec"]["replicas"] == 1
    assert created["spec"]["revisionHistoryLimit"] == 10
    owned = managers(created)["alice", "Apply"]["f:spec"]
    assert set(owned) == {"f:selector", "f:template"}
    (main,) = [value for key, value in owned["f:template"]["f:spec"]["f:containers"].items() if key.startswith("k:")]
    assert main == {".": {}, "f:image": {}, "f:name": {}}


async def test_an_owned_field_that_has_a_default_goes_back_to_it(api: Api) -> None:
    path = api.group("apps/v1", "deployments", "d")
    body = deployment("d", revisionHistoryLimit=3)
    (await api.apply(path, body, "alice")).ok(201)
    after = (await api.apply(path, deployment("d"), "alice")).ok(200)
    assert after["spec"]["revisionHistoryLimit"] == 10
    assert after["metadata"]["generation"] == 2


async def test_an_apply_that_says_nothing_owns_nothing(api: Api) -> None:
    created = (await api.apply(api.core("configmaps", "c"), config_map("c"), "alice")).ok(201)
    assert "managedFields" not in created["metadata"] or not managers(created)


async def test_null_says_nothing(api: Api) -> None:
    path = api.core("configmaps", "c")
    body = config_map("c", {"a": "1"})
    body["metadata"]["creationTimestamp"] = None
    created = (await api.apply(path, body, "alice")).ok(201)
    assert created["metadata"]["creationTimestamp"]
    assert managers(created)["alice", "Apply"] == {"f:data": {"f:a": {}}}


async def test_a_dry_run_answers_as_if_and_stores_nothing(api: Api) -> None:
    path = api.core("configmaps", "c")
    made_up = (await api.apply(path, config_map("c", {"a": "1"}), "alice", dryRun="All")).ok(201)
    assert made_up["data"] == {"a": "1"}
    assert managers(made_up)
    (await api.get(path)).refused(404, "NotFound")
    before = await made(api, "configmaps", config_map("c", {"a": "1"}))
    assert (await api.apply(path, config_map("c", {"b": "1"}), "alice", dryRun="All")).ok(200)["data"] == {
        "a": "1",
        "b": "1",
    }
    assert (await api.get(path)).ok() == before


async def test_applied_quantities_are_compared_by_value_of_text_after_they_are_read(api: Api) -> None:
    path = api.group("apps/v1", "deployments", "d")
    body = deployment("d", container(resources={"limits": {"cpu": "1000m"}}))
    (await api.apply(path, body, "alice")).ok(201)
    after = (await api.apply(path, body, "alice")).ok(200)
    assert after["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"] == {"cpu": "1"}
    assert after["metadata"]["generation"] == 1


async def test_apply_takes_what_the_user_agent_says_only_for_updates(api: Api) -> None:
    """An apply must name its manager; other writes are named after the client's program."""
    created = await made(api, "configmaps", config_map("c", {"a": "1"}))
    assert set(managers(created)) == {("shoal-test", "Update")}
    body = msgspec.json.encode(config_map("c"))
    message = (await api.patch(api.core("configmaps", "c"), body, APPLY)).refused(422, "Invalid")
    assert message == (
        'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch'
    )
