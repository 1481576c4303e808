"""What a set of objects says of others: missing only where that is certain."""

from __future__ import annotations

import pytest

from build.manifests import node
from shoal.policy.advice import Obj
from shoal.policy.fragments import described
from shoal.policy.kinds import NODE, PRIORITY_CLASS, SERVICE, GroupKind
from shoal.policy.object_set import ObjectSet, is_advised, key_of


def service(name: str, namespace: str = "") -> Obj:
    meta = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": "v1", "kind": "Service", "metadata": meta}


@pytest.mark.parametrize(
    ("objects", "complete", "is_missing"),
    [
        ((), (), False),
        ((service("other", "team"),), (), True),
        ((service("other", "elsewhere"),), (), False),
        ((service("web", "team"), service("other", "team")), (), False),
        ((), (SERVICE,), True),
    ],
)
def test_a_service_is_missing_only_where_that_is_certain(
    objects: tuple[Obj, ...], complete: tuple[GroupKind, ...], is_missing: bool
) -> None:
    assert ObjectSet(objects, complete).lacks(SERVICE, "team", "web") == is_missing


def test_the_priority_classes_of_every_cluster_are_never_missing() -> None:
    assert not ObjectSet((), (PRIORITY_CLASS,)).lacks(PRIORITY_CLASS, "", "system-node-critical")
    assert ObjectSet((), (PRIORITY_CLASS,)).lacks(PRIORITY_CLASS, "", "high")


def test_an_object_without_a_namespace_is_in_the_default_one_unless_its_kind_has_none() -> None:
    assert key_of(service("web")) == ("default", "web")
    assert key_of(node("n")) == ("", "n")


def test_nodes_have_labels_and_taints_and_those_without_a_name_are_none() -> None:
    tainted = {**node("n", labels={"a": "b"}), "spec": {"taints": [{"key": "t", "effect": "NoSchedule"}, {"key": 7}]}}
    (found,) = ObjectSet([tainted, {"apiVersion": "v1", "kind": "Node", "metadata": {}}]).nodes()
    assert found.labels["a"] == "b"
    assert [str(taint) for taint in found.taints] == ["t:NoSchedule"]
    assert len(list(ObjectSet([tainted]).all(NODE))) == 1


@pytest.mark.parametrize(
    ("meta", "is_checked"),
    [
        ({"name": "a"}, True),
        ({"name": "a", "ownerReferences": [{"name": "b"}]}, True),
        ({"name": "a", "ownerReferences": [{"name": "b", "controller": True}]}, False),
        ({"name": "a", "deletionTimestamp": "2026-01-01T00:00:00Z"}, False),
    ],
)
def test_objects_that_a_user_cannot_correct_are_not_checked(meta: Obj, is_checked: bool) -> None:
    assert is_advised({"metadata": meta}) == is_checked


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"resources": {}, "env": []}, "a fragment of a container (resources, env)"),
        ({"volumes": []}, "a fragment of a pod spec (volumes)"),
        ({"spec": {"nodeSelector": {}}}, "a fragment of a pod (spec: nodeSelector)"),
        ({"groups": [{"name": "g", "rules": []}]}, "a file of Prometheus rules"),
        ([{"alert": "A", "expr": "up"}], "a list of Prometheus rules without a PrometheusRule around them"),
        ([1], "a list"),
        ("x", "text"),
        ({"a": 1, "b": 2, "c": 3, "d": 4, "e": 5}, "a map with the fields a, b, c, d, ..., perhaps values of a Helm"),
    ],
)
def test_a_document_that_is_no_object_is_described(value: object, words: str) -> None:
    assert described(value).startswith(words)
