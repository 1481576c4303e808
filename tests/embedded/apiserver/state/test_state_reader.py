"""What admission and RBAC read: decoded once, current, and no more kept than fits."""

from __future__ import annotations

from build.cluster_states import PODS, Clock, drop, opened, pod, put
from shoal.embedded.apiserver.reading import Reader
from shoal.embedded.apiserver.state import reader as reader_module
from shoal.embedded.apiserver.state.state import State


async def test_an_object_is_decoded_once_per_change() -> None:
    state = await opened()
    await put(state, pod("a"), phase="old")
    first = get(state, "a")
    assert get(state, "a") is first
    await put(state, pod("a"), phase="new")
    second = get(state, "a")
    assert isinstance(second, dict)
    assert second["phase"] == "new"
    await drop(state, pod("a"))
    assert get(state, "a") is None


async def test_all_objects_of_a_resource_or_of_a_namespace_are_read() -> None:
    state = await opened()
    reader: Reader = state.reader
    for namespace in "ab":
        await put(state, pod("x", namespace))
    assert [obj["metadata"]["namespace"] for obj in reader.all("", "pods")] == ["a", "b"]
    assert [obj["metadata"]["namespace"] for obj in reader.all("", "pods", "b")] == ["b"]
    assert list(reader.all("", "nothing")) == []
    assert next(iter(reader.all("", "pods"))) is reader.get("", "pods", "a", "x")


async def test_the_stamp_grows_with_every_change_of_its_resource_alone() -> None:
    state = await opened()
    stamps = [state.reader.stamp("", "pods")]
    await put(state, pod("a"))
    stamps.append(state.reader.stamp("", "pods"))
    await drop(state, pod("a"))
    stamps.append(state.reader.stamp("", "pods"))
    assert stamps == sorted(set(stamps))
    assert state.reader.stamp("batch", "jobs") == 0


async def test_more_than_the_budget_is_never_kept_decoded() -> None:
    state = await opened(clock=Clock())
    for i in range(40):
        await put(state, pod(f"p{i:02}"), filling="x" * 200_000)
    for i in range(40):
        assert get(state, f"p{i:02}") is not None
    kept = state.reader._decoded
    assert sum(len(record.data) for record, _ in kept.values()) == state.reader._size_bytes
    assert state.reader._size_bytes <= reader_module._BUDGET_BYTES
    assert get(state, "p39") is kept[pod("p39")][1]
    assert len(list(state.reader.all("", "pods"))) == 40
    assert state.reader._size_bytes <= reader_module._BUDGET_BYTES


def get(state: State, name: str) -> object:
    return state.reader.get(*PODS, "a", name)
