"""Who owns what after creates and updates: moves, removals, resets by the user, old managers merged."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from build.cluster_schemas import built_in, custom, keyed, map_of, number, struct, text, widget
from build.depth import examples
from build.owners import Explanation
from shoal.embedded.apiserver.apply.tracking import keep_times, track

Obj = dict[str, Any]

SHAPE = custom(
    size=number(), word=text(), labels=map_of(text()), items=keyed(["name"], struct(name=text(), value=text()))
)


def story() -> Explanation:
    return Explanation(SHAPE, "example.com/v1")


def pod() -> Obj:
    container = {
        "name": "c",
        "image": "i",
        "ports": [{"containerPort": 80, "protocol": "TCP"}],
        "resources": {},
        "env": [{"name": "A", "value": "1"}],
    }
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "u"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "generateName": "p-", "labels": {"a": "b"}, "ownerReferences": [owner]},
        "spec": {
            "containers": [container],
            "volumes": [{"name": "v", "emptyDir": {}}],
            "tolerations": [{"key": "k"}],
            "securityContext": {},
            "nodeSelector": {"x": "y"},
        },
        "status": {},
    }


def test_the_creator_of_a_pod_owns_it_as_kubernetes_writes_it_down() -> None:
    told = Explanation(built_in("v1", "Pod"), "v1")
    told.write(pod(), "kubectl-create")
    assert told.entry("kubectl-create") == {
        "manager": "kubectl-create",
        "operation": "Update",
        "apiVersion": "v1",
        "time": "2026-11-21T10:00:01Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": {
            "f:metadata": {
                "f:generateName": {},
                "f:labels": {".": {}, "f:a": {}},
                "f:ownerReferences": {".": {}, 'k:{"uid":"u"}': {}},
            },
            "f:spec": {
                "f:containers": {
                    'k:{"name":"c"}': {
                        ".": {},
                        "f:env": {".": {}, 'k:{"name":"A"}': {".": {}, "f:name": {}, "f:value": {}}},
                        "f:image": {},
                        "f:name": {},
                        "f:ports": {
                            ".": {},
                            'k:{"containerPort":80,"protocol":"TCP"}': {
                                ".": {},
                                "f:containerPort": {},
                                "f:protocol": {},
                            },
                        },
                        "f:resources": {},
                    }
                },
                "f:nodeSelector": {},
                "f:securityContext": {},
                "f:tolerations": {},
                "f:volumes": {".": {}, 'k:{"name":"v"}': {".": {}, "f:emptyDir": {}, "f:name": {}}},
            },
        },
    }


def test_structures_that_are_always_there_are_not_owned_and_pointers_are() -> None:
    told = Explanation(built_in("apps/v1", "Deployment"), "apps/v1")
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": []}}
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}
    selector = {"matchLabels": {"a": "b"}}
    spec = {"replicas": 1, "selector": selector, "strategy": strategy, "template": template}
    told.write({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": spec}, "m")
    assert told.owned("m") == {
        "f:replicas": {},
        "f:selector": {},
        "f:strategy": {"f:rollingUpdate": {".": {}, "f:maxSurge": {}}, "f:type": {}},
        "f:template": {"f:metadata": {"f:labels": {".": {}, "f:a": {}}}, "f:spec": {"f:containers": {}}},
    }


def test_the_creator_of_a_custom_object_owns_its_spec_itself() -> None:
    told = story()
    told.write(widget({"size": 1}), "m")
    assert told.owned("m") == {".": {}, "f:size": {}}


def test_identity_and_system_fields_are_never_owned() -> None:
    told = story()
    system = {"uid": "1", "generation": 1, "creationTimestamp": "2026-11-21T10:00:00Z", "selfLink": "/x"}
    told.write(widget(None, namespace="n", resourceVersion="1", **system), "m")
    assert told.entries == []


def test_a_changed_field_moves_to_who_changed_it() -> None:
    told = story()
    told.write(widget({"size": 1, "word": "x"}), "a")
    told.edit("b", size=2)
    assert (told.owned("a"), told.owned("b")) == ({".": {}, "f:word": {}}, {"f:size": {}})
    assert told.entry("b")["time"] == "2026-11-21T10:00:02Z"
    assert told.entry("a")["time"] == "2026-11-21T10:00:01Z"


def test_a_removed_field_belongs_to_nobody() -> None:
    told = story()
    told.write(widget({"size": 1, "items": [{"name": "i", "value": "v"}]}), "a")
    told.edit("b", items=None)
    assert told.owned("a") == {".": {}, "f:size": {}}
    assert told.managers() == ["a"]


def test_an_update_takes_fields_from_appliers_too() -> None:
    told = story()
    told.apply(widget({"size": 1}), "applier")
    told.edit("u", size=2)
    assert told.managers() == ["u"]


def test_writing_the_same_again_keeps_everything() -> None:
    told = story()
    first = copy.deepcopy(told.write(widget({"size": 1}), "a"))
    assert told.write(copy.deepcopy(first), "b") == first


def test_more_updates_of_a_manager_add_up_in_one_entry() -> None:
    told = story()
    told.write(widget({"size": 1}), "a")
    told.edit("b", word="x")
    told.edit("b", labels={"k": "v"})
    assert told.owned("b") == {"f:labels": {".": {}, "f:k": {}}, "f:word": {}}
    assert told.entry("b")["time"] == "2026-11-21T10:00:03Z"


_SPECS = st.fixed_dictionaries(
    {},
    optional={
        "size": st.integers(1, 2),
        "word": st.sampled_from(["x", "y"]),
        "labels": st.dictionaries(st.sampled_from("ab"), st.sampled_from("xy")),
        "items": st.lists(st.fixed_dictionaries({"name": st.sampled_from("ij"), "value": st.sampled_from("xy")})).map(
            lambda items: list({item["name"]: item for item in items}.values())
        ),
    },
)


@settings(max_examples=examples(80), deadline=None)
@given(_SPECS, _SPECS)
def test_who_writes_alone_owns_what_he_would_own_beside_another(first: Obj, second: Obj) -> None:
    alone, beside = story(), story()
    for told in (alone, beside):
        told.write(widget(first), "a")
    labelled = copy.deepcopy(beside.live) or {}
    labelled["metadata"]["labels"] = {"k": "v"}
    beside.write(labelled, "b")
    for told in (alone, beside):
        told.write({**copy.deepcopy(told.live or {}), "spec": second}, "a")
    assert [one["fieldsV1"] for one in alone.entries] == [
        one["fieldsV1"] for one in beside.entries if one["manager"] == "a"
    ]


def test_who_changes_what_he_alone_owned_has_the_new_time_and_nothing_else() -> None:
    told = story()
    told.write(widget({"size": 1, "word": "x"}), "a")
    told.edit("a", size=2)
    assert told.owned("a") == {".": {}, "f:size": {}, "f:word": {}}
    assert told.entry("a")["time"] == "2026-11-21T10:00:02Z"


def test_entries_stand_by_operation_then_age_then_name() -> None:
    told = story()
    told.write(widget({"size": 1}), "z-updates")
    told.edit("a-updates", word="x")
    told.apply(widget({"labels": {"k": "v"}}), "applies")
    assert told.managers() == ["applies", "z-updates", "a-updates"]


def test_a_write_through_the_status_is_an_entry_of_its_own() -> None:
    told = story()
    told.write(widget({"size": 1}), "m")
    new = {**copy.deepcopy(told.live or {}), "status": {"ready": True}}
    new["metadata"]["managedFields"] = []
    new["spec"] = {"size": 5}
    told.write(new, "m", subresource="status", reset=("spec",))
    assert told.entry("m", subresource="status")["fieldsV1"] == {"f:status": {".": {}, "f:ready": {}}}
    assert told.entry("m")["fieldsV1"] == {"f:spec": {".": {}, "f:size": {}}}


@pytest.mark.parametrize("given", [[], [{}]])
def test_a_user_can_reset_all_managers(given: list[Obj]) -> None:
    told = story()
    told.write(widget({"size": 1}), "a")
    told.write({**(told.live or {}), "metadata": {"name": "w", "uid": "1234", "managedFields": given}}, "b")
    assert told.entries == []
    told.edit("c", size=2)
    assert told.entries == []
    told.apply(widget({"word": "x"}), "d")
    assert told.managers() == ["d", "before-first-apply"]
    assert told.owned("before-first-apply") == {".": {}, "f:size": {}}


def test_a_user_can_edit_the_managers() -> None:
    told = story()
    told.write(widget({"size": 1}), "a")
    entry = {**told.entries[0], "manager": "z", "operation": "Apply"}
    entry["fieldsV1"] = {"f:spec": {"f:items": {'k:{ "name": "i" }': {".": {}}}, "f:size": {}}}
    told.write({**(told.live or {}), "metadata": {"name": "w", "uid": "1234", "managedFields": [entry]}}, "b")
    assert told.managers() == ["z"]
    assert told.owned("z") == {"f:items": {'k:{"name":"i"}': {".": {}}}, "f:size": {}}


@pytest.mark.parametrize(
    "broken",
    [
        {"operation": "Conquer", "apiVersion": "v1", "fieldsType": "FieldsV1"},
        {"operation": "Update", "fieldsType": "FieldsV1"},
        {"operation": "Update", "apiVersion": "v1"},
        {"operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {"q:x": {}}},
        {"operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {"k:{": {}}},
    ],
    ids=str,
)
def test_managers_that_cannot_be_read_are_ignored(broken: Obj) -> None:
    told = story()
    before = copy.deepcopy(told.write(widget({"size": 1}), "a"))
    new = {**before, "metadata": {**before["metadata"], "managedFields": [broken]}}
    assert told.write(new, "b") == before


def test_leaving_managers_out_keeps_them() -> None:
    told = story()
    told.write(widget({"size": 1}), "a")
    told.write(widget({"size": 1, "word": "x"}, uid="1234"), "b")
    assert told.managers() == ["a", "b"]


def test_more_than_ten_updaters_lose_the_oldest_to_ancient_changes() -> None:
    told = story()
    told.write(widget({"labels": {"k0": "v"}}), "m00")
    for turn in range(1, 12):
        told.edit(f"m{turn:02}", labels={**told.spec["labels"], f"k{turn}": "v"})
    assert told.managers() == ["ancient-changes", *(f"m{turn:02}" for turn in range(3, 12))]
    assert told.owned("ancient-changes")["f:labels"] == {".": {}, "f:k0": {}, "f:k1": {}, "f:k2": {}}


def test_a_nameless_manager_is_unknown() -> None:
    told = story()
    told.write(widget({"size": 1}), "")
    assert told.managers() == ["unknown"]


def test_a_list_with_duplicates_does_not_stop_an_update() -> None:
    told = story()
    told.write(widget({"items": [{"name": "a", "value": "1"}, {"name": "a", "value": "2"}]}), "a")
    assert told.owned("a") == {".": {}, "f:items": {".": {}, 'k:{"name":"a"}': {}}}
    told.edit("b", items=[{"name": "a", "value": "3"}])
    assert told.owned("b") == {"f:items": {'k:{"name":"a"}': {}}}


def test_an_item_without_its_key_leaves_the_managers_as_they_were() -> None:
    told = story()
    told.write(widget({"size": 1}), "a")
    told.edit("b", items=[{"value": "1"}], size=2)
    assert told.managers() == ["a"]


def test_what_became_atomic_belongs_whole_to_who_owned_a_part() -> None:
    told = story()
    told.apply(widget({"labels": {"k": "v"}}), "a")
    atomic = map_of(text())
    atomic.map_type = "atomic"
    told.schema = custom(size=number(), labels=atomic)
    told.apply(widget({"size": 1}), "b")
    assert told.owned("a") == {"f:labels": {}}


def test_only_times_that_differ_are_taken_back() -> None:
    told = story()
    told.write(widget({"size": 1}), "a")
    old = told.live or {}
    new = copy.deepcopy(old)
    new["metadata"]["managedFields"][0]["time"] = "2030-01-01T00:00:00Z"
    assert keep_times(new, old)
    assert new == old
    new["spec"]["size"] = 2
    new["metadata"]["managedFields"][0]["time"] = "2030-01-01T00:00:00Z"
    assert not keep_times(new, old)
    assert new["metadata"]["managedFields"][0]["time"] == "2030-01-01T00:00:00Z"


def test_tracking_does_not_share_the_list_of_managers_with_the_old_object() -> None:
    told = story()
    old = told.write(widget({"size": 1}), "a")
    new = widget({"size": 2}, uid="1234")
    track(new, old, manager="b", api_version="example.com/v1", now="2026-11-21T11:00:00Z", schema=SHAPE)
    assert [one["manager"] for one in old["metadata"]["managedFields"]] == ["a"]
    assert [one["manager"] for one in new["metadata"]["managedFields"]] == ["a", "b"]
