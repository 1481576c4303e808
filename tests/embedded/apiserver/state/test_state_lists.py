"""Lists are of one moment, page by page, and in the order of Kubernetes' keys."""

from __future__ import annotations

import pytest

from build.cluster_states import JOBS, PODS, drop, names, opened, pod, put
from shoal.embedded.apiserver.state.record import Record
from shoal.embedded.apiserver.status import ApiError


async def test_objects_are_listed_by_the_text_of_namespace_and_name() -> None:
    state = await opened()
    for namespace, name in (("a", "x"), ("a-b", "a"), ("a", "b"), ("ab", "a"), ("a0", "c")):
        await put(state, pod(name, namespace))
    assert places(state.list(PODS).records) == ["a-b/a", "a/b", "a/x", "a0/c", "ab/a"]
    assert places(state.list(PODS, "a").records) == ["a/b", "a/x"]
    assert state.list(PODS, "missing").records == []
    assert state.list(JOBS).records == []


async def test_cluster_wide_objects_are_listed_by_name() -> None:
    state = await opened()
    for name in ("b", "a", "a-b", "a.b"):
        await put(state, pod(name, ""))
    assert names(state.list(PODS).records) == ["a", "a-b", "a.b", "b"]
    assert names(state.list(PODS, after=("", "a-b")).records) == ["a.b", "b"]


async def test_a_page_says_where_the_next_begins_and_how_much_is_left() -> None:
    state = await opened()
    for name in "abcde":
        await put(state, pod(name))
    first = state.list(PODS, "a", limit=2)
    assert (names(first.records), first.remaining, first.last, first.revision) == (["a", "b"], 3, ("a", "b"), 6)
    last = state.list(PODS, "a", after=("a", "c"), limit=2)
    assert (names(last.records), last.remaining, last.last) == (["d", "e"], 0, None)


async def test_a_page_goes_on_behind_an_object_that_is_gone() -> None:
    state = await opened()
    for name in "abc":
        await put(state, pod(name))
    await drop(state, pod("b"))
    assert names(state.list(PODS, after=("a", "b")).records) == ["c"]


async def test_later_pages_show_the_moment_of_the_first() -> None:
    state = await opened()
    for name in "abcdef":
        await put(state, pod(name), phase="old")
    first = state.list(PODS, limit=2)
    await drop(state, pod("c"))
    await put(state, pod("d"), phase="new")
    await put(state, pod("dd"))
    await drop(state, pod("e"))
    await put(state, pod("e"), phase="new")
    rest = state.list(PODS, at=first.revision, after=first.last)
    assert names(rest.records) == ["c", "d", "e", "f"]
    assert {record.obj()["phase"] for record in rest.records} == {"old"}
    assert rest.revision == first.revision
    assert names(state.list(PODS, after=first.last).records) == ["d", "dd", "e", "f"]


async def test_what_is_gone_since_comes_back_into_its_own_namespace_only() -> None:
    state = await opened()
    for namespace in ("a", "b", "c"):
        await put(state, pod("x", namespace))
    moment = state.revision
    for namespace in ("a", "b", "c"):
        await drop(state, pod("x", namespace))
    assert places(state.list(PODS, "b", at=moment).records) == ["b/x"]
    assert places(state.list(PODS, at=moment, after=("a", "x")).records) == ["b/x", "c/x"]


async def test_a_moment_that_is_forgotten_or_has_not_come_is_refused() -> None:
    state = await opened(history_count=2)
    for name in "abcdef":
        await put(state, pod(name))
    with pytest.raises(ApiError) as old:
        state.list(PODS, at=3)
    assert (old.value.code, old.value.reason) == (410, "Expired")
    with pytest.raises(ApiError) as early:
        state.list(PODS, at=100)
    assert early.value.code == 504


def places(records: list[Record]) -> list[str]:
    return [f"{record.ref.namespace}/{record.ref.name}" for record in records]
