"""Reads the exporters of the nodes at an interval, and stores what they say as samples of devices.

Exporters are pods with one of the usual names in their labels, or the address that a simulated node has in an
annotation. An exporter that does not answer is left out until the next time: its devices have no samples then.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

import msgspec

from shoal.api.meta import ObjectMeta
from shoal.api.partial import MetadataOf
from shoal.api.wire import ApiStruct
from shoal.client.context import Context
from shoal.client.item import Item, Seen
from shoal.client.kind import NODES, PODS
from shoal.store.history.dcgm_samples import DeviceRow, device_rows
from shoal.store.history.samples import DeviceSample

_log = logging.getLogger("shoal.history")
Fetch = Callable[[str], Awaitable[str]]
"""The text at an address. Raises OSError or TimeoutError."""
PartOf = Callable[[DeviceRow], str]
"""The MIG instance of a row, by the pod that holds it; the GPU for a whole one."""
INTERVAL_S = 15.0
_LEAST_S = 0.25
_OWN_ADDRESS = "shoal.dev/metrics"
_LOOPBACK = ("http://127.", "http://[::1]", "http://localhost:")
_NAMES = ("app", "app.kubernetes.io/name", "app.kubernetes.io/component")
_EXPORTERS = frozenset({"nvidia-dcgm-exporter", "dcgm-exporter", "shoal-exporter"})
_MARK = b"-exporter"
_PORT = 9400
_AT_ONCE = 32


class _ExporterStatus(ApiStruct, frozen=True):
    phase: str = ""
    pod_ip: str = msgspec.field(default="", name="podIP")


class _ExporterPod(ApiStruct, frozen=True):
    metadata: ObjectMeta
    status: _ExporterStatus = _ExporterStatus()


_node: Seen[MetadataOf[ObjectMeta]] = Seen(MetadataOf[ObjectMeta])


class Sampler:
    def __init__(
        self, context: Context, fetch: Fetch, store: Callable[[list[DeviceSample]], None], part_of: PartOf
    ) -> None:
        self._context = context
        self._fetch = fetch
        self._store = store
        self._part_of = part_of
        self._pods: dict[str, str] = {}
        """Addresses of exporters by the uid of their pod."""

    async def run(self) -> None:
        self._context.informers.of(PODS).on_change(self._pod_changed)
        while True:
            await self.sample()
            # A cluster whose time passes quickly is not asked all the time.
            await asyncio.gather(self._context.clock.sleep(INTERVAL_S), asyncio.sleep(_LEAST_S))

    async def sample(self) -> None:
        free = asyncio.Semaphore(_AT_ONCE)
        texts = await asyncio.gather(*(self._text(address, free) for address in self.addresses()))
        rows = [row for text in texts for row in device_rows(text)]
        if rows:
            self._store([DeviceSample(self._part_of(row), row.values) for row in rows])

    def addresses(self) -> list[str]:
        nodes = (_node(item).metadata.annotations.get(_OWN_ADDRESS, "") for item in self._context.informers.of(NODES))
        # Only a simulated node of this machine names its exporter so.
        return sorted({*(one for one in nodes if one.startswith(_LOOPBACK)), *self._pods.values()})

    async def _text(self, address: str, free: asyncio.Semaphore) -> str:
        async with free:
            try:
                return await self._fetch(address)
            except (OSError, TimeoutError) as error:
                _log.debug("the exporter at %s does not answer: %s", address, error)
                return ""

    def _pod_changed(self, before: Item | None, after: Item | None) -> None:
        if before is not None and (after is None or after.uid != before.uid):
            self._pods.pop(before.uid, None)
        if after is None or _MARK not in after.data:
            return
        pod = after.read(_ExporterPod)
        if _EXPORTERS.isdisjoint(pod.metadata.labels.get(name, "") for name in _NAMES):
            return
        if pod.status.phase == "Running" and (ip := pod.status.pod_ip):
            self._pods[after.uid] = f"http://{f'[{ip}]' if ':' in ip else ip}:{_PORT}/metrics"
        else:
            self._pods.pop(after.uid, None)
