"""Bytes of a server as items: pieces that end anywhere, items without their kind, watches that break."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.client.http.pages import Lines, changes_of, items_of, left_of, object_of, opened
from shoal.client.http.slim import whole_item_of
from shoal.client.kind import PODS
from shoal.client.refusals import BusyError, ExpiredError


def encoded(said: Any) -> bytes:
    return json.dumps(said, separators=(",", ":")).encode()


def pod(name: str, version: int, **more: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "a", "uid": f"u-{name}", "resourceVersion": str(version)}, **more}


def event(kind: str, obj: Any) -> bytes:
    return encoded({"type": kind, "object": obj}) + b"\n"


def refused(code: int, reason: str) -> dict[str, Any]:
    return {"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": "because"}


@given(lines=st.lists(st.binary(min_size=1, max_size=30).map(lambda text: text.replace(b"\n", b"-"))), data=st.data())
def test_lines_are_the_same_however_their_bytes_were_cut(lines: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(line + b"\n" for line in lines)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=10)))
    pieces = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    taken = Lines()
    assert [line for piece in pieces for line in taken.take(piece)] == [line for line in lines if line.strip()]


async def test_items_of_a_list_get_the_kind_that_the_server_left_out() -> None:
    custom = {"kind": "Pod", "apiVersion": "v1", **pod("b", 3)}
    page = {"kind": "PodList", "metadata": {"resourceVersion": "9", "continue": "on"}, "items": [pod("a", 2), custom]}
    found = opened(encoded(page))
    items, version, go_on = await items_of(PODS, found, whole_item_of), found.version, found.go_on
    assert [(item.key, item.version) for item in items] == [(("a", "a"), 2), (("a", "b"), 3)]
    assert [list(item.obj()) for item in items] == [["kind", "apiVersion", "metadata"]] * 2
    assert (version, go_on) == (9, "on")


async def test_a_list_may_have_no_items_and_no_version() -> None:
    found = opened(encoded({"metadata": {}, "items": None}))
    assert (await items_of(PODS, found, whole_item_of), found.version, found.go_on) == ([], 0, "")


def test_a_bookmark_says_only_how_far_the_watch_is() -> None:
    [change], broken = changes_of(
        [event("BOOKMARK", {"kind": "Pod", "metadata": {"resourceVersion": "12"}})], whole_item_of
    )
    assert (change.kind, change.item, change.version, broken) == ("BOOKMARK", None, 12, None)


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (refused(410, "Expired"), ExpiredError),
        (refused(410, "Gone"), ExpiredError),
        (refused(500, "InternalError"), BusyError),
        (refused(403, "Forbidden"), BusyError),
    ],
)
def test_a_watch_that_breaks_still_tells_what_came_before(status: Any, kind: type[Exception]) -> None:
    lines = [event("ADDED", pod("a", 2)), event("ERROR", status), event("ADDED", pod("b", 3))]
    changes, broken = changes_of(lines, whole_item_of)
    assert [change.version for change in changes] == [2]
    assert isinstance(broken, kind)


def test_types_of_lines_that_are_not_known_yet_are_passed_over() -> None:
    assert changes_of([event("NEWS", pod("a", 2))], whole_item_of) == ([], None)


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'{"metadata":7}', b'{"metadata":{"name":"a"}'])
async def test_what_cannot_be_understood_is_like_no_answer(body: bytes) -> None:
    with pytest.raises(BusyError, match="cannot be understood"):
        object_of(body, whole_item_of)
    with pytest.raises(BusyError, match="cannot be understood"):
        opened(body)
    with pytest.raises(BusyError, match="cannot be understood"):
        changes_of([body], whole_item_of)


GONE = {"deletionTimestamp": "2026-01-01T00:00:00Z", "name": "a"}
LEFT: list[tuple[str, Any, bool, bool]] = [
    ("a Status", {"kind": "Status", "status": "Success"}, False, False),
    ("the last of what was not marked", {"metadata": {"name": "a"}}, False, False),
    ("marked and without grace", {"metadata": {**GONE, "deletionGracePeriodSeconds": 0}}, False, False),
    ("with grace", {"metadata": {**GONE, "deletionGracePeriodSeconds": 30}}, False, True),
    ("with grace that was cut off", {"metadata": {**GONE, "deletionGracePeriodSeconds": 30}}, True, False),
    ("held by a finalizer", {"metadata": {**GONE, "finalizers": ["x"]}}, True, True),
    ("a namespace", {"kind": "Namespace", "metadata": GONE, "spec": {"finalizers": ["kubernetes"]}}, False, True),
    ("a finished namespace", {"kind": "Namespace", "metadata": GONE, "spec": {}}, False, False),
    ("with such a field of its own", {"kind": "X", "metadata": GONE, "spec": {"finalizers": 7}}, False, False),
]


@pytest.mark.parametrize(("answer", "at_once", "waits"), [row[1:] for row in LEFT], ids=[row[0] for row in LEFT])
def test_what_a_deletion_leaves(answer: Any, at_once: bool, waits: bool) -> None:
    assert (left_of(encoded(answer), whole_item_of, at_once=at_once) is not None) == waits
