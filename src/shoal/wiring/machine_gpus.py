"""The GPUs of a node that runs real pods, with their health: `shoal up --this-machine` and `shoal join`.

Guarantees: a GPU that fails leaves the allocatable resources of the Node and is given to no pod, with an Event and the
condition `GPUHealthy`; it returns when it is healthy again. A driver that does not respond delays the start for a
bounded time. Rejected: the parts of `shoal agent run`. The device plugin is an interface to another kubelet.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

from shoal.agent.features.label_source import LabelSource, MachineFiles, SourceSettings
from shoal.agent.health.node_condition import NodeConditionWriter, PodUser
from shoal.agent.health.watcher import HealthWatcher
from shoal.agent.kubelet.gpus import CONFIG, NodeGpus
from shoal.agent.patient_call import SilentDriverError
from shoal.agent.patient_driver import PatientDriver
from shoal.client.clock import Clock
from shoal.client.port import Api
from shoal.devices.health_reports import changes
from shoal.devices.port import GpuDriver
from shoal.units.errors import ShoalError, UserError
from shoal.wiring.gpu_driver import health_watcher, open_driver

_log = logging.getLogger("shoal.this-machine")
_MACHINE_TYPE = Path("/sys/class/dmi/id/product_name")
_PATIENCE_S, _LAYOUT_S = 3.0, 15.0
Named = Callable[[str], PodUser | None]
"""The name of the pod with a UID; None if the kubelet has no such pod."""


class MachineGpus:
    """`driver`: None on a machine without GPUs for pods."""

    def __init__(self, driver: GpuDriver | None, health: HealthWatcher | None) -> None:
        self.driver, self._health = driver, health
        self.node = NodeGpus(health)
        self._is_watched = False

    def labels(self) -> Mapping[str, str]:
        """Of feature discovery. It calls the driver."""
        driver = self.driver
        if driver is None:
            return {}
        settings = SourceSettings(CONFIG, needs_driver=True)
        try:
            return LabelSource(lambda: driver, settings, MachineFiles(_MACHINE_TYPE)).read().labels
        except (ShoalError, OSError) as error:
            _log.warning("the GPUs of this machine are not labelled: %s", error)
            return {}

    def reporting(
        self, api: Api, clock: Clock, node: str, changed: Callable[[], None], named: Named
    ) -> Callable[[], Awaitable[None]]:
        """What writes the condition and the Events until it is cancelled. `changed` is called, in the event loop, when
        the health of a GPU or the MIG layout has changed."""
        health, loop = self._health, asyncio.get_running_loop()
        if health is None:
            return _nothing

        def users(uuid: str) -> Sequence[PodUser]:
            return [one for uid in self.node.users(uuid) if (one := named(uid)) is not None]

        writer = NodeConditionWriter(api, clock, node, health.health, users=users)
        health.listen(writer.changed)
        health.listen(lambda _: loop.call_soon_threadsafe(changed))

        async def run() -> None:
            writing = asyncio.ensure_future(writer.run())
            following = asyncio.ensure_future(self._follow_layout(clock, changed))
            try:
                await asyncio.sleep(0)
                if not self._is_watched:
                    # The writer was not informed of what was found before it runs.
                    writer.changed(changes({}, health.health()))
                    self._is_watched = True
                    await asyncio.to_thread(health.start)
                await writing
            finally:
                writing.cancel()
                following.cancel()

        return run

    async def _follow_layout(self, clock: Clock, changed: Callable[[], None]) -> None:
        """A MIG layout that an administrator changes leaves the health as it is."""
        before = self.node.capacity()
        while True:
            await clock.sleep(_LAYOUT_S)
            now = self.node.capacity()
            if now != before:
                changed()
            before = now

    async def end(self) -> None:
        if self._health is not None:
            await asyncio.to_thread(self._health.stop)
        if self.driver is not None:
            await asyncio.to_thread(self.driver.close)


async def open_machine_gpus(fake: str = "") -> MachineGpus:
    """`fake`: a simulated machine, whose GPUs the node has."""
    try:
        driver = await asyncio.to_thread(PatientDriver, lambda: open_driver(fake), _PATIENCE_S)
    except UserError as error:
        if fake:
            raise
        _log.info("this machine has no GPU for pods: %s", error.what)
        return MachineGpus(None, None)
    except SilentDriverError as error:
        _log.warning("this machine has no GPU for pods until it is started again: %s", error.what)
        return MachineGpus(None, None)
    return await watched(driver, fake)


async def watched(driver: GpuDriver, fake: str = "") -> MachineGpus:
    """The GPUs of an open driver, as they are now."""
    health = health_watcher(driver, fake)
    await asyncio.to_thread(health.read)
    return MachineGpus(driver, health)


async def _nothing() -> None:
    await asyncio.Event().wait()
