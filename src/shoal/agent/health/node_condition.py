"""Writes the health of the GPUs to the Node: the condition `GPUHealthy`, a taint if the policy has one, and Events.

Guarantees: only this condition and this taint are changed, in the version of the Node that was read; a cluster that
does not answer is retried. An Event about a GPU is also recorded about each pod that uses it.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal, Protocol

import msgspec

from shoal.client.clock import Clock
from shoal.client.item import Item, Obj
from shoal.client.kind import NODES, PODS
from shoal.client.port import Api, Patch
from shoal.client.recorder import Recorder
from shoal.devices.device_health import DeviceHealth
from shoal.devices.health_reports import CONDITION, HealthChange, HealthTaint, condition_of, is_tainted
from shoal.units.errors import ConflictError, ShoalError

_log = logging.getLogger("shoal.agent.health")
_RETRIES = 5
_RETRY_S = 5.0
_MOST_UNRECORDED = 1000


class PodUser(msgspec.Struct, frozen=True):
    namespace: str
    name: str


class GpuUsers(Protocol):
    def __call__(self, uuid: str) -> Sequence[PodUser]:
        """The pods that use this GPU or one of its instances. It may block for a bounded time."""
        ...


class NodeConditionWriter:
    """`node`: the name of the Node. `health`: the GPUs as they are now."""

    def __init__(
        self,
        api: Api,
        clock: Clock,
        node: str,
        health: Callable[[], Sequence[DeviceHealth]],
        *,
        taint: HealthTaint | None = None,
        users: GpuUsers | None = None,
    ) -> None:
        self._api, self._clock, self._node, self._health = api, clock, node, health
        self._taint, self._users = taint, users
        self._recorder = Recorder(api, clock, "shoal-agent")
        self._loop: asyncio.AbstractEventLoop | None = None
        self._due = asyncio.Event()
        self._complaint = ""
        self._unrecorded: deque[HealthChange] = deque(maxlen=_MOST_UNRECORDED)

    def changed(self, found: Sequence[HealthChange]) -> None:
        """From any thread, which does not wait: the changes become Events, and the Node is written."""
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(self._take, found)

    async def run(self) -> None:
        """Writes until cancelled."""
        self._loop = asyncio.get_running_loop()
        self._due.set()
        events = asyncio.create_task(self._recorder.run())
        try:
            while True:
                await self._due.wait()
                self._due.clear()
                await self._record()
                if not await self.written():
                    await self._clock.sleep(_RETRY_S)
                    self._due.set()
        finally:
            events.cancel()

    async def written(self) -> bool:
        """Write the condition and the taint once; False if it must be repeated."""
        for _ in range(_RETRIES):
            try:
                node = await self._api.get(NODES, "", self._node)
                await self._write(node, self._health())
            except ConflictError:
                continue
            except ShoalError as error:
                self._complain(str(error))
                return False
            self._complaint = ""
            return True
        return False

    def _complain(self, what: str) -> None:
        """The same failure is logged once."""
        if what != self._complaint:
            _log.warning("the health of the GPUs was not written to node %s: %s", self._node, what)
        self._complaint = what

    async def _write(self, node: Item, gpus: Sequence[DeviceHealth]) -> None:
        obj: Mapping[str, Any] = node.obj()
        condition = self._condition(obj, condition_of(gpus))
        if condition is not None:
            body = {"status": {"conditions": [condition]}}
            obj = (await self._api.patch(NODES, "", self._node, Patch("strategic", body), "status")).obj()
        if self._taint is not None:
            await self._write_taint(obj, self._taint, is_wanted=is_tainted(gpus, self._taint))

    def _condition(self, node: Mapping[str, Any], wanted: tuple[bool, str, str]) -> Obj | None:
        """The condition to write, None if the Node has it."""
        is_so, reason, message = wanted
        status, now = "True" if is_so else "False", self._clock.text()
        conditions = node.get("status", {}).get("conditions") or ()
        before: Obj = next((one for one in conditions if one.get("type") == CONDITION), {})
        if (before.get("status"), before.get("reason"), before.get("message")) == (status, reason, message):
            return None
        since = before["lastTransitionTime"] if before.get("status") == status else now
        return {
            "type": CONDITION,
            "status": status,
            "reason": reason,
            "message": message,
            "lastHeartbeatTime": now,
            "lastTransitionTime": since,
        }

    async def _write_taint(self, node: Mapping[str, Any], taint: HealthTaint, *, is_wanted: bool) -> None:
        taints = list(node["spec"].get("taints") or ())
        others = [one for one in taints if (one["key"], one["effect"]) != (taint.key, taint.effect)]
        is_there = len(others) < len(taints)
        if is_wanted == is_there:
            return
        body = {
            "metadata": {"resourceVersion": node["metadata"]["resourceVersion"]},
            "spec": {"taints": [*others, *([taint.to_api()] if is_wanted else ())]},
        }
        await self._api.patch(NODES, "", self._node, Patch("merge", body))

    def _take(self, found: Sequence[HealthChange]) -> None:
        self._unrecorded.extend(found)
        self._due.set()

    async def _record(self) -> None:
        about = {"kind": "Node", "apiVersion": "v1", "metadata": {"name": self._node, "uid": self._node}}
        while self._unrecorded:
            change = self._unrecorded.popleft()
            users = () if self._users is None else await asyncio.to_thread(self._users, change.gpu.uuid)
            type_: Literal["Normal", "Warning"] = "Normal" if change.cause is None else "Warning"
            names = ", ".join(f"{one.namespace}/{one.name}" for one in users)
            message = f"{change.message}; used by {names}" if names else change.message
            self._recorder.record(about, change.reason, message, type_=type_, host=self._node)
            for pod in users:
                reference = await self._reference(pod)
                if reference is not None:
                    self._recorder.record(reference, change.reason, change.message, type_=type_, host=self._node)

    async def _reference(self, pod: PodUser) -> Obj | None:
        """None for a pod that no longer exists, or that cannot be read now: the Event of the Node names it too."""
        try:
            uid = (await self._api.get(PODS, pod.namespace, pod.name)).uid
        except ShoalError:
            return None
        metadata = {"name": pod.name, "namespace": pod.namespace, "uid": uid}
        return {"kind": "Pod", "apiVersion": "v1", "metadata": metadata}
