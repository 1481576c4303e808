"""Serves the usage of nodes that other parts of the process do not serve: `kubectl top` with machines that joined."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

from shoal.client.clock import Clock
from shoal.client.informers import Informers
from shoal.client.kind import CONFIG_MAPS, PODS
from shoal.client.refusals import NotFoundError
from shoal.embedded.kubelets.endpoint import api_server_trust
from shoal.embedded.kubelets.endpoint.endpoint import Endpoint, EndpointSettings
from shoal.embedded.kubelets.node_view import MeasuredNode, MeasuredNodes, NodeView, Obj, Usage
from shoal.units.errors import TemporaryError
from shoal.wiring.process_tasks import ProcessTasks
from shoal.wiring.provided import provide_metrics

_log = logging.getLogger("shoal")
_EVERY_S, _OLD_S = 15.0, 60.0
_SUMMARY = "/stats/summary"


class ReachableKubelets(Protocol):
    def connected(self) -> Sequence[str]:
        """The names of their nodes."""
        ...

    async def page(self, node: str, path: str) -> bytes:
        """Raises TemporaryError."""
        ...


class _Figures(msgspec.Struct, rename="camel"):
    usage_nano_cores: int = 0
    working_set_bytes: int = 0


class _Measured(msgspec.Struct, rename="camel"):
    name: str = ""
    cpu: _Figures = msgspec.field(default_factory=_Figures)
    memory: _Figures = msgspec.field(default_factory=_Figures)

    def usage(self) -> Usage:
        return Usage(self.cpu.usage_nano_cores // 1_000_000, self.memory.working_set_bytes)


class _PodReference(msgspec.Struct):
    name: str
    namespace: str


class _PodFigures(msgspec.Struct, rename="camel"):
    pod_ref: _PodReference
    containers: list[_Measured] = []


class _Summary(msgspec.Struct):
    node: _Measured
    pods: list[_PodFigures] = []


class _JoinedNode:
    """Implements MeasuredNode, by the last summary of its kubelet."""

    def __init__(self, name: str, summary: _Summary, labels: Mapping[tuple[str, str], Obj]) -> None:
        self.name = name
        self._summary, self._labels = summary, labels

    def usage(self) -> Usage:
        return self._summary.node.usage()

    def pod_usage(self) -> Sequence[tuple[Obj, dict[str, Usage]]]:
        found = []
        for pod in self._summary.pods:
            of = (pod.pod_ref.namespace, pod.pod_ref.name)
            metadata = {"namespace": of[0], "name": of[1], "labels": self._labels.get(of, {})}
            found.append(({"metadata": metadata}, {one.name: one.usage() for one in pod.containers}))
        return found

    def is_reachable(self) -> bool:
        return True


class JoinedUsage:
    """Implements MeasuredNodes, while `run` runs."""

    def __init__(self, kubelets: ReachableKubelets, informers: Informers, clock: Clock) -> None:
        self._kubelets, self._pods, self._clock = kubelets, informers.of(PODS), clock
        self._nodes: dict[str, tuple[float, _JoinedNode]] = {}

    def node(self, name: str) -> MeasuredNode | None:
        found = self._nodes.get(name)
        return None if found is None else found[1]

    def names(self) -> Sequence[str]:
        return tuple(self._nodes)

    async def run(self) -> None:
        while True:
            await asyncio.gather(*(self._read(name) for name in self._kubelets.connected()))
            now_s = self._clock.seconds()
            self._nodes = {name: found for name, found in self._nodes.items() if now_s - found[0] <= _OLD_S}
            await self._clock.sleep(_EVERY_S)

    async def _read(self, name: str) -> None:
        try:
            summary = msgspec.json.decode(await self._kubelets.page(name, _SUMMARY), type=_Summary)
        except (TemporaryError, msgspec.DecodeError) as error:
            _log.debug("the usage of node %s is not read now: %s", name, error)
            return
        labels = {}
        for pod in summary.pods:
            item = self._pods.get(pod.pod_ref.namespace, pod.pod_ref.name)
            if item is not None:
                labels[pod.pod_ref.namespace, pod.pod_ref.name] = item.obj()["metadata"].get("labels") or {}
        self._nodes[name] = (self._clock.seconds(), _JoinedNode(name, summary, labels))


class AllNodes:
    """Implements MeasuredNodes: those of each part."""

    def __init__(self, *parts: MeasuredNodes | None) -> None:
        self._parts = [part for part in parts if part is not None]

    def node(self, name: str) -> MeasuredNode | None:
        return next((found for part in self._parts if (found := part.node(name)) is not None), None)

    def names(self) -> Sequence[str]:
        return tuple(name for part in self._parts for name in part.names())


class _NoNodes:
    """Implements NodeViews."""

    def node(self, name: str) -> NodeView | None:  # noqa: ARG002 - there is none
        return None

    def names(self) -> Sequence[str]:
        return ()


async def serve_usage(tasks: ProcessTasks, measured: MeasuredNodes) -> None:
    """Serve metrics.k8s.io, where the process has no kubelets that do."""
    settings = EndpointSettings(kubelet_port=0, metrics_port=0, measured=measured)
    try:
        found = await tasks.api.get(CONFIG_MAPS, api_server_trust.NAMESPACE, api_server_trust.NAME)
        settings = api_server_trust.trusting(settings, found.obj())
    except NotFoundError:
        pass
    endpoint = Endpoint(_NoNodes(), settings, tasks.clock.seconds, tasks.node_labels)
    ports = await endpoint.start()
    tasks.at_end(endpoint.stop)
    await provide_metrics(tasks.api, ports, endpoint.ca)
