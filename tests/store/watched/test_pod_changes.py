"""Whether of a pod only the status has changed, told from bytes: never wrongly, whatever people write into a pod."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.client.item import Item, item_of
from shoal.store.watched.pod_changes import status_change

Obj = dict[str, Any]
LURE = '","status":{"phase":"Failed"},"spec":{"x":1}'
RUNS = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}


def pod(version: int, status: Obj, *, meta: Obj | None = None, spec: Obj | None = None) -> Item:
    head = {"name": "p", "namespace": "a", "uid": "u", "resourceVersion": str(version), **(meta or {})}
    whole = {"kind": "Pod", "apiVersion": "v1", "metadata": head, "spec": spec or {"nodeName": "n"}, "status": status}
    return item_of(written(whole))


def written(said: Any) -> bytes:
    return json.dumps(said, separators=(",", ":")).encode()


def test_a_pod_that_begins_to_run_has_changed_in_its_status_alone() -> None:
    change = status_change(pod(5, {"phase": "Pending"}), pod(6, RUNS))
    assert change is not None
    assert (change.status.phase, change.status.is_ready(), change.is_terminating) == ("Running", True, False)


def test_whoever_manages_its_fields_and_its_generation_are_nothing_to_us() -> None:
    before = pod(5, RUNS, meta={"managedFields": [{"manager": "a", "fieldsV1": {"f:spec": {}}}], "generation": 1})
    after = pod(6, RUNS, meta={"managedFields": [{"manager": "b", "fieldsV1": {"f:status": {}}}], "generation": 2})
    assert status_change(before, after) is not None


def test_its_end_is_heard_of() -> None:
    change = status_change(pod(5, RUNS), pod(6, RUNS, meta={"deletionTimestamp": "2026-01-01T00:00:00Z"}))
    assert change is not None
    assert change.is_terminating


_CHANGED: list[tuple[str, Item]] = [
    ("its labels", pod(6, RUNS, meta={"labels": {"a": "c"}})),
    ("its annotations", pod(6, RUNS, meta={"labels": {"a": "b"}, "annotations": {"a": LURE}})),
    ("its owner", pod(6, RUNS, meta={"labels": {"a": "b"}, "ownerReferences": [{"name": "x"}]})),
    ("its node", pod(6, RUNS, meta={"labels": {"a": "b"}}, spec={"nodeName": "m"})),
    ("its claims", pod(6, {**RUNS, "resourceClaimStatuses": [{"name": "x"}]}, meta={"labels": {"a": "b"}})),
]


@pytest.mark.parametrize("after", [row[1] for row in _CHANGED], ids=[row[0] for row in _CHANGED])
def test_more_than_its_status_has_changed(after: Item) -> None:
    assert status_change(pod(5, RUNS, meta={"labels": {"a": "b"}}), after) is None
    assert status_change(after, pod(7, RUNS, meta={"labels": {"a": "b"}})) is None


def test_bytes_that_no_server_writes_so_count_as_changed() -> None:
    order = ("status", "spec", "metadata", "kind")
    before, after = pod(5, RUNS), pod(6, RUNS)
    turned = [item_of(written({name: each.obj()[name] for name in order})) for each in (before, after)]
    assert status_change(*turned) is None
    bare = {name: value for name, value in after.obj().items() if name != "status"}
    assert status_change(before, item_of(written(bare))) is None


_TEXTS = st.sampled_from([LURE, "a", "", "}", '"}', ',"status":{', "\\"])
_WORDS = st.dictionaries(st.sampled_from(["status", "spec", "a", LURE]), _TEXTS, max_size=2)
_NESTED = st.recursive(
    _TEXTS, lambda inner: st.dictionaries(st.sampled_from(["status", "spec", "a"]), inner, max_size=2), max_leaves=4
)
_PARTS = st.fixed_dictionaries({"labels": _WORDS, "annotations": _WORDS, "spec": _NESTED, "status": _NESTED})


@given(_PARTS, _PARTS)
def test_a_change_of_the_status_alone_is_never_seen_where_more_has_changed(one: Obj, other: Obj) -> None:
    def item(parts: Obj, version: int) -> Item:
        meta = {"labels": parts["labels"], "annotations": parts["annotations"]}
        return pod(version, {"phase": "Running", "x": parts["status"]}, meta=meta, spec={"x": parts["spec"]})

    same = [one[part] == other[part] for part in ("labels", "annotations", "spec")]
    found = status_change(item(one, 1), item(other, 2))
    assert found is None or all(same)
    assert status_change(item({**one, "status": "was"}, 1), item({**one, "status": "is"}, 2)) is not None
