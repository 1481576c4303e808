"""What an upgrade changes, object by object and field by field."""

from __future__ import annotations

from typing import Any

from shoal.install.differences import Difference
from shoal.install.manifest import address_of
from shoal.install.object_changes import changed_fields, object_changes

Obj = dict[str, Any]


def _obj(name: str, labels: dict[str, str] | None = None, **spec: Any) -> Obj:
    meta = {"name": name, "namespace": "ns", "labels": labels or {}, "uid": name, "resourceVersion": str(len(spec))}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": spec}


def test_objects_are_added_changed_and_removed() -> None:
    before = {address_of(one): one for one in (_obj("same", a="1"), _obj("changed", a="1"), _obj("gone"))}
    after = {address_of(one): one for one in (_obj("new"), _obj("same", a="1"), _obj("changed", a="2"))}
    found = list(object_changes(before, after))
    assert [(one.sign, one.address.name) for one in found] == [("+", "new"), ("~", "changed"), ("-", "gone")]
    assert found[1].fields == (Difference("data.a", "1", "2"),)
    assert found[1].lost == ()


def test_a_field_that_is_not_there_any_more_is_lost() -> None:
    before, after = _obj("a", x="1", y="2"), _obj("a", x="1")
    found = next(iter(object_changes({address_of(before): before}, {address_of(after): after})))
    assert found.lost == (Difference("data.y", "2", None),)


def test_what_the_server_writes_and_the_label_of_the_version_are_no_change() -> None:
    before = {**_obj("a", {"app.kubernetes.io/version": "0.1.0"}), "status": {"x": 1}}
    after = _obj("a", {"app.kubernetes.io/version": "0.2.0"})
    after["metadata"] |= {"resourceVersion": "9", "generation": 3}
    assert list(changed_fields(before, after)) == []
