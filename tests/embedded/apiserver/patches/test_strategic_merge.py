"""Strategic merge patch on real kinds: keyed lists, plain lists, directives, order, refusals."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from build.cluster_schemas import built_in
from build.depth import examples
from shoal.embedded.apiserver.patches.strategic import strategic_merge
from shoal.embedded.apiserver.status import ApiError

Obj = dict[str, Any]


def pod(**spec: Any) -> Obj:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}


def patched(obj: Obj, patch: Obj, kind: str = "Pod", api_version: str = "v1") -> Obj:
    before = copy.deepcopy((obj, patch))
    result = strategic_merge(obj, patch, built_in(api_version, kind))
    assert (obj, patch) == before
    return result


def patched_spec(spec: Obj, patch: Obj) -> Any:
    return patched(pod(**spec), {"spec": patch})["spec"]


def refused(spec: Obj, patch: Obj) -> ApiError:
    with pytest.raises(ApiError) as caught:
        patched_spec(spec, patch)
    return caught.value


TWO = {"containers": [{"name": "a", "image": "1", "tty": True}, {"name": "b", "image": "2"}]}


def test_a_container_is_found_by_its_name() -> None:
    found = patched_spec(TWO, {"containers": [{"name": "b", "image": "3"}]})
    assert found["containers"] == [{"name": "a", "image": "1", "tty": True}, {"name": "b", "image": "3"}]


def test_a_new_item_comes_first() -> None:
    found = patched_spec(TWO, {"containers": [{"name": "c", "image": "3"}]})
    assert [one["name"] for one in found["containers"]] == ["c", "a", "b"]


def test_an_item_is_deleted_by_its_key() -> None:
    found = patched_spec(TWO, {"containers": [{"name": "a", "$patch": "delete"}]})
    assert found["containers"] == [{"name": "b", "image": "2"}]


def test_a_list_is_replaced_where_the_patch_says_so() -> None:
    found = patched_spec(TWO, {"containers": [{"name": "z", "image": "9"}, {"$patch": "replace"}]})
    assert found["containers"] == [{"name": "z", "image": "9"}]


def test_the_order_directive_orders_all_items() -> None:
    patch = {
        "$setElementOrder/containers": [{"name": "b"}, {"name": "c"}, {"name": "a"}],
        "containers": [{"name": "c"}],
    }
    assert [one["name"] for one in patched_spec(TWO, patch)["containers"]] == ["b", "c", "a"]


def test_items_that_the_order_does_not_name_keep_their_place() -> None:
    spec = {"containers": [{"name": name} for name in "abcd"]}
    found = patched_spec(spec, {"$setElementOrder/containers": [{"name": "d"}, {"name": "b"}]})
    assert [one["name"] for one in found["containers"]] == ["a", "c", "d", "b"]


def test_an_order_alone_on_a_missing_list_is_ignored() -> None:
    assert patched_spec(TWO, {"$setElementOrder/volumes": [{"name": "v"}]}) == TWO


def test_a_list_without_merge_strategy_is_replaced() -> None:
    spec = {"tolerations": [{"key": "a"}], "containers": [{"name": "a", "args": ["x"]}]}
    found = patched_spec(spec, {"tolerations": [{"key": "b"}], "containers": [{"name": "a", "args": ["y"]}]})
    assert found == {"tolerations": [{"key": "b"}], "containers": [{"name": "a", "args": ["y"]}]}


def test_a_merged_list_of_texts_is_a_union() -> None:
    obj = pod()
    obj["metadata"]["finalizers"] = ["a/b", "c/d"]
    found = patched(obj, {"metadata": {"finalizers": ["e/f", "a/b"]}})
    assert sorted(found["metadata"]["finalizers"]) == ["a/b", "c/d", "e/f"]
    found = patched(obj, {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a/b"]}})
    assert found["metadata"]["finalizers"] == ["c/d"]


def test_retain_keys_clears_the_old_source_of_a_volume() -> None:
    spec = {"volumes": [{"name": "v", "emptyDir": {}}, {"name": "w", "emptyDir": {}}]}
    patch = {"volumes": [{"$retainKeys": ["name", "hostPath"], "name": "v", "hostPath": {"path": "/x"}}]}
    assert patched_spec(spec, patch)["volumes"][0] == {"name": "v", "hostPath": {"path": "/x"}}


def test_retain_keys_clears_the_rolling_update_of_a_deployment() -> None:
    obj: Obj = {"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}}
    patch = {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}
    assert patched(obj, patch, "Deployment", "apps/v1") == {"spec": {"strategy": {"type": "Recreate"}}}


def test_null_takes_a_field_away_and_is_dropped_from_what_is_new() -> None:
    obj = pod(nodeName="n")
    obj["metadata"]["labels"] = {"a": "1"}
    patch = {"metadata": {"labels": {"a": None}}, "spec": {"nodeName": None, "securityContext": {"runAsUser": None}}}
    found = patched(obj, patch)
    assert found["metadata"]["labels"] == {}
    assert found["spec"] == {"securityContext": {}}


def test_a_map_is_replaced_or_emptied_by_a_directive() -> None:
    obj = pod(securityContext={"runAsUser": 1, "fsGroup": 2})
    assert patched(obj, {"spec": {"securityContext": {"$patch": "replace", "fsGroup": 3}}})["spec"] == {
        "securityContext": {"fsGroup": 3}
    }
    assert patched(obj, {"spec": {"securityContext": {"$patch": "delete"}}})["spec"] == {"securityContext": {}}


def test_directives_do_not_get_into_objects() -> None:
    found = patched_spec({}, {"$setElementOrder/containers": [{"name": "a"}], "containers": [{"name": "a"}]})
    assert found == {"containers": [{"name": "a"}]}
    fresh = patched_spec({}, {"securityContext": {"$retainKeys": ["fsGroup"], "fsGroup": 1}})
    assert fresh == {"securityContext": {"fsGroup": 1}}


def test_ports_are_told_apart_by_number() -> None:
    spec = {"containers": [{"name": "a", "ports": [{"containerPort": 80}, {"containerPort": 81}]}]}
    patch = {"containers": [{"name": "a", "ports": [{"containerPort": 80, "name": "web"}]}]}
    assert patched_spec(spec, patch)["containers"][0]["ports"][0] == {"containerPort": 80, "name": "web"}


@pytest.mark.parametrize(
    ("patch", "code", "words"),
    [
        ({"containers": [{"image": "x"}]}, 500, "map: map[image:x] does not contain declared merge key: name"),
        (
            {"containers": [{"name": "a", "$patch": "swap"}]},
            500,
            "unknown patch type: swap in map: map[$patch:swap name:a]",
        ),
        ({"$retainKeys": "containers"}, 400, "invalid patch format of retainKeys"),
        ({"$retainKeys": ["volumes"], "nodeName": "n"}, 400, "invalid patch format of retainKeys"),
        ({"containers": [["a"]]}, 422, "the server rejected our request due to an error in our request"),
        (
            {"$setElementOrder/containers": [{"name": "a"}], "containers": [{"name": "b"}]},
            500,
            "The order in patch list:\n[map[name:b]]\n doesn't match $setElementOrder list:\n[map[name:a]]\n",
        ),
    ],
)
def test_a_patch_that_makes_no_sense_is_refused_in_kubernetes_words(patch: Obj, code: int, words: str) -> None:
    error = refused(TWO, patch)
    assert (error.code, error.message) == (code, words)


NAMES = st.sampled_from(["a", "b", "c", "d"])
ITEMS = st.lists(
    st.fixed_dictionaries({"name": NAMES}, optional={"image": st.sampled_from(["1", "2"]), "tty": st.booleans()}),
    unique_by=lambda one: one["name"],
)


def strategic_between(source: list[Obj], target: list[Obj]) -> Obj:
    """A patch as kubectl would make it."""
    old = {one["name"]: one for one in source}
    changes: list[Obj] = []
    for item in target:
        before = old.get(item["name"], {})
        gone = dict.fromkeys(before.keys() - item.keys())
        changes.append({"name": item["name"], **{k: v for k, v in item.items() if before.get(k) != v}, **gone})
    kept = {one["name"] for one in target}
    changes += [{"name": name, "$patch": "delete"} for name in old if name not in kept]
    order = [{"name": one["name"]} for one in target]
    return {"$setElementOrder/containers": order, "containers": changes}


@settings(max_examples=examples(80))
@given(ITEMS, ITEMS)
def test_the_strategic_difference_reproduces_the_target(source: list[Obj], target: list[Obj]) -> None:
    found = patched_spec({"containers": source}, strategic_between(source, target))
    assert found["containers"] == target


@settings(max_examples=examples(80))
@given(ITEMS, ITEMS)
def test_a_strategic_merge_settles_at_once(source: list[Obj], patch: list[Obj]) -> None:
    once = patched_spec({"containers": source}, {"containers": patch})
    again = patched_spec(once, {"containers": patch})
    assert again == once
