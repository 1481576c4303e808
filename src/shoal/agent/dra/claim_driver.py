"""Runs the driver of resource claims of this node: the server for the kubelet, and the published slices.

Guarantees: claims are served while the API server or the driver does not respond; a fault is logged once and tried
again; a change of a GPU's health is published at once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import suppress
from pathlib import Path
from time import time

import msgspec

from shoal.agent.dra.checkpoint import ClaimCheckpoint
from shoal.agent.dra.claim_preparation import ClaimPreparation
from shoal.agent.dra.claim_sharing import ClaimSharing
from shoal.agent.dra.driver_server import DriverServer
from shoal.agent.dra.health_stream import HealthStream
from shoal.agent.dra.node_devices import ClaimableDevices
from shoal.api.claims import ResourceClaim
from shoal.api.wire import dec_hook
from shoal.client.kind import RESOURCE_CLAIMS
from shoal.client.kubelet.slice_publisher import SlicePublisher
from shoal.client.port import Api
from shoal.client.refusals import NotFoundError
from shoal.devices.cdi_devices import CdiInput
from shoal.devices.claimable_devices import CLAIM_DRIVER
from shoal.devices.port import InstalledGpu
from shoal.units.errors import ShoalError, TemporaryError

_log = logging.getLogger("shoal.agent.dra")
_INTERVAL_S, _LIMIT_S, _RETRY_S = 5.0, 10.0, 5.0


class ClaimFolders(msgspec.Struct, frozen=True):
    plugins: Path = Path("/var/lib/kubelet/plugins")
    registry: Path = Path("/var/lib/kubelet/plugins_registry")
    cdi: Path = Path("/var/run/cdi")


class ClaimDriver:
    """`cdi`: what a specification for these GPUs needs of the node."""

    def __init__(
        self,
        node: str,
        folders: ClaimFolders,
        devices: ClaimableDevices,
        cdi: Callable[[Sequence[InstalledGpu]], CdiInput],
        sharing: ClaimSharing,
    ) -> None:
        self._node, self._folders, self._devices, self._cdi = node, folders, devices, cdi
        self._sharing = sharing
        self._stream = HealthStream(node, devices, time)
        self._running: tuple[asyncio.AbstractEventLoop, asyncio.Event] | None = None
        self._complaints: dict[str, str] = {}

    def wake(self) -> None:
        """Publish now, and tell the kubelet; from any thread."""
        self._stream.wake()
        if self._running is not None:
            loop, due = self._running
            loop.call_soon_threadsafe(due.set)

    async def run(self, api: Api, interval_s: float = _INTERVAL_S) -> None:
        """Until it is cancelled. Raises `UserError` if the prepared claims cannot be read."""
        loop, due = asyncio.get_running_loop(), asyncio.Event()
        preparation = ClaimPreparation(
            self._node,
            ClaimCheckpoint(self._folders.plugins / CLAIM_DRIVER / "checkpoint.json"),
            self._folders.cdi,
            self._devices,
            lambda: self._cdi(self._devices.gpus()),
            _LoopReader(api, loop),
            self._sharing,
        )
        server = DriverServer(self._folders.plugins, self._folders.registry, preparation, self._stream)
        publisher = SlicePublisher(api, self._node)
        self._running = loop, due
        try:
            await asyncio.to_thread(preparation.restore)
            while True:
                due.clear()
                await self._check(server)
                await asyncio.to_thread(preparation.check_sharing)
                await self._publish(publisher)
                # Python 3.11's `wait_for` can swallow a cancellation that comes with the event.
                with suppress(TimeoutError):
                    async with asyncio.timeout(interval_s):
                        await due.wait()
        finally:
            self._running = None
            await asyncio.to_thread(server.stop)

    async def _check(self, server: DriverServer) -> None:
        try:
            await asyncio.to_thread(server.check)
        except ShoalError as error:
            self._complain("socket", str(error))
            return
        self._complain("socket", "")

    async def _publish(self, publisher: SlicePublisher) -> None:
        try:
            content = await asyncio.to_thread(self._devices.published)
            is_changed = await publisher.publish(content)
        except ShoalError as error:
            self._complain("slices", f"the ResourceSlices of this node are not up to date: {error}")
            return
        self._complain("slices", "")
        if is_changed:
            _log.info("published %d devices", len(content.devices))

    def _complain(self, what: str, message: str) -> None:
        """The same complaint is logged once."""
        if message and message != self._complaints.get(what):
            _log.warning("%s", message)
        self._complaints[what] = message


class _LoopReader:
    """Implements `ClaimReader` for the threads of the server, with the client of the loop."""

    def __init__(self, api: Api, loop: asyncio.AbstractEventLoop) -> None:
        self._api, self._loop = api, loop

    def claim(self, namespace: str, name: str) -> ResourceClaim | None:
        asked = asyncio.run_coroutine_threadsafe(self._api.get(RESOURCE_CLAIMS, namespace, name), self._loop)
        try:
            item = asked.result(_LIMIT_S)
        except NotFoundError:
            return None
        except FutureTimeoutError as error:
            asked.cancel()
            raise TemporaryError(f"the API server has not answered in {_LIMIT_S:.0f} s", _RETRY_S) from error
        try:
            return msgspec.json.decode(item.data, type=ResourceClaim, dec_hook=dec_hook)
        except msgspec.DecodeError as error:
            raise TemporaryError(f"ResourceClaim {namespace}/{name} cannot be read: {error}", _RETRY_S) from error
