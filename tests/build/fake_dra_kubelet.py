"""A kubelet's side of resource claims over its real interface: finds drivers in its registry folder, and calls them.

The kubelet learns of sockets by a watch; here `look` reads the folder, so no test sleeps.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from build.cluster_api import PATIENCE_S
from shoal.agent.dra.driver_calls import PLUGIN_TYPE, VERSION, DraClient
from shoal.agent.protos import dra_pb2 as dra
from shoal.agent.protos import pluginregistration_pb2 as registration

Obj = dict[str, Any]


async def until(look: Callable[[], Awaitable[bool]]) -> None:
    """Other tasks of the loop go on meanwhile."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            if await look():
                return
            await asyncio.sleep(0)


def message_of(claim: Obj) -> dra.Claim:
    metadata = claim["metadata"]
    return dra.Claim(namespace=metadata["namespace"], name=metadata["name"], uid=metadata["uid"])


class FakeDraKubelet:
    def __init__(self, registry: Path) -> None:
        self._registry = registry
        self.drivers: dict[str, Path] = {}
        """The socket of each registered driver."""
        self._clients: dict[Path, DraClient] = {}

    def look(self) -> None:
        """Register all drivers in the folder; those that are gone are forgotten. Raises `grpc.RpcError`."""
        self.drivers.clear()
        for path in sorted(self._registry.glob("*.sock")):
            client = DraClient(path)
            try:
                info = client.info()
                problem = _problem(info)
                client.notify(registration.RegistrationStatus(plugin_registered=not problem, error=problem))
            finally:
                client.close()
            if not problem:
                self.drivers[info.name] = Path(info.endpoint)

    def prepare(self, *claims: Obj, driver: str = "gpu.nvidia.com") -> dict[str, dra.NodePrepareResourceResponse]:
        request = dra.NodePrepareResourcesRequest(claims=[message_of(one) for one in claims])
        answer = self._client(driver).prepare(request)
        assert set(answer.claims) == _uids(claims), "the kubelet requires an answer for each claim"
        return dict(answer.claims)

    def unprepare(self, *claims: Obj, driver: str = "gpu.nvidia.com") -> dict[str, str]:
        request = dra.NodeUnprepareResourcesRequest(claims=[message_of(one) for one in claims])
        answer = self._client(driver).unprepare(request)
        assert set(answer.claims) == _uids(claims), "the kubelet requires an answer for each claim"
        return {uid: one.error for uid, one in answer.claims.items()}

    def health(self, driver: str = "gpu.nvidia.com") -> Any:
        """The stream of the health of the driver's devices, which `cancel` ends."""
        return self._client(driver).health()

    def stop(self) -> None:
        for client in self._clients.values():
            client.close()
        self._clients.clear()

    def _client(self, driver: str) -> DraClient:
        path = self.drivers[driver]
        return self._clients.setdefault(path, DraClient(path))


def _uids(claims: Sequence[Obj]) -> set[str]:
    return {one["metadata"]["uid"] for one in claims}


def _problem(info: registration.PluginInfo) -> str:
    if info.type != PLUGIN_TYPE:
        return f"unknown type {info.type}"
    if VERSION not in info.supported_versions:
        return f"none of the versions {list(info.supported_versions)} is supported"
    if not Path(info.endpoint).is_absolute():
        return f"{info.endpoint} is not an absolute path"
    return ""
