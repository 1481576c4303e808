"""The shapes that ship: complete, merged as Kubernetes merges, and what Go always writes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tools.kubernetes_schemas import differing

from shoal.data.kubernetes_schemas import MINORS, Described, definitions, descriptions
from shoal.embedded.apiserver.schema.kubernetes import GoSchema, Shapes
from shoal.embedded.apiserver.schema.node import Schema
from shoal.embedded.apiserver.schema.zeros import fill, fill_part


def field(schema: Schema, *path: str) -> Schema:
    for name in path:
        below = schema.items if name == "[]" else schema.properties[name]
        assert below is not None
        schema = below
    return schema


def pod(*path: str) -> Schema:
    return field(Shapes("1.36").of("", "v1", "Pod"), *path)


@pytest.mark.parametrize("minor", MINORS)
def test_every_reference_leads_to_a_definition_of_the_same_release(minor: str) -> None:
    def refs(one: Any) -> Iterator[str]:
        if one is not None:
            yield from (one.ref,) if one.ref else ()
            yield from refs(one.items)
            yield from refs(one.values)

    known = definitions(minor)
    named = {ref for one in known.values() for stored in one.fields.values() for ref in refs(stored)}
    assert len(known) > 500
    assert named <= known.keys()


@pytest.mark.parametrize("minor", MINORS)
def test_every_kind_can_be_built_and_has_its_type_fields(minor: str) -> None:
    shapes = Shapes(minor)
    without = {("", "v1", "WatchEvent")} | {kind for kind in shapes.kinds() if kind[2] == "WatchEvent"}
    for kind in shapes.kinds():
        schema = shapes.of(*kind)
        assert schema.type == "object"
        assert kind in without or {"apiVersion", "kind"} <= schema.properties.keys(), kind


def test_a_kind_that_is_not_there_is_a_key_error() -> None:
    shapes = Shapes("1.36")
    assert shapes.find("apps", "v1", "Gang") is None
    with pytest.raises(KeyError, match="no Gang in apps/v1"):
        shapes.of("apps", "v1", "Gang")


@pytest.mark.parametrize("minor", MINORS)
def test_descriptions_are_about_fields_that_exist(minor: str) -> None:
    known = definitions(minor)
    said = descriptions(minor)
    assert said.keys() == known.keys()
    assert all(one.fields.keys() <= known[name].fields.keys() for name, one in said.items())
    assert "PodSpec is a description of a pod" in said["io.k8s.api.core.v1.PodSpec"].text


def test_a_release_has_its_own_descriptions_where_they_differ_from_those_of_the_newest() -> None:
    newest, oldest = descriptions(MINORS[-1]), descriptions(MINORS[0])
    changed = {name for name in newest.keys() & oldest.keys() if newest[name] != oldest[name]}
    assert "io.k8s.api.core.v1.PodSpec" in changed
    assert "io.k8s.api.core.v1.Binding" not in changed


def test_only_differing_descriptions_of_older_releases_are_stored() -> None:
    same, other, newer = (Described(text, {}) for text in ("same", "other", "newer"))
    words = {"1.34": {"a": same, "b": other, "gone": other}, "1.36": {"a": same, "b": newer, "added": newer}}
    assert differing(words) == {"1.34": {"b": other, "gone": other}, "1.36": words["1.36"]}


MERGING = {
    "containers by name": (("spec", "containers"), "map", ("name",), "name", {"merge"}),
    "ports by number and protocol, but by number in patches": (
        ("spec", "containers", "[]", "ports"),
        *("map", ("containerPort", "protocol"), "containerPort", {"merge"}),
    ),
    "volumes by name, keeping only what is named": (
        ("spec", "volumes"),
        *("map", ("name",), "name", {"merge", "retainKeys"}),
    ),
    "tolerations as a whole": (("spec", "tolerations"), "atomic", (), "", set[str]()),
    "finalizers as a set": (("metadata", "finalizers"), "set", (), "", {"merge"}),
    "arguments as a whole": (("spec", "containers", "[]", "args"), "atomic", (), "", set[str]()),
    "owners by uid": (("metadata", "ownerReferences"), "map", ("uid",), "uid", {"merge"}),
}


@pytest.mark.parametrize("case", MERGING, ids=str)
def test_lists_of_a_pod_merge_as_published(case: str) -> None:
    path, list_type, map_keys, merge_key, strategies = MERGING[case]
    found = pod(*path)
    assert (found.list_type, found.map_keys) == (list_type, map_keys)
    assert (found.merge_key, set(found.patch_strategies)) == (merge_key, strategies)


def test_what_is_said_about_one_use_of_a_type_stays_with_that_use() -> None:
    shapes = Shapes("1.36")
    strategy = field(shapes.of("apps", "v1", "Deployment"), "spec", "strategy")
    assert strategy.patch_strategies == {"retainKeys"}
    assert shapes.definition("io.k8s.api.apps.v1.DeploymentStrategy").patch_strategies == frozenset()
    assert strategy.properties.keys() == {"type", "rollingUpdate"}


def test_atomic_maps_are_marked_on_their_type() -> None:
    assert pod("spec", "containers", "[]", "env", "[]", "valueFrom", "fieldRef").map_type == "atomic"
    assert field(Shapes("1.36").of("apps", "v1", "Deployment"), "spec", "selector").map_type == "atomic"
    assert pod("spec").map_type == "granular"


def test_special_values_are_marked() -> None:
    limits = pod("spec", "containers", "[]", "resources", "limits")
    assert limits.values is not None
    assert limits.values.is_quantity
    assert pod("metadata", "creationTimestamp").is_time
    assert field(Shapes("1.36").of("", "v1", "Service"), "spec", "ports", "[]", "targetPort").is_int_or_string
    assert pod("metadata", "managedFields", "[]", "fieldsV1").keeps_unknown
    assert pod("spec", "terminationGracePeriodSeconds").number_format == "int64"


def test_types_have_the_names_that_go_gives_them() -> None:
    assert pod("spec").name == "v1.PodSpec"
    assert pod("spec", "containers").name == "[]v1.Container"
    assert pod("spec", "restartPolicy").name == "v1.RestartPolicy"
    assert pod("metadata", "labels").name == "map[string]string"


def test_a_schema_that_leads_back_to_itself_can_be_walked() -> None:
    schema = Shapes("1.36").definition("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps")
    assert schema.properties["not"] is schema


def test_structs_that_nobody_sent_are_written_all_the_same() -> None:
    obj = {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "main", "image": "x"}]}}
    fill(obj, Shapes("1.36").of("", "v1", "Pod"))
    assert obj == {
        "metadata": {"name": "a"},
        "spec": {"containers": [{"name": "main", "image": "x", "resources": {}}]},
        "status": {},
    }


def test_numbers_that_cannot_be_absent_are_written_as_zero() -> None:
    obj: dict[str, Any] = {"metadata": {}, "spec": {"selector": {}}, "status": {}}
    fill(obj, Shapes("1.36").of("apps", "v1", "ReplicaSet"))
    assert obj["status"] == {"replicas": 0}


def test_what_is_filled_in_is_not_shared_between_objects() -> None:
    schema: GoSchema = Shapes("1.36").of("", "v1", "Pod")
    one: dict[str, Any] = {"metadata": {}, "spec": {}}
    two: dict[str, Any] = {"metadata": {}, "spec": {}}
    fill(one, schema)
    fill(two, schema)
    one["status"]["phase"] = "Running"
    assert two["status"] == {}


def test_a_list_that_is_written_as_null_stays_null() -> None:
    obj: dict[str, Any] = {"metadata": {}, "spec": {}, "status": {"currentMetrics": None}}
    fill(obj, Shapes("1.36").of("autoscaling", "v2", "HorizontalPodAutoscaler"))
    assert obj["status"]["currentMetrics"] is None


def test_one_part_of_an_object_is_filled_as_the_whole_would_be() -> None:
    shape = Shapes().of("apps", "v1", "ReplicaSet")
    whole: dict[str, Any] = {"spec": {"selector": {}}, "status": {"conditions": []}}
    part = {"spec": {"selector": {}}, "status": {"conditions": []}}
    fill(whole, shape)
    fill_part(part, shape, "status")
    assert part["status"] == whole["status"]
    assert part["spec"] == {"selector": {}}
    without: dict[str, Any] = {}
    fill_part(without, shape, "status")
    assert "replicas" in without["status"]
