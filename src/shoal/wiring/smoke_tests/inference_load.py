"""Sends a small load to a Service that the user names, through the proxy of the API server, and measures its latency.

Guarantees: GET requests only, a bounded number of them and a bounded number at once; the first ones, which may load a
model, are not counted. Nothing is sent to an address outside of the cluster.
"""

from __future__ import annotations

import asyncio
from typing import Protocol
from urllib.parse import quote

import msgspec

from shoal.client.clock import Clock
from shoal.client.refusals import BusyError, RefusedError
from shoal.policy.readiness.outcomes import Outcome
from shoal.policy.readiness.smoke_results import load_outcome
from shoal.units.errors import TemporaryError

_WARM_UP = 3
_AT_ONCE = 4
_MOST_FAULTS = 5


class Requests(Protocol):
    async def ask(self, method: str, path: str, query: dict[str, str]) -> bytes: ...


class InferenceLoad(msgspec.Struct, frozen=True):
    namespace: str
    service: str
    port: str
    path: str = ""
    requests: int = 100
    most_ms: float = 0
    """The bar of the 99th percentile; 0 without one."""

    @property
    def proxy_path(self) -> str:
        parts = [self.namespace, f"{self.service}:{self.port}"]
        namespace, service = (quote(part, safe=":") for part in parts)
        return f"/api/v1/namespaces/{namespace}/services/{service}/proxy/{quote(self.path, safe='/')}"


async def inference_outcome(requests: Requests, clock: Clock, load: InferenceLoad) -> Outcome:
    latencies_s: list[float] = []
    faults: list[str] = []

    async def one(*, is_counted: bool) -> None:
        begun = clock.seconds()
        try:
            await requests.ask("GET", load.proxy_path, {})
        except (RefusedError, BusyError, TemporaryError) as error:
            faults.append(str(error))
            return
        if is_counted:
            latencies_s.append(clock.seconds() - begun)

    async def work(left: list[None]) -> None:
        while left and len(faults) < _MOST_FAULTS:
            left.pop()
            await one(is_counted=True)

    for _ in range(_WARM_UP):
        if not faults:
            await one(is_counted=False)
    if not faults:
        left: list[None] = [None] * load.requests
        await asyncio.gather(*(work(left) for _ in range(_AT_ONCE)))
    return load_outcome(latencies_s, faults, load.most_ms)
