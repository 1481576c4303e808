"""Server-side apply: co-owners, removal, conflicts, force, keyed lists, sets, atomic values, nulls."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from build.cluster_schemas import built_in, custom, keyed, map_of, number, plain_list, set_of, struct, text, widget
from build.depth import examples
from build.owners import Explanation
from shoal.embedded.apiserver.apply.fieldset import difference, paths
from shoal.embedded.apiserver.apply.owned import field_set
from shoal.embedded.apiserver.status import ApiError

Obj = dict[str, Any]

ITEM = struct(name=text(), value=text(), other=text())
SHAPE = custom(
    size=number(),
    word=text(),
    rule=struct(first=text(), second=text()),
    frozen=struct(atomic=True, first=text(), second=text()),
    labels=map_of(text()),
    items=keyed(["name"], ITEM),
    ports=keyed(["port", "proto"], struct(port=number(), proto=number(default=6), note=text())),
    groups=keyed(["name"], struct(name=text(), members=keyed(["name"], ITEM))),
    tags=set_of(text()),
    order=plain_list(text()),
)


OMITS_KEYS = (
    ".spec.items: element 0: associative list with keys has an element that omits all key fields "
    '["name"] (and doesn\'t have default values for any key fields)'
)
TWO_FAULTS = """errors:
  .spec.size: expected numeric (int or float), got string
  .spec.nothing: field not declared in schema"""


def story() -> Explanation:
    return Explanation(SHAPE, "example.com/v1")


def refused(told: Explanation, config: Obj, manager: str, **how: Any) -> ApiError:
    with pytest.raises(ApiError) as caught:
        told.apply(config, manager, **how)
    return caught.value


def test_applying_creates_an_object_and_owns_what_it_set() -> None:
    told = story()
    live = told.apply(widget({"size": 1, "labels": {"a": "x"}}, labels={"app": "w"}), "a")
    assert live["spec"] == {"size": 1, "labels": {"a": "x"}}
    assert told.entries == [
        {
            "manager": "a",
            "operation": "Apply",
            "apiVersion": "example.com/v1",
            "time": "2026-11-21T10:00:01Z",
            "fieldsType": "FieldsV1",
            "fieldsV1": {
                "f:metadata": {"f:labels": {"f:app": {}}},
                "f:spec": {"f:labels": {"f:a": {}}, "f:size": {}},
            },
        }
    ]


def test_applying_the_same_again_changes_nothing_at_all() -> None:
    told = story()
    first = copy.deepcopy(told.apply(widget({"size": 1, "items": [{"name": "a"}]}), "a"))
    assert told.apply(widget({"size": 1, "items": [{"name": "a"}]}), "a") == first


def test_a_null_creation_time_in_a_manifest_means_nothing() -> None:
    told = story()
    told.apply(widget({"size": 1}), "a")
    assert told.live is not None
    told.live["metadata"]["creationTimestamp"] = "2026-11-21T10:00:00Z"
    before = copy.deepcopy(told.live)
    assert told.apply(widget({"size": 1}, creationTimestamp=None), "a") == before


def test_another_value_of_an_owned_field_is_a_conflict() -> None:
    told = story()
    told.apply(widget({"size": 1}), "a")
    error = refused(told, widget({"size": 2}), "b")
    assert (error.code, error.reason) == (409, "Conflict")
    assert error.message == 'Apply failed with 1 conflict: conflict with "a": .spec.size'
    assert error.details == {
        "causes": [{"reason": "FieldManagerConflict", "message": 'conflict with "a"', "field": ".spec.size"}]
    }
    assert told.spec == {"size": 1}


def test_an_updater_is_named_with_its_version_and_subresource() -> None:
    told = story()
    told.write(widget({"size": 1}), "kubectl-edit")
    words = 'Apply failed with 1 conflict: conflict with "kubectl-edit" using example.com/v1: .spec.size'
    assert refused(told, widget({"size": 2}), "b").message == words
    told = story()
    told.write(widget({"size": 1}), "scaler")
    told.write(widget({"size": 2}, uid="1234"), "hpa", subresource="scale")
    assert refused(told, widget({"size": 3}), "b").message == (
        'Apply failed with 1 conflict: conflict with "hpa" with subresource "scale" using example.com/v1: .spec.size'
    )


def test_several_conflicts_are_listed_by_manager_and_path() -> None:
    told = story()
    told.write(widget({"size": 1, "word": "x", "items": [{"name": "i", "value": "v"}]}), "b-updates")
    told.apply(widget({"labels": {"k": "v"}}), "a-applies")
    wanted = {"size": 2, "word": "y", "items": [{"name": "i", "value": "w"}], "labels": {"k": "w"}}
    error = refused(told, widget(wanted), "c")
    assert error.message == (
        "Apply failed with 4 conflicts: "
        'conflicts with "a-applies":\n'
        "- .spec.labels.k\n"
        'conflicts with "b-updates" using example.com/v1:\n'
        "- .spec.size\n"
        "- .spec.word\n"
        '- .spec.items[name="i"].value'
    )
    assert error.details is not None
    assert error.details["causes"][0] == {
        "reason": "FieldManagerConflict",
        "message": 'conflict with "a-applies"',
        "field": ".spec.labels.k",
    }


def test_force_takes_the_field_from_its_owner() -> None:
    told = story()
    told.apply(widget({"size": 1, "word": "x"}), "a")
    told.apply(widget({"size": 2}), "b", force=True)
    assert told.spec == {"size": 2, "word": "x"}
    assert (told.owned("a"), told.owned("b")) == ({"f:word": {}}, {"f:size": {}})


def test_a_manager_that_loses_everything_is_forgotten() -> None:
    told = story()
    told.apply(widget({"size": 1}), "a")
    told.apply(widget({"size": 2}), "b", force=True)
    assert told.managers() == ["b"]


def test_equal_values_are_owned_together_and_stay_until_the_last_owner_goes() -> None:
    told = story()
    told.apply(widget({"size": 1, "word": "x"}), "a")
    told.apply(widget({"size": 1}), "b")
    assert told.owned("b") == {"f:size": {}}
    told.apply(widget(), "a")
    assert told.spec == {"size": 1}
    assert told.managers() == ["b"]
    told.apply(widget(), "b")
    assert told.spec is None
    assert told.entries == []


def test_a_co_owner_that_changes_nothing_has_no_time() -> None:
    told = story()
    told.apply(widget({"size": 1}), "a")
    told.apply(widget({"size": 1}), "b")
    assert "time" not in told.entry("b")


def test_one_of_two_owners_cannot_change_the_value_alone() -> None:
    told = story()
    told.apply(widget({"size": 1}), "a")
    told.apply(widget({"size": 1}), "b")
    assert refused(told, widget({"size": 2}), "a").message.endswith('conflict with "b": .spec.size')


def test_what_an_updater_owns_too_is_not_removed() -> None:
    told = story()
    told.apply(widget({"size": 1, "word": "x"}), "a")
    told.edit("editor", size=2)
    told.apply(widget({"word": "x"}), "a")
    assert told.spec == {"size": 2, "word": "x"}


def test_what_nobody_owns_goes_with_the_structure_around_it_and_stays_outside_of_it() -> None:
    told = story()
    told.apply(widget({"rule": {"first": "1"}, "size": 1}), "a")
    assert told.live is not None
    told.live["spec"]["rule"]["second"] = "by admission"
    told.live["spec"]["word"] = "by admission"
    told.apply(widget({"size": 1}), "a")
    assert told.spec == {"size": 1, "word": "by admission"}


def test_what_was_taken_back_leaves_what_an_updater_added_beside_it() -> None:
    told = story()
    told.apply(widget({"rule": {"first": "1"}}), "a")
    told.edit("u", rule={"first": "1", "second": "2"})
    told.apply(widget(), "a")
    assert told.spec == {"rule": {"second": "2"}}


def test_an_item_that_only_this_manager_owned_goes_with_it() -> None:
    told = story()
    told.apply(widget({"items": [{"name": "a", "value": "1"}, {"name": "b"}]}), "m")
    told.apply(widget({"items": [{"name": "b"}]}), "m")
    assert told.spec == {"items": [{"name": "b"}]}


def test_an_item_that_somebody_added_to_stays_without_what_was_taken_back() -> None:
    told = story()
    told.apply(widget({"items": [{"name": "a", "value": "1"}]}), "m")
    told.apply(widget({"items": [{"name": "a", "other": "2"}]}), "n")
    told.apply(widget({"items": []}), "m")
    assert told.spec == {"items": [{"name": "a", "other": "2"}]}
    assert told.owned("n") == {"f:items": {'k:{"name":"a"}': {".": {}, "f:name": {}, "f:other": {}}}}


def test_new_items_come_after_those_of_others_and_keep_the_applied_order() -> None:
    told = story()
    told.write(widget({"items": [{"name": name} for name in "xay"]}), "u")
    told.apply(widget({"items": [{"name": name} for name in "cab"]}), "m")
    assert [one["name"] for one in told.spec["items"]] == ["x", "c", "a", "y", "b"]


def test_items_of_nested_lists_are_owned_one_by_one() -> None:
    told = story()
    told.apply(widget({"groups": [{"name": "g", "members": [{"name": "a"}]}]}), "m")
    told.apply(widget({"groups": [{"name": "g", "members": [{"name": "b"}]}]}), "n")
    assert told.spec["groups"] == [{"name": "g", "members": [{"name": "a"}, {"name": "b"}]}]
    told.apply(widget({"groups": [{"name": "g", "members": []}]}), "m")
    assert told.spec["groups"] == [{"name": "g", "members": [{"name": "b"}]}]


def test_a_key_field_left_out_counts_with_its_default() -> None:
    told = story()
    told.write(widget({"ports": [{"port": 80, "proto": 6, "note": "live"}]}), "u")
    told.apply(widget({"ports": [{"port": 80, "note": "live"}, {"port": 80, "proto": 17}]}), "m")
    assert told.spec["ports"] == [{"port": 80, "proto": 6, "note": "live"}, {"port": 80, "proto": 17}]
    assert set(told.owned("m")["f:ports"]) == {'k:{"port":80,"proto":6}', 'k:{"port":80,"proto":17}'}
    error = refused(told, widget({"ports": [{"port": 80, "note": "mine"}]}), "n")
    assert error.message == (
        'Apply failed with 2 conflicts: conflicts with "m":\n- .spec.ports[port=80,proto=6].note\n'
        'conflicts with "u" using example.com/v1:\n- .spec.ports[port=80,proto=6].note'
    )


def test_values_of_a_set_have_owners_each() -> None:
    told = story()
    told.apply(widget({"tags": ["a", "b"]}), "m")
    told.apply(widget({"tags": ["b", "c"]}), "n")
    assert told.spec == {"tags": ["a", "b", "c"]}
    assert told.owned("n") == {"f:tags": {'v:"b"': {}, 'v:"c"': {}}}
    told.apply(widget({"tags": []}), "m")
    assert told.spec == {"tags": ["b", "c"]}


def test_an_atomic_list_and_an_atomic_map_are_one_value() -> None:
    told = story()
    told.apply(widget({"order": ["a"], "frozen": {"first": "1"}}), "m")
    assert told.owned("m") == {"f:frozen": {}, "f:order": {}}
    error = refused(told, widget({"order": ["a", "b"], "frozen": {"second": "2"}}), "n")
    assert error.message == 'Apply failed with 2 conflicts: conflicts with "m":\n- .spec.frozen\n- .spec.order'
    told.apply(widget({"order": ["b"], "frozen": {"second": "2"}}), "n", force=True)
    assert told.spec == {"order": ["b"], "frozen": {"second": "2"}}


def test_an_empty_map_is_owned_itself() -> None:
    told = story()
    told.apply(widget({"rule": {}}), "m")
    assert told.owned("m") == {"f:rule": {}}
    assert told.spec == {"rule": {}}


def test_an_empty_applied_keyed_list_owns_nothing() -> None:
    told = story()
    told.apply(widget({"items": [], "size": 1}), "m")
    assert told.owned("m") == {"f:size": {}}


def test_entries_of_a_map_go_and_stay_one_by_one() -> None:
    told = story()
    told.apply(widget({"labels": {"a": "1", "b": "2"}}), "m")
    told.apply(widget({"labels": {"c": "3"}}), "n")
    told.apply(widget({"labels": {"b": "2"}}), "m")
    assert told.spec == {"labels": {"b": "2", "c": "3"}}


def test_status_applied_through_its_door_is_another_entry() -> None:
    told = story()
    told.apply(widget({"size": 1}), "m", reset=("status",))
    config = {**widget(), "status": {"ready": True}}
    told.apply(config, "m", subresource="status", reset=("spec",))
    assert told.entry("m", subresource="status")["fieldsV1"] == {"f:status": {"f:ready": {}}}
    assert told.entry("m")["fieldsV1"] == {"f:spec": {"f:size": {}}}


def test_what_the_resource_resets_is_not_owned() -> None:
    told = story()
    told.apply({**widget({"size": 1}), "status": {"ready": True}}, "m", reset=("status",))
    assert told.entry("m")["fieldsV1"] == {"f:spec": {"f:size": {}}}


def test_an_applied_object_may_not_carry_managed_fields() -> None:
    error = refused(story(), widget({}, managedFields=[{"manager": "x"}]), "m")
    assert (error.code, error.message) == (400, "metadata.managedFields must be nil")


def test_an_object_of_another_version_is_refused() -> None:
    error = refused(story(), {**widget({}), "apiVersion": "example.com/v2"}, "m")
    assert (error.code, error.message) == (400, "invalid object type: example.com/v2, Kind=Widget")


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"nothing": 1}, ".spec.nothing: field not declared in schema"),
        ({"size": "big"}, ".spec.size: expected numeric (int or float), got string"),
        ({"word": 7}, ".spec.word: expected string, got &value.valueUnstructured{Value:7}"),
        ({"items": [{"name": "a"}, {"name": "a"}]}, '.spec.items: duplicate entries for key [name="a"]'),
        ({"tags": ["a", "a"]}, '.spec.tags: duplicate entries for key [="a"]'),
        (
            {"items": [{"value": "v"}]},
            OMITS_KEYS,
        ),
        (
            {"size": "big", "nothing": 1},
            TWO_FAULTS,
        ),
    ],
)
def test_a_configuration_that_is_not_of_its_kind_is_refused(spec: Obj, words: str) -> None:
    error = refused(story(), widget(spec, namespace="ns"), "m")
    assert (error.code, error.reason) == (500, "")
    assert error.message == f"failed to create typed patch object (ns/w; example.com/v1, Kind=Widget): {words}"


def test_a_later_version_of_the_same_applier_is_the_same_manager() -> None:
    told = story()
    told.apply(widget({"size": 1, "word": "x"}), "m")
    told.apply({**widget({"size": 1}), "apiVersion": "example.com/v2"}, "m", api_version="example.com/v2")
    assert [(one["manager"], one["apiVersion"]) for one in told.entries] == [("m", "example.com/v2")]
    assert told.spec == {"size": 1}


def test_managers_of_a_version_that_is_served_no_more_are_forgotten() -> None:
    told = story()
    told.apply({**widget({"word": "x"}), "apiVersion": "example.com/v0"}, "old", api_version="example.com/v0")
    told.apply(widget({"size": 1}), "m", elsewhere=lambda obj, version: None)
    assert told.managers() == ["m"]
    assert told.spec == {"word": "x", "size": 1}


def test_managers_of_other_versions_are_compared_in_theirs() -> None:
    other = custom(length=number())

    def elsewhere(obj: Obj, version: str) -> tuple[Obj, Any] | None:
        if version != "example.com/v2":
            return None
        return {**obj, "spec": {"length": obj["spec"]["size"]} if "size" in obj["spec"] else {}}, other

    told = story()
    told.write(widget({"size": 1}), "u")
    told.entry("u").update(apiVersion="example.com/v2", fieldsV1={"f:spec": {"f:length": {}}})
    error = refused(told, widget({"size": 2}), "m", elsewhere=elsewhere)
    assert error.message == 'Apply failed with 1 conflict: conflict with "u" using example.com/v2: .spec.length'


def deployment(**spec: Any) -> Obj:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    whole = {"selector": {"matchLabels": {"a": "b"}}, "template": template, **spec}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d", "namespace": "n"}, "spec": whole}


def test_an_applied_null_is_owned_takes_the_value_away_and_leaves_no_null() -> None:
    told = Explanation(built_in("apps/v1", "Deployment"), "apps/v1")
    told.apply(deployment(replicas=3), "m")
    told.apply(deployment(replicas=None), "m")
    assert "replicas" not in told.spec
    assert "f:replicas" in told.owned("m")


def test_an_applied_null_conflicts_with_the_owner_of_the_value() -> None:
    told = Explanation(built_in("apps/v1", "Deployment"), "apps/v1")
    told.apply(deployment(replicas=3), "m")
    assert refused(told, deployment(replicas=None), "n").message.endswith('with "m": .spec.replicas')


def test_a_port_without_protocol_is_the_tcp_port() -> None:
    def service(port: Obj) -> Obj:
        return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"ports": [port]}}

    told = Explanation(built_in("v1", "Service"), "v1")
    told.apply(service({"port": 80, "name": "web"}), "m")
    assert told.live is not None
    told.live["spec"]["ports"][0]["protocol"] = "TCP"
    told.apply(service({"port": 80, "name": "web", "targetPort": 8080}), "m")
    assert told.spec["ports"] == [{"port": 80, "name": "web", "protocol": "TCP", "targetPort": 8080}]
    assert set(told.owned("m")["f:ports"]) == {'k:{"port":80,"protocol":"TCP"}'}


WORDS = st.sampled_from(["x", "y"])
NAMED = st.lists(
    st.fixed_dictionaries({"name": st.sampled_from("abc")}, optional={"value": WORDS, "other": WORDS}),
    unique_by=lambda one: one["name"],
    min_size=1,
    max_size=3,
)
SPECS = st.fixed_dictionaries(
    {},
    optional={
        "size": st.integers(0, 2),
        "word": WORDS,
        "rule": st.fixed_dictionaries({"first": WORDS}, optional={"second": WORDS}),
        "frozen": st.fixed_dictionaries({"first": WORDS}),
        "labels": st.dictionaries(st.sampled_from("ab"), WORDS, min_size=1, max_size=2),
        "items": NAMED,
        "groups": st.lists(
            st.fixed_dictionaries({"name": st.sampled_from("gh"), "members": NAMED}),
            unique_by=lambda one: one["name"],
            min_size=1,
            max_size=2,
        ),
        "tags": st.lists(WORDS, unique=True, min_size=1, max_size=2),
        "order": st.lists(WORDS, max_size=2),
    },
)


def config_of(spec: Obj) -> Obj:
    return widget(spec or None)


@settings(max_examples=examples(30), deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["m", "n"]), SPECS), max_size=3), SPECS)
def test_applying_is_idempotent_and_a_forced_apply_owns_all_it_sets(before: list[tuple[str, Obj]], spec: Obj) -> None:
    told = story()
    for manager, earlier in before:
        told.apply(config_of(earlier), manager, force=True)
    first = copy.deepcopy(told.apply(config_of(spec), "last", force=True))
    wanted = field_set({"spec": spec}, SHAPE) if spec else {}
    if wanted:
        assert told.owned("last") == wanted["f:spec"]
    assert not list(paths(difference(wanted, field_set({"spec": first.get("spec")}, SHAPE))))
    assert told.apply(config_of(spec), "last") == first


@settings(max_examples=examples(30), deadline=None)
@given(SPECS, SPECS, SPECS)
def test_a_manager_alone_gets_just_what_it_applied(first: Obj, second: Obj, other: Obj) -> None:
    told = story()
    told.apply(config_of(first), "m")
    told.apply(config_of(second), "m")
    assert field_set({"spec": told.spec}, SHAPE) == field_set({"spec": second or None}, SHAPE)
    told.apply(config_of(other), "n", force=True)
    told.apply(widget(), "m", force=True)
    told.apply(widget(), "n", force=True)
    assert told.entries == []
