from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from build.kind_objects import texts
from shoal.embedded.apiserver.kinds.metadata import check_metadata, check_metadata_update
from shoal.embedded.apiserver.kinds.spellings import dns_label_faults, label_key_faults, label_value_faults
from shoal.embedded.apiserver.names import subdomain_fault


def faults(namespaced: bool = True, short_finalizers: bool = False, **metadata: Any) -> list[str]:
    obj = {"metadata": {"name": "a", "namespace": "default", **metadata}}
    return texts(
        check_metadata(obj, namespaced=namespaced, name_fault=subdomain_fault, short_finalizers=short_finalizers)
    )


def test_ordinary_metadata_is_taken() -> None:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "1", "controller": True}
    labels = {"app": "a", "example.com/tier": "", "x_1": "A.b-c"}
    assert faults(labels=labels, annotations={"Example.com/Any": "æ"}, ownerReferences=[owner]) == []


def test_a_name_or_a_prefix_has_to_be_there() -> None:
    assert faults(name="") == ["metadata.name: Required value: name or generateName is required"]


def test_a_cluster_wide_object_has_no_namespace() -> None:
    assert faults(namespaced=False) == ["metadata.namespace: Forbidden: not allowed on this type"]


def test_a_bad_label_value_is_refused_in_the_words_clients_know() -> None:
    (text,) = faults(labels={"app": "-x"})
    assert text.startswith('metadata.labels: Invalid value: "-x": a valid label must be an empty string or consist of')


def test_a_long_label_key_names_its_part() -> None:
    assert faults(labels={"k" * 64: "v"}) == [
        f'metadata.labels: Invalid value: "{"k" * 64}": name part must be no more than 63 bytes'
    ]


def test_annotations_together_have_a_limit() -> None:
    assert faults(annotations={"a": "x" * 262143}) == []
    assert faults(annotations={"a": "x" * 262144}) == [
        "metadata.annotations: Too long: may not be more than 262144 bytes"
    ]


def test_only_one_owner_controls() -> None:
    owners = [{"apiVersion": "v1", "kind": "Pod", "name": name, "uid": name, "controller": True} for name in ("a", "b")]
    (text,) = faults(ownerReferences=owners)
    assert text.endswith(
        'Only one reference can have Controller set to true. Found "true" in references for Pod/a and Pod/b'
    )


def test_an_owner_without_uid_is_refused() -> None:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "a"}
    assert faults(ownerReferences=[owner]) == [
        'metadata.ownerReferences.uid: Invalid value: "": must not be empty',
    ]


def test_built_in_kinds_want_qualified_finalizers_and_custom_ones_do_not() -> None:
    expected = "name is neither a standard finalizer name nor is it fully qualified"
    assert faults(finalizers=["mine"]) == [f'metadata.finalizers[0]: Invalid value: "mine": {expected}']
    assert faults(finalizers=["mine"], short_finalizers=True) == []
    assert faults(finalizers=["orphan", "example.com/mine"]) == []


def test_a_dying_object_gets_no_new_finalizers() -> None:
    old = {"metadata": {"name": "a", "resourceVersion": "1", "deletionTimestamp": "t", "finalizers": ["x/a"]}}
    new = {"metadata": {**old["metadata"], "finalizers": ["x/a", "x/b"]}}
    assert texts(check_metadata_update(new, old)) == [
        (
            "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, "
            'found new finalizers []string{"x/b"}'
        )
    ]


def test_identity_does_not_change() -> None:
    old = {"metadata": {"name": "a", "resourceVersion": "1", "uid": "1"}}
    new = {"metadata": {"name": "a", "resourceVersion": "1", "uid": "2"}}
    assert texts(check_metadata_update(new, old)) == ['metadata.uid: Invalid value: "2": field is immutable']


@pytest.mark.parametrize("key", ["a", "a.b/c", "A_b", "example.com/A-b.c"])
def test_qualified_names_are_taken(key: str) -> None:
    assert label_key_faults(key) == ()


@pytest.mark.parametrize("key", ["", "/a", "a/", "a/b/c", "-a", "a b", "Ab/c", "é"])
def test_other_keys_are_refused(key: str) -> None:
    assert label_key_faults(key)


def test_dots_in_a_label_are_named() -> None:
    assert dns_label_faults("a.b") == ("must not contain dots",)


@given(st.text(max_size=70))
def test_a_label_value_is_taken_exactly_when_it_is_empty_or_short_and_framed_by_letters(value: str) -> None:
    inner = set("-_.")
    is_letter = [letter.isascii() and letter.isalnum() for letter in value]
    spelt = all(is_letter[i] or letter in inner for i, letter in enumerate(value))
    framed = not value or (is_letter[0] and is_letter[-1])
    assert (not label_value_faults(value)) == (spelt and framed and len(value) <= 63)
