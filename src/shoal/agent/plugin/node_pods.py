"""Follows the pods of this node, and reports the devices that the kubelet has allocated to them.

The kubelet's list of pods and devices is read after each allocation and at an interval. A pod whose devices differ from
its annotation `shoal.dev/devices` gets them written there, because the scheduler counts them: a kubelet may admit pods
in another order than they were bound, and NVIDIA's tools know nothing of the annotation.

Guarantees: only this annotation is changed, through the status of the pod, and only on the pod with the same uid. While
the cluster or the kubelet does not answer, nothing is reported, and it is repeated later.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Mapping
from contextlib import suppress

from shoal.agent.plugin.scheduler_choice import SchedulerChoice
from shoal.client.clock import Clock
from shoal.client.informer import Informer
from shoal.client.item import Item
from shoal.client.kind import PODS
from shoal.client.port import Api, Patch, Select
from shoal.client.refusals import NotFoundError
from shoal.devices.names import OWN_DEVICES
from shoal.devices.waiting_requests import ActualDevices, Held, Obj, PodName, annotation_of
from shoal.units.errors import ConflictError, ShoalError

_log = logging.getLogger("shoal.agent.plugin")
_INTERVAL_S, _SOON_S = 30.0, 1.0
Holders = Callable[[], Mapping[PodName, Held]]
"""The devices of all containers of the node by the kubelet's own list. It may block for a bounded time. Raises
`TemporaryError` if the kubelet does not answer.
"""


class FollowedPods:
    """`node`: the name of the Node. `on_new`: called with each pod that was not seen before."""

    def __init__(
        self,
        api: Api,
        clock: Clock,
        node: str,
        choice: SchedulerChoice,
        holders: Holders,
        *,
        on_new: Callable[[Obj], object] = lambda _: None,
    ) -> None:
        self._api, self._clock, self._choice, self._holders = api, clock, choice, holders
        self._informer = Informer(api, PODS, clock, random.Random(), Select(fields=f"spec.nodeName={node}"))
        self._on_new = on_new
        self._pods: dict[str, Obj] = {}
        self._due = asyncio.Event()
        self._complaint = ""

    async def run(self) -> None:
        """Runs until it is cancelled."""
        loop = asyncio.get_running_loop()
        self._choice.on_allocation(lambda: _wake(loop, self._due))
        self._informer.on_change(self._follow)
        following = asyncio.create_task(self._informer.run())
        try:
            await self._informer.synced()
            self._choice.set_pods(self._pods.values())
            while True:
                is_certain = await self.report()
                timer = self._clock.call_later(_INTERVAL_S if is_certain else _SOON_S, self._due.set)
                await self._due.wait()
                timer.cancel()
                self._due.clear()
        finally:
            following.cancel()

    async def report(self) -> bool:
        """Compare the pods with the kubelet's list once. False: it has to be repeated soon."""
        try:
            holders = await asyncio.to_thread(self._holders)
            for one in self._choice.verify(holders):
                await self._write(one)
        except ShoalError as error:
            self._complain(str(error))
            return False
        self._complaint = ""
        return self._choice.is_certain(holders)

    async def _write(self, actual: ActualDevices) -> None:
        text = annotation_of(actual.devices)
        body = {"metadata": {"uid": actual.uid, "annotations": {OWN_DEVICES: text}}}
        # A pod that is gone, or another one of this name, has nothing to learn.
        with suppress(NotFoundError, ConflictError):
            await self._api.patch(PODS, actual.pod.namespace, actual.pod.name, Patch("merge", body), "status")
            _log.info("pod %s/%s has other devices than were chosen: %s", actual.pod.namespace, actual.pod.name, text)

    def _follow(self, before: Item | None, after: Item | None) -> None:
        if after is not None:
            is_new = after.uid not in self._pods
            self._pods[after.uid] = after.obj()
            if is_new:
                self._on_new(self._pods[after.uid])
        elif before is not None:
            self._pods.pop(before.uid, None)
        if self._informer.is_synced:
            self._choice.set_pods(self._pods.values())

    def _complain(self, what: str) -> None:
        """The same failure is logged once."""
        if what != self._complaint:
            _log.warning("the devices of pods are not compared with the kubelet's: %s", what)
        self._complaint = what


def _wake(loop: asyncio.AbstractEventLoop, due: asyncio.Event) -> None:
    with suppress(RuntimeError):  # the loop has ended
        loop.call_soon_threadsafe(due.set)
