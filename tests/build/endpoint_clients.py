"""An endpoint of fake nodes on real sockets, and clients that show it certificates."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import aiohttp

from build.fake_nodes import START_S, FakeNodes
from shoal.client.certificates import Pair, new_authority, new_client
from shoal.embedded.apiserver.dynamic.trust import new_blind_context
from shoal.embedded.apiserver.security.showing import show
from shoal.embedded.kubelets.endpoint.endpoint import Endpoint, EndpointSettings, Ports

NOW_S = START_S + 100.0
"""What the cluster's clock says."""
_TODAY = datetime.now(UTC)  # noqa: TID251 - certificates want the date
CLIENTS = new_authority(_TODAY, "users")
PROXIES = new_authority(_TODAY, "proxies")


def client(name: str, *groups: str, of: Pair = CLIENTS) -> Pair:
    return new_client(of, name, groups, _TODAY)


API_SERVER = client("kube-apiserver-kubelet-client")
PROXY = client("front-proxy-client", of=PROXIES)


class Doors:
    """One client, with one certificate or none."""

    def __init__(self, session: aiohttp.ClientSession, ports: Ports, tls: ssl.SSLContext) -> None:
        self.session = session
        self.ports = ports
        self.tls = tls

    async def get(self, path: str, headers: dict[str, str] | None = None, **query: Any) -> tuple[int, str]:
        asked = self.session.get(self.ports.kubelet_url + path, ssl=self.tls, headers=headers, params=query)
        async with asked as answer:
            return answer.status, await answer.text()

    async def scrape(self, path: str) -> tuple[int, str]:
        async with self.session.get(self.ports.metrics_url + path) as answer:
            return answer.status, await answer.text()

    def showing(self, pair: Pair | None) -> Doors:
        tls = new_blind_context()
        if pair is not None:
            show(tls, pair)
        return Doors(self.session, self.ports, tls)


@asynccontextmanager
async def doors_of(nodes: FakeNodes, pair: Pair | None = API_SERVER) -> AsyncIterator[Doors]:
    settings = EndpointSettings(
        kubelet_port=0,
        metrics_port=0,
        client_ca=CLIENTS.certificate.decode(),
        proxy_ca=PROXIES.certificate.decode(),
        follow_every_s=0.0,
    )
    endpoint = Endpoint(nodes, settings, lambda: NOW_S)
    ports = await endpoint.start()
    try:
        async with aiohttp.ClientSession() as session:
            yield Doors(session, ports, new_blind_context()).showing(pair)
    finally:
        await endpoint.stop()
