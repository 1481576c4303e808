"""Tables and metadata alone, as whole answers; and the ages in them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.embedded.apiserver.resource import Resource
from shoal.embedded.apiserver.status import ApiError
from shoal.embedded.apiserver.tables.ages import duration, instant_s, since
from shoal.embedded.apiserver.tables.table import include_of, partial, partial_list, table

NOW_S = 1795000000
PODS = Resource("", "v1", "pods", "Pod", True)
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "uid": "u"}, "status": {"phase": "Succeeded"}}


def test_a_table_carries_the_metadata_of_the_list_and_of_its_objects() -> None:
    found = table(PODS, [POD], now_s=NOW_S, list_meta={"resourceVersion": "7"})
    assert (found["kind"], found["apiVersion"], found["metadata"]) == (
        "Table",
        "meta.k8s.io/v1",
        {"resourceVersion": "7"},
    )
    (row,) = found["rows"]
    assert row["object"] == {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": POD["metadata"],
    }
    assert row["conditions"][0]["type"] == "Completed"


def test_a_table_carries_whole_objects_or_none_when_asked() -> None:
    assert table(PODS, [POD], now_s=NOW_S, include="Object")["rows"][0]["object"] is POD
    assert table(PODS, [POD], now_s=NOW_S, include="None")["rows"][0]["object"] is None


def test_an_empty_list_is_a_table_without_rows() -> None:
    found = table(PODS, [], now_s=NOW_S)
    assert found["rows"] == []
    assert len(found["columnDefinitions"]) == 9


def test_events_of_a_watch_may_leave_the_heads_out() -> None:
    assert table(PODS, [POD], now_s=NOW_S, has_heads=False)["columnDefinitions"] is None


def test_older_clients_get_the_version_they_ask_for() -> None:
    found = table(PODS, [POD], now_s=NOW_S, version="v1beta1")
    assert found["apiVersion"] == found["rows"][0]["object"]["apiVersion"] == "meta.k8s.io/v1beta1"


def test_a_scale_has_columns_of_its_own() -> None:
    scale = {"kind": "Scale", "metadata": {"name": "d"}, "spec": {"replicas": 3}, "status": {"replicas": 2}}
    found = table(Resource("apps", "v1", "deployments", "Deployment", True), [scale], now_s=NOW_S)
    assert found["rows"][0]["cells"] == ["d", 3, 2, "<unknown>"]


def test_metadata_alone_is_of_objects_and_of_lists() -> None:
    assert partial(POD) == {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": POD["metadata"],
    }
    found = partial_list([POD], {"resourceVersion": "7"})
    assert (found["kind"], found["metadata"]) == ("PartialObjectMetadataList", {"resourceVersion": "7"})
    assert found["items"] == [partial(POD)]


@pytest.mark.parametrize(("asked", "found"), [("", "Metadata"), ("None", "None"), ("Object", "Object")])
def test_what_rows_carry_is_chosen_by_the_client(asked: str, found: str) -> None:
    assert include_of(asked) == found


def test_an_unknown_choice_is_refused() -> None:
    with pytest.raises(ApiError) as refused:
        include_of("All")
    assert refused.value.code == 400


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-2, "<invalid>"),
        (-1, "0s"),
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (121, "2m1s"),
        (599, "9m59s"),
        (601, "10m"),
        (3 * 3600 - 1, "179m"),
        (3 * 3600, "3h"),
        (3 * 3600 + 60, "3h1m"),
        (8 * 3600 + 60, "8h"),
        (47 * 3600, "47h"),
        (48 * 3600, "2d"),
        (49 * 3600, "2d1h"),
        (8 * 86400 + 3600, "8d"),
        (729 * 86400, "729d"),
        (730 * 86400, "2y"),
        (731 * 86400, "2y1d"),
        (8 * 365 * 86400 + 86400, "8y"),
    ],
)
def test_a_duration_has_at_most_two_units(seconds: int, text: str) -> None:
    assert duration(seconds) == text


@given(st.integers(0, 10**9))
def test_a_duration_is_never_longer_than_a_column(seconds: int) -> None:
    assert 2 <= len(duration(seconds)) <= 6


@pytest.mark.parametrize(
    ("time", "text"),
    [
        ("2026-11-18T11:06:30Z", "10s"),
        ("2026-11-18T11:06:30.900000Z", "10s"),
        ("", "<unknown>"),
        ("never", "<unknown>"),
    ],
)
def test_a_time_is_shown_as_how_long_ago_it_was(time: str, text: str) -> None:
    assert since(time, NOW_S) == text


def test_a_time_without_a_zone_is_none() -> None:
    assert instant_s("2026-11-18T11:06:30") is None
