"""A state of the embedded control plane, and pods in it, in as many words as a test needs."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from shoal.embedded.apiserver.resource import Home, Ref
from shoal.embedded.apiserver.state.event import Event
from shoal.embedded.apiserver.state.record import Obj, Record, Write
from shoal.embedded.apiserver.state.state import State
from shoal.embedded.apiserver.state.watch import Watch
from shoal.embedded.apiserver.storage.memory import MemoryStorage
from shoal.embedded.apiserver.storage.port import Storage, StoredChange

PODS = Home("", "pods")
JOBS = Home("batch", "jobs")


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def pod(name: str, namespace: str = "a", home: Home = PODS) -> Ref:
    return Ref(home, namespace, name)


def labels_and_phase(ref: Ref, obj: Obj) -> tuple[Mapping[str, str], Mapping[str, str]]:
    return obj["metadata"].get("labels", {}), {"status.phase": obj.get("phase", "")}


async def opened(storage: Storage | None = None, clock: Clock | None = None, **limits: Any) -> State:
    return await State.open(storage or MemoryStorage(), describe=labels_and_phase, clock=clock or Clock(), **limits)


def body(ref: Ref, **more: Any) -> Obj:
    return {"kind": "Pod", "metadata": {"name": ref.name, "namespace": ref.namespace, "uid": f"uid-{ref.name}"}, **more}


async def put(state: State, ref: Ref, **more: Any) -> Record:
    """Create or replace, as a writer that holds the lock."""
    async with state.lock(ref):
        (record,) = await state.commit([Write(ref, body(ref, **more), state.get(ref), f"uid-{ref.name}")])
    return record


async def drop(state: State, ref: Ref) -> Record:
    async with state.lock(ref):
        (record,) = await state.commit([Write(ref, None, state.get(ref))])
    return record


async def everything(watch: Watch) -> list[Event]:
    """What a watch has to say at the moment, however many batches that is."""
    found: list[Event] = []
    while watch.position < watch._history.revision:
        asyncio.get_running_loop().call_soon(watch.nudge)
        found += await watch.next_batch()
    return found


def names(records: Sequence[Record]) -> list[str]:
    return [record.ref.name for record in records]


def change(ref: Ref, revision: int, data: bytes | None = b"{}") -> StoredChange:
    return StoredChange(ref, revision, data)
