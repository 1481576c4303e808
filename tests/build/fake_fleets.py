"""A served control plane with fake nodes behind a real endpoint: what kubectl sees of kubelets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from copy import deepcopy
from pathlib import Path
from typing import Any

from build.fake_nodes import START_S, FakeNodes
from build.kubectl_runs import Kubectl, Run
from build.served_planes import served_plane
from shoal.client.kind import NODES, PODS, Kind
from shoal.client.port import Patch
from shoal.embedded.apiserver.calls import Actor
from shoal.embedded.apiserver.dynamic.endpoints import ANNOTATION
from shoal.embedded.apiserver.inside.api import InsideApi
from shoal.embedded.apiserver.server.control_plane import ControlPlane
from shoal.embedded.kubelets.endpoint.endpoint import Endpoint, EndpointSettings
from shoal.embedded.kubelets.endpoint.metrics_objects import metrics_objects

Obj = dict[str, Any]
ADMIN = Actor("admin", ("system:masters", "system:authenticated"))
_READY = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "simulated"}
_ROOM = {"cpu": "4", "memory": "16Gi", "pods": "110"}


class FakeFleet:
    def __init__(self, plane: ControlPlane, kubectl: Kubectl, nodes: FakeNodes, endpoint: Endpoint) -> None:
        self.plane = plane
        self.api = InsideApi(plane, ADMIN, "test")
        self.nodes = nodes
        self.endpoint = endpoint
        self._kubectl = kubectl

    async def kubectl(self, *arguments: str) -> Run:
        """In a thread: the server that answers it lives in this loop."""
        return await asyncio.to_thread(self._kubectl.run, *arguments)

    async def said(self, *arguments: str) -> str:
        done = await self.kubectl(*arguments)
        assert done.code == 0, done.err
        return done.out

    async def command(self, *arguments: str) -> asyncio.subprocess.Process:
        """One that goes on while the test does."""
        return await asyncio.create_subprocess_exec(
            *self._kubectl.command(*arguments), env=self._kubectl.environment(), stdout=asyncio.subprocess.PIPE
        )

    async def announce(self, name: str, url: str) -> None:
        patch = {"metadata": {"annotations": {ANNOTATION: url}}}
        await self.api.patch(NODES, "", name, Patch("merge", patch))

    async def run_pod(self, node: str, name: str, *containers: str) -> None:
        """Stored, and known to its node under the uid that it was given."""
        known = self.nodes[node].run_pod(name, *containers)
        pod = {key: deepcopy(known[key]) for key in ("apiVersion", "kind", "spec")}
        pod["metadata"] = {"name": name, "namespace": "default", "labels": known["metadata"]["labels"]}
        await self.api.create(PODS, pod)
        await self.api.patch(PODS, "default", name, Patch("merge", {"status": known["status"]}), "status")


async def _add_nodes(fleet: FakeFleet, url: str) -> None:
    for name in fleet.nodes.names():
        metadata = {"name": name, "annotations": {ANNOTATION: url}}
        status = {"capacity": _ROOM, "allocatable": _ROOM, "conditions": [_READY]}
        await fleet.api.create(NODES, {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": status})


@asynccontextmanager
async def fake_fleet(folder: Path, *names: str, **settings: Any) -> AsyncIterator[FakeFleet]:
    nodes = FakeNodes(*names)
    async with served_plane(folder, **settings) as served:
        plane = served.plane
        endpoint = Endpoint(
            nodes,
            EndpointSettings(
                kubelet_port=0,
                metrics_port=0,
                client_ca=plane.authority.root_certificate,
                proxy_ca=plane.authority.front_proxy_root.certificate.decode(),
                follow_every_s=0.0,
            ),
            lambda: START_S + 100.0,
        )
        ports = await endpoint.start()
        fleet = FakeFleet(plane, Kubectl(served.kubeconfig, folder), nodes, endpoint)
        await _add_nodes(fleet, ports.kubelet_url)
        for obj in metrics_objects(ports.host, ports.kubelet_port, endpoint.ca):
            group, _, version = obj["apiVersion"].rpartition("/")
            kind = obj["kind"]
            namespaced = "namespace" in obj["metadata"]
            await fleet.api.create(Kind(group, version, f"{kind.lower()}s", kind, namespaced), obj)
        try:
            yield fleet
        finally:
            await endpoint.stop()
