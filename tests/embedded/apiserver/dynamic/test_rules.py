"""Rules: which writes they are for, and that the quick answer at the gate never turns away what they would take."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from build.cluster_reader import FakeReader
from build.depth import examples
from shoal.embedded.apiserver.calls import Actor, AdmissionAttributes, Call
from shoal.embedded.apiserver.catalog import ResourceCatalog
from shoal.embedded.apiserver.dynamic.admission_index import AdmissionIndex
from shoal.embedded.apiserver.dynamic.rules import Matcher
from shoal.embedded.apiserver.resource import Resource, Subresource
from shoal.embedded.apiserver.status import ApiError

Obj = dict[str, Any]
_STATUS = (Subresource("status", ("update",)),)
PODS = Resource("", "v1", "pods", "Pod", True, subresources=_STATUS)
NODES = Resource("", "v1", "nodes", "Node", False)
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", False)
OLD = Resource("shop", "v1", "boxes", "Box", True, subresources=_STATUS, stored_version="v2")
NEW = Resource("shop", "v2", "boxes", "Box", True, subresources=_STATUS, stored_version="v2")
SERVED = (PODS, NODES, NAMESPACES, OLD, NEW)


def matcher(*namespaces: Obj) -> Matcher:
    return Matcher(ResourceCatalog(SERVED), FakeReader().put(*namespaces))


def namespace(name: str, **labels: str) -> Obj:
    return {"kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def write(
    resource: Resource, operation: str = "CREATE", subresource: str = "", name: str = "x", **labels: str
) -> AdmissionAttributes:
    place = "team" if resource.namespaced else ""
    call = Call("create", resource, Actor("someone"), place, name, subresource)
    obj = {"metadata": {"name": name, "labels": labels}}
    return AdmissionAttributes(operation, call, name, obj, None)  # type: ignore[arg-type]


def rule(resources: list[str], **more: Any) -> Obj:
    return {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": resources, **more}


@pytest.mark.parametrize(
    ("resources", "subresource", "is_meant"),
    [
        (["pods"], "", True),
        (["pods"], "status", False),
        (["*"], "", True),
        (["*"], "status", False),
        (["*/*"], "", True),
        (["*/*"], "status", True),
        (["pods/*"], "status", True),
        (["*/status"], "status", True),
        (["*/status"], "", False),
        (["nodes", "pods/status"], "status", True),
        (["nodes"], "", False),
    ],
)
def test_resources_and_doors(resources: list[str], subresource: str, is_meant: bool) -> None:
    found = matcher().resource_for([rule(resources)], "Exact", write(PODS, subresource=subresource))
    assert (found is PODS) is is_meant


@pytest.mark.parametrize(
    ("scope", "resource", "is_meant"),
    [
        ("Namespaced", PODS, True),
        ("Cluster", PODS, False),
        ("Cluster", NODES, True),
        ("Namespaced", NODES, False),
        ("Cluster", NAMESPACES, True),
        ("Namespaced", NAMESPACES, False),
        ("*", NODES, True),
    ],
)
def test_scopes(scope: str, resource: Resource, is_meant: bool) -> None:
    found = matcher().resource_for([rule(["*"], scope=scope)], "Exact", write(resource))
    assert (found is resource) is is_meant


def test_another_version_is_meant_unless_the_rule_is_exact() -> None:
    one = rule(["boxes"], apiGroups=["shop"], apiVersions=["v1"])
    assert matcher().resource_for([one], "Equivalent", write(NEW)) is OLD
    assert matcher().resource_for([one], "Exact", write(NEW)) is None


def test_a_rule_for_the_version_itself_goes_before_one_for_another() -> None:
    rules = [rule(["boxes"], apiVersions=["v1"]), rule(["boxes"], apiVersions=["v2"])]
    assert matcher().resource_for(rules, "Equivalent", write(NEW)) is NEW


@pytest.mark.parametrize(
    ("resource", "labels", "is_selected"),
    [(PODS, {"tier": "gold"}, True), (PODS, {}, False), (NODES, {}, True)],
)
def test_namespaces_are_selected_by_their_labels(resource: Resource, labels: dict[str, str], is_selected: bool) -> None:
    selecting = {"namespaceSelector": {"matchLabels": {"tier": "gold"}}}
    assert matcher(namespace("team", **labels)).is_selected(selecting, write(resource)) is is_selected


def test_a_new_namespace_is_selected_by_its_own_labels() -> None:
    selecting = {"namespaceSelector": {"matchExpressions": [{"key": "tier", "operator": "Exists"}]}}
    assert matcher().is_selected(selecting, write(NAMESPACES, tier="gold"))
    assert not matcher().is_selected(selecting, write(NAMESPACES))


def test_a_namespace_that_is_not_there_is_not_found() -> None:
    selecting = {"namespaceSelector": {"matchLabels": {"tier": "gold"}}}
    with pytest.raises(ApiError, match='namespaces "team" not found'):
        matcher().is_selected(selecting, write(PODS))


_RULES = st.fixed_dictionaries(
    {
        "apiGroups": st.lists(st.sampled_from(["", "shop", "*"]), min_size=1, max_size=2),
        "apiVersions": st.lists(st.sampled_from(["v1", "v2", "*"]), min_size=1, max_size=2),
        "operations": st.lists(st.sampled_from(["CREATE", "UPDATE", "*"]), min_size=1, max_size=2),
        "resources": st.lists(
            st.sampled_from(["pods", "boxes", "nodes", "*", "*/*", "pods/*", "boxes/status", "*/status"]), min_size=1
        ),
        "scope": st.sampled_from(["*", "Namespaced", "Cluster"]),
    }
)


@settings(max_examples=examples(80), deadline=None)
@given(
    st.lists(_RULES, max_size=3),
    st.sampled_from(["Exact", "Equivalent"]),
    st.sampled_from(SERVED),
    st.sampled_from(["", "status"]),
    st.sampled_from(["CREATE", "UPDATE", "DELETE"]),
)
def test_what_a_rule_takes_the_gate_lets_through(
    rules: list[Obj], policy: str, resource: Resource, subresource: str, operation: str
) -> None:
    found = matcher()
    asked = write(resource, operation, subresource)
    if found.resource_for(rules, policy, asked) is not None:
        assert found.may_concern(rules, policy, asked.call, asked.operation)


class _Named(NamedTuple):
    name: str
    rules: list[Obj]
    match_policy: str = "Equivalent"


def test_at_a_door_is_whoever_may_be_meant_by_such_a_write_in_order() -> None:
    doors: AdmissionIndex[_Named] = AdmissionIndex(matcher())
    doors.set(
        [
            _Named("all", [rule(["*"])]),
            _Named("created", [rule(["pods"], operations=["CREATE"])]),
            _Named("statuses", [rule(["pods/status"])]),
        ]
    )
    call = write(PODS).call
    assert [one.name for one in doors.of(call, "CREATE")] == ["all", "created"]
    assert [one.name for one in doors.of(call, "UPDATE")] == ["all"]
    assert [one.name for one in doors.of(write(PODS, subresource="status").call, "UPDATE")] == ["statuses"]


def test_a_door_is_looked_at_again_when_something_else_is_configured_or_served() -> None:
    catalog = ResourceCatalog((PODS, NEW))
    doors: AdmissionIndex[_Named] = AdmissionIndex(Matcher(catalog, FakeReader()))
    for_old = [_Named("old", [rule(["boxes"], apiVersions=["v1"])])]
    doors.set(for_old)
    assert not doors.of(write(NEW).call, "CREATE")
    catalog.put_custom([OLD, NEW], NEW)
    assert list(doors.of(write(NEW).call, "CREATE")) == for_old
    doors.set([])
    assert not doors.of(write(NEW).call, "CREATE")
