"""Who is let in at the kubelets' port, and what is served there beside logs."""

from __future__ import annotations

import json
import socket
from collections.abc import AsyncIterator

import aiohttp
import pytest

from build.endpoint_clients import API_SERVER, PROXIES, PROXY, Doors, client, doors_of
from build.fake_nodes import FakeNodes
from shoal.client.certificates import Pair
from shoal.embedded.apiserver.streams.terminal import CommandOutput
from shoal.embedded.kubelets.endpoint.endpoint import Endpoint, EndpointSettings
from shoal.units.errors import UserError

METRICS = "/apis/metrics.k8s.io/v1beta1"


@pytest.fixture
def nodes() -> FakeNodes:
    found = FakeNodes("n1", "n2")
    found["n1"].run_pod("web", "main", "side")
    return found


@pytest.fixture
async def doors(nodes: FakeNodes) -> AsyncIterator[Doors]:
    async with doors_of(nodes) as found:
        yield found


@pytest.mark.parametrize(
    ("pair", "code", "metrics_code"),
    [
        (None, 401, 401),
        (API_SERVER, 200, 403),
        (client("boss", "system:masters"), 200, 403),
        (client("bob"), 403, 403),
        (PROXY, 403, 200),
        (client("front-proxy-client"), 403, 403),
    ],
    ids=["anonymous", "api server", "master", "user", "proxy", "user with the proxy's name"],
)
async def test_each_certificate_opens_its_own_doors(
    doors: Doors, pair: Pair | None, code: int, metrics_code: int
) -> None:
    shown = doors.showing(pair)
    assert (await shown.get("/healthz"))[0] == code
    assert (await shown.get(METRICS))[0] == metrics_code


async def test_a_certificate_of_a_proxy_with_the_api_servers_name_is_not_the_api_servers(doors: Doors) -> None:
    shown = doors.showing(client("kube-apiserver-kubelet-client", "system:masters", of=PROXIES))
    assert (await shown.get("/healthz"))[0] == 403


async def test_a_node_is_named_in_the_header_or_in_front_of_the_path(doors: Doors) -> None:
    text = 'DCGM_FI_DEV_GPU_UTIL{gpu="0",Hostname="n2"} 85\n'
    assert await doors.get("/metrics/dcgm", {"Shoal-Node": "n2"}) == (200, text)
    assert await doors.get("/nodes/n2/metrics/dcgm") == (200, text)
    code, words = await doors.get("/metrics")
    assert (code, words) == (400, "2 nodes listen here: name one in the header Shoal-Node")


async def test_figures_and_pods_of_a_node(doors: Doors) -> None:
    pods = json.loads((await doors.get("/nodes/n1/pods"))[1])
    assert [pod["metadata"]["name"] for pod in pods["items"]] == ["web"]
    found = json.loads((await doors.get("/nodes/n1/stats/summary"))[1])
    assert found["node"]["nodeName"] == "n1"
    assert found["node"]["cpu"] == {"time": "2026-01-01T00:01:40Z", "usageNanoCores": 1_500_000_000}
    (pod,) = found["pods"]
    assert [one["name"] for one in pod["containers"]] == ["main", "side"]
    assert pod["memory"]["workingSetBytes"] == 2 * (64 << 20)


async def test_other_paths_and_other_streams_are_refused_in_one_line(doors: Doors) -> None:
    assert await doors.get("/configz") == (404, "404 page not found\n")
    code, words = await doors.get("/attach/default/web/main")
    assert (code, words.count("\n")) == (400, 0)
    assert words.startswith("attach is not possible here")
    assert (await doors.get("/portForward/default/web"))[1].startswith("portforward is not possible here")


async def test_a_command_is_run_in_its_container(doors: Doors, nodes: FakeNodes) -> None:
    nodes["n1"].answer = CommandOutput("out\n", "err\n", 3)
    query = "command=nvidia-smi&command=-L&output=1&error=1"
    url = f"{doors.ports.kubelet_url}/exec/default/web/uid-web/side?{query}"
    protocols = ("v5.channel.k8s.io",)
    async with doors.session.ws_connect(url, ssl=doors.tls, protocols=protocols) as socket_:
        frames = [bytes(one.data) async for one in socket_]
    assert nodes["n1"].commands == [("uid-web", "side", "nvidia-smi", "-L")]
    assert frames[:2] == [b"\x01out\n", b"\x02err\n"]
    assert b"exit status 3" in frames[2]


async def test_a_command_that_cannot_be_run_is_refused_before_the_upgrade(doors: Doors, nodes: FakeNodes) -> None:
    assert await doors.get("/exec/default/gone/main", command="env") == (404, "pod does not exist\n")
    assert await doors.get("/exec/default/web/other-uid/main", command="env") == (404, "pod does not exist\n")
    nodes["n1"].running.discard(("uid-web", "side"))
    words = 'unable to upgrade connection: container not found ("side")\n'
    assert await doors.get("/exec/default/web/side", command="env") == (500, words)
    assert await doors.get("/exec/default/web/main", command="env") == (400, "Upgrade request required")
    assert nodes["n1"].commands == []


@pytest.mark.parametrize(("taken", "option"), [("kubelet_port", "--kubelet-port"), ("metrics_port", "--metrics-port")])
async def test_a_port_that_is_taken_is_told_with_the_way_out(taken: str, option: str) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        ports = {"kubelet_port": 0, "metrics_port": 0, taken: other.getsockname()[1]}
        endpoint = Endpoint(FakeNodes("n1"), EndpointSettings(**ports), lambda: 0.0)
        with pytest.raises(UserError, match=f"cannot listen on 127.0.0.1:.*{option} 0 for any free one"):
            await endpoint.start()


async def test_nothing_listens_after_the_end(nodes: FakeNodes) -> None:
    async with doors_of(nodes) as doors:
        ports, tls = doors.ports, doors.tls
    async with aiohttp.ClientSession() as session:
        for url in (ports.kubelet_url, ports.metrics_url):
            with pytest.raises(aiohttp.ClientConnectorError):
                await session.get(url, ssl=tls)
