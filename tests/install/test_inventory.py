"""The record of a release, what is done with each object, and the differences that `--diff` shows."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from shoal.install.differences import differences
from shoal.install.inventory import DEPLOYED, FailedRevision, ReleaseRecord, Revision, from_api, plan, to_api
from shoal.install.manifest import Address, address_of
from shoal.install.release import Release
from shoal.units.errors import UserError

Obj = dict[str, Any]
RELEASE = Release("prod", "ns", "1.0")
OURS = RELEASE.labels("x")


def _obj(kind: str, name: str, namespace: str = "ns") -> Obj:
    meta = {"name": name, "namespace": namespace} if namespace else {"name": name}
    return {"apiVersion": "v1", "kind": kind, "metadata": meta}


def test_a_record_is_read_as_it_was_written() -> None:
    address = Address("apps/v1", "Deployment", "ns", "shoal")
    wide = Address("v1", "Namespace", "", "ns")
    revision = Revision(2, "1.1", {"mig": {"strategy": "mixed"}}, (_obj("ConfigMap", "a"),))
    record = ReleaseRecord("prod", "ns", DEPLOYED, True, True, False, (wide, address), revision, Revision(1, "1.0"))
    record = replace(record, failed=FailedRevision("1.2", {"replicas": 3}, "workloads: 0 of 3 pods ready"))
    written = to_api(record)
    assert written["metadata"]["name"] == "shoal-release-prod"
    assert written["data"]["revision"] == "2"
    assert written["data"]["failed"] == "workloads: 0 of 3 pods ready"
    assert from_api(written) == record


@pytest.mark.parametrize(
    "broken",
    [
        {"data": {}},
        {"data": {"state": "deployed", "inventory": "too few\n"}},
        {"binaryData": {"current": "bm8="}},
        {"binaryData": {"current": "***"}},
    ],
)
def test_a_config_map_of_another_form_is_an_error_that_says_what_to_do(broken: Obj) -> None:
    with pytest.raises(UserError, match="is not the record of a release"):
        from_api({**to_api(ReleaseRecord("prod", "ns")), **broken})


@pytest.mark.parametrize(
    ("kind", "labels", "fate"),
    [
        ("ConfigMap", None, "applied"),
        ("ConfigMap", OURS, "applied"),
        ("ConfigMap", {}, "foreign"),
        ("ConfigMap", Release("other", "ns").labels("x"), "foreign"),
        ("ConfigMap", {"app.kubernetes.io/managed-by": "Helm", "app.kubernetes.io/instance": "prod"}, "foreign"),
        ("CustomResourceDefinition", {}, "kept"),
        ("CustomResourceDefinition", OURS, "applied"),
        ("Namespace", {}, "kept"),
        ("ClusterPolicy", {}, "kept"),
    ],
)
def test_what_is_done_with_an_object(kind: str, labels: dict[str, str] | None, fate: str) -> None:
    obj = _obj(kind, "one")
    present = {} if labels is None else {address_of(obj): labels}
    found = plan(RELEASE, [obj], present)
    assert [len(found.applied), len(found.kept), len(found.foreign)] == [
        int(fate == "applied"),
        int(fate == "kept"),
        int(fate == "foreign"),
    ]


def test_an_object_of_others_is_taken_over_on_request() -> None:
    obj = _obj("ClusterRole", "shoal", "")
    assert plan(RELEASE, [obj], {address_of(obj): {}}, takes_ownership=True).applied == (obj,)


def test_what_the_new_revision_does_not_have_is_removed_if_it_is_ours() -> None:
    def address(kind: str, name: str) -> Address:
        return Address("v1", kind, "ns", name)

    recorded = [
        address("Service", "old"),
        address("Service", "new"),
        address("Service", "theirs"),
        address("Service", "gone"),
        address("CustomResourceDefinition", "crd"),
        address("Role", "later"),
    ]
    present = {one: OURS for one in recorded if one.name != "gone"} | {recorded[2]: {}}
    found = plan(RELEASE, [_obj("Service", "new")], present, recorded)
    assert found.removed == (recorded[5], recorded[0])


@pytest.mark.parametrize(
    ("desired", "present", "expected"),
    [
        ({"a": 1}, {"a": 1, "b": 2}, []),
        ({"a": 1}, {"a": 2}, ["a: 2 -> 1"]),
        ({"a": {"b": [1, 2]}}, {"a": {"b": [1]}}, ["a.b: [1] -> [1, 2]"]),
        ({"a": {}}, {}, []),
        ({"labels": {"x.y/z": "1"}}, {"labels": {}}, ["labels[x.y/z]: absent -> 1"]),
        ({"c": [{"name": "m", "v": 1}]}, {"c": [{"name": "m", "v": 1, "more": 2}]}, []),
        (
            {"c": [{"name": "m", "v": 1}]},
            {"c": [{"name": "n"}, {"name": "m", "v": 2}]},
            ["c[m].v: 2 -> 1", "c[n]: {'name': 'n'} -> absent"],
        ),
        ({"c": [{"v": 1}]}, {"c": [{"v": 2}]}, ["c[0].v: 2 -> 1"]),
    ],
)
def test_differences(desired: Obj, present: Obj, expected: list[str]) -> None:
    assert [str(one) for one in differences(desired, present)] == expected
