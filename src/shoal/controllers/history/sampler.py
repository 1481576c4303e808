"""Reads the exporters of the nodes at an interval, and stores what they say as samples of devices.

Exporters are pods with one of the usual names in their labels, or the address that a simulated node has in an
annotation. An exporter that does not answer is left out until the next time: its devices have no samples then.

Guarantees: a tenant cannot write samples. A pod counts only if a DaemonSet controls it in a namespace of the cluster's
software, or in one that has the label `shoal.dev/exporters=true`; and it speaks only of the devices of its own node.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple

import msgspec

from shoal.api.meta import Namespace, ObjectMeta
from shoal.api.partial import MetadataOf
from shoal.api.wire import ApiStruct
from shoal.client.context import Context
from shoal.client.item import Item, Seen
from shoal.client.kind import NAMESPACES, NODES, PODS
from shoal.store.history.dcgm_samples import DeviceRow, device_rows
from shoal.store.history.pod_rows import SYSTEM_NAMESPACES
from shoal.store.history.samples import DeviceSample

_log = logging.getLogger("shoal.history")
Fetch = Callable[[str], Awaitable[str]]
"""The text at an address. Raises OSError or TimeoutError."""
PartOf = Callable[[str, DeviceRow], str | None]
"""The MIG instance of a row of a node, by the pod that holds it; the GPU for a whole one. None: not of this node."""
INTERVAL_S = 15.0
_LEAST_S = 0.25
_OWN_ADDRESS = "shoal.dev/metrics"
_TRUSTED = "shoal.dev/exporters"
_LOOPBACK = ("http://127.", "http://[::1]", "http://localhost:")
_NAMES = ("app", "app.kubernetes.io/name", "app.kubernetes.io/component")
_EXPORTERS = frozenset({"nvidia-dcgm-exporter", "dcgm-exporter", "shoal-exporter"})
_MARK = b"-exporter"
_PORT = 9400
_AT_ONCE = 32


class _ExporterStatus(ApiStruct, frozen=True):
    phase: str = ""
    pod_ip: str = msgspec.field(default="", name="podIP")


class _ExporterSpec(ApiStruct, frozen=True):
    node_name: str = ""


class _ExporterPod(ApiStruct, frozen=True):
    metadata: ObjectMeta
    spec: _ExporterSpec = _ExporterSpec()
    status: _ExporterStatus = _ExporterStatus()


class Exporter(NamedTuple):
    namespace: str
    node: str
    address: str


_node: Seen[MetadataOf[ObjectMeta]] = Seen(MetadataOf[ObjectMeta])


def read_exporter(item: Item) -> Exporter | None:
    """None for a pod that is no running exporter of a DaemonSet."""
    if _MARK not in item.data:
        return None
    pod = item.read(_ExporterPod)
    owner = pod.metadata.controller()
    is_named = any(pod.metadata.labels.get(name, "") in _EXPORTERS for name in _NAMES)
    if not is_named or owner is None or owner.kind != "DaemonSet":
        return None
    ip, node = pod.status.pod_ip, pod.spec.node_name
    if pod.status.phase != "Running" or not ip or not node:
        return None
    return Exporter(item.namespace, node, f"http://{f'[{ip}]' if ':' in ip else ip}:{_PORT}/metrics")


def is_trusted(namespace: str, labels: Mapping[str, str]) -> bool:
    """Whether exporters of this namespace count: tenants can neither create pods there nor label namespaces."""
    return namespace in SYSTEM_NAMESPACES or labels.get(_TRUSTED) == "true"


class Sampler:
    def __init__(
        self, context: Context, fetch: Fetch, store: Callable[[list[DeviceSample]], None], part_of: PartOf
    ) -> None:
        self._context = context
        self._fetch = fetch
        self._store = store
        self._part_of = part_of
        self.texts: Mapping[str, str] = {}
        """What the exporters said last, by address."""
        self._pods: dict[str, Exporter] = {}
        """By the uid of the pod."""

    async def run(self) -> None:
        self._context.informers.of(PODS).on_change(self.pod_changed)
        while True:
            await self.sample()
            # A cluster whose time passes quickly is not asked all the time.
            await asyncio.gather(self._context.clock.sleep(INTERVAL_S), asyncio.sleep(_LEAST_S))

    async def sample(self) -> None:
        free = asyncio.Semaphore(_AT_ONCE)
        sources = self.sources()
        texts = await asyncio.gather(*(self._text(address, free) for address in sources))
        self.texts = dict(zip(sources, texts, strict=True))
        found = [
            DeviceSample(name, row.values)
            for node, text in zip(sources.values(), texts, strict=True)
            for row in device_rows(text)
            if (name := self._part_of(node, row)) is not None
        ]
        if found:
            self._store(found)

    def sources(self) -> dict[str, str]:
        """The nodes of the exporters, by address."""
        found: dict[str, str] = {}
        for item in self._context.informers.of(NODES):
            address = _node(item).metadata.annotations.get(_OWN_ADDRESS, "")
            # Only a simulated node of this machine names its exporter so.
            if address.startswith(_LOOPBACK):
                found[address] = item.name
        for one in self._pods.values():
            if is_trusted(one.namespace, self._namespace_labels(one.namespace)):
                found[one.address] = one.node
        return found

    def _namespace_labels(self, name: str) -> Mapping[str, str]:
        item = self._context.informers.of(NAMESPACES).get("", name)
        return {} if item is None else item.read(Namespace).metadata.labels

    async def _text(self, address: str, free: asyncio.Semaphore) -> str:
        async with free:
            try:
                return await self._fetch(address)
            except (OSError, TimeoutError) as error:
                _log.debug("the exporter at %s does not answer: %s", address, error)
                return ""

    def pod_changed(self, before: Item | None, after: Item | None) -> None:
        if before is not None and (after is None or after.uid != before.uid):
            self._pods.pop(before.uid, None)
        if after is None:
            return
        if (found := read_exporter(after)) is not None:
            self._pods[after.uid] = found
        else:
            self._pods.pop(after.uid, None)
