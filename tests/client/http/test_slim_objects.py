"""Objects lose their managedFields and nothing else."""

from __future__ import annotations

import json
import random
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from build.told_server import Server
from shoal.client.http.access import Access
from shoal.client.http.api import KubeApi
from shoal.client.http.pages import Take
from shoal.client.http.settings import KubeSettings
from shoal.client.http.slim import slim_item_of, whole_item_of
from shoal.client.item import item_of
from shoal.client.kind import NODES, PODS

MANAGED = [{"manager": "kubectl", "fieldsV1": {"f:spec": {'k:{"name":"managedFields"}': {}}}}]
META = {"name": "p", "namespace": "a", "uid": "u", "resourceVersion": "5"}


def written(said: Any) -> bytes:
    return json.dumps(said, separators=(",", ":")).encode()


PLACES: list[tuple[str, dict[str, Any]]] = [
    ("last", {**META, "managedFields": MANAGED}),
    ("first", {"managedFields": MANAGED, **META}),
    ("alone", {"managedFields": MANAGED}),
    ("in the middle", {"labels": {"a": "b"}, "managedFields": MANAGED, **META}),
    ("empty", {**META, "managedFields": []}),
    ("nowhere", META),
    (
        "after a namesake",
        {"annotations": {"managedFields": '[{"managedFields":[]}]'}, **META, "managedFields": MANAGED},
    ),
]


@pytest.mark.parametrize("meta", [row[1] for row in PLACES], ids=[row[0] for row in PLACES])
def test_they_are_cut_out_wherever_they_stand(meta: dict[str, Any]) -> None:
    data = written({"kind": "Pod", "metadata": meta, "spec": {"managedFields": [1]}})
    slim, whole = slim_item_of(data), item_of(data)
    expected = whole.obj()
    expected["metadata"].pop("managedFields", None)
    assert slim.obj() == expected
    assert (slim.key, slim.uid, slim.version) == (whole.key, whole.uid, whole.version)


_TYPED = [{}, {"kind": "Pod", "apiVersion": "v1"}, {"apiVersion": "v1", "kind": "Pod"}]
_LURE = {"metadata": {"name": "other", "namespace": "theirs"}, "spec": {"metadata": {"name": "third"}, "spec": {}}}


@pytest.mark.parametrize("typed", _TYPED, ids=["untyped", "as built-in kinds are", "as custom ones are"])
@pytest.mark.parametrize("take", [slim_item_of, whole_item_of])
@pytest.mark.parametrize(
    "rest",
    [
        {},
        {"spec": {}},
        {"spec": _LURE, "status": _LURE},
        {"other": _LURE},
        {"other": _LURE, "spec": _LURE},
        {"spec": 7},
    ],
)
def test_its_address_is_that_of_its_own_metadata_whatever_else_is_written_like_it(
    take: Take, typed: dict[str, Any], rest: dict[str, Any]
) -> None:
    meta = {**META, "annotations": {"spec": '{"a":1},"spec":{"metadata":{"name":"other"}}'}, "managedFields": MANAGED}
    lured = {"apiVersion": "v1", "data": _LURE, "kind": "Pod"} if typed else {"data": _LURE}
    for said in ({**typed, "metadata": meta, **rest}, {**rest, "metadata": meta, **typed}, {**lured, "metadata": meta}):
        item = take(written(said), b'"kind":"Pod","apiVersion":"v1",')
        assert (item.key, item.uid, item.version) == (("a", "p"), "u", 5)
        found = item.obj()
        assert "managedFields" in found["metadata"] or take is slim_item_of
        meta_of_it = {name: value for name, value in found["metadata"].items() if name != "managedFields"}
        assert meta_of_it == {name: value for name, value in meta.items() if name != "managedFields"}
        assert found == {"kind": "Pod", "apiVersion": "v1", **said, "metadata": found["metadata"]}


def test_bytes_that_are_written_in_another_way_stay_whole() -> None:
    data = json.dumps({"metadata": {**META, "managedFields": MANAGED}}, indent=2).encode()
    assert slim_item_of(data).data == data


_KEYS = st.sampled_from(["managedFields", "a", '"managedFields":[', "\\"])
_VALUES = st.recursive(
    st.text(max_size=4) | st.integers() | st.just('"managedFields":[]'),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=3),
    max_leaves=8,
)


@given(
    before=st.dictionaries(_KEYS, st.text(max_size=4) | _KEYS, max_size=3),
    managed=st.lists(_VALUES, max_size=3),
    spec=_VALUES,
)
def test_whatever_else_is_there_stays(before: dict[str, Any], managed: list[Any], spec: Any) -> None:
    meta = {"annotations": before, **META, "managedFields": managed}
    found = slim_item_of(written({"metadata": meta, "spec": spec})).obj()
    assert found == {"metadata": {"annotations": before, **META}, "spec": spec}


@pytest.mark.parametrize("keeps", [True, False])
async def test_a_client_that_does_without_them_never_has_them(server: Server, keeps: bool) -> None:
    pod = {"kind": "Pod", "apiVersion": "v1", "metadata": {**META, "managedFields": MANAGED}}
    listed = {"kind": "PodList", "metadata": {"resourceVersion": "9"}, "items": [pod, {"metadata": pod["metadata"]}]}
    # Servers write without spaces.
    server.script = [(200, written(pod).decode()), (200, written(listed).decode())]
    api = KubeApi(Access(server.url, "here"), random.Random(1), KubeSettings(keeps_managed_fields=keeps))
    items = [await api.get(PODS, "a", "p"), *(await api.list(PODS)).items]
    assert [b"managedFields" in item.data for item in items] == [keeps] * 3
    assert [list(item.obj())[:2] for item in items] == [["kind", "apiVersion"]] * 3
    await api.close()


class _NameOnly(msgspec.Struct):
    metadata: dict[str, Any]


async def test_a_list_of_a_kind_has_only_the_kept_fields(server: Server) -> None:
    pod = {"metadata": META, "spec": {"nodeName": "n"}}
    listed = written({"kind": "PodList", "metadata": {"resourceVersion": "9"}, "items": [pod]}).decode()
    server.script = [(200, listed), (200, listed)]
    api = KubeApi(Access(server.url, "here"), random.Random(1), KubeSettings(kept={PODS: _NameOnly}))
    assert [list(item.obj()) for item in (await api.list(PODS)).items] == [["metadata"]]
    assert "spec" in (await api.list(NODES)).items[0].obj()
    await api.close()
