"""kubectl, through the API server, to kubelets: logs, commands, figures, and a kubelet that is not there."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from build.fake_fleets import FakeFleet, fake_fleet
from build.kubectl_runs import PATIENCE_S
from shoal.embedded.apiserver.streams.terminal import CommandOutput
from shoal.embedded.kubelets.endpoint.endpoint import Endpoint, EndpointSettings

AVAILABLE = '--for=jsonpath={.status.conditions[?(@.type=="Available")].reason}=Passed'


@pytest.fixture
async def fleet(tmp_path: Path) -> AsyncIterator[FakeFleet]:
    async with fake_fleet(tmp_path, "n1", "n2") as found:
        await found.run_pod("n2", "web", "main", "side")
        found.nodes["n2"].write("web", "one", "two", "three")
        found.nodes["n2"].write("web", "beside", container="side")
        yield found


async def test_logs_come_from_the_kubelet_with_their_options(fleet: FakeFleet) -> None:
    assert await fleet.said("logs", "web", "-c", "main") == "one\ntwo\nthree\n"
    assert await fleet.said("logs", "web", "-c", "main", "--tail=1") == "three\n"
    assert await fleet.said("logs", "web", "-c", "main", "--since=99s", "--limit-bytes=6") == "two\nth"
    lines = (await fleet.said("logs", "web", "--all-containers")).splitlines()
    assert sorted(lines) == ["beside", "one", "three", "two"]
    assert await fleet.said("logs", "-l", "app=web", "-c", "side", "--prefix") == "[pod/web/side] beside\n"
    done = await fleet.kubectl("logs", "web", "-c", "main", "-p")
    words = 'Error from server (BadRequest): previous terminated container "main" in pod "web" not found\n'
    assert done.err == words
    fleet.nodes["n2"].restart("web")
    assert await fleet.said("logs", "web", "-c", "main", "-p") == "one\ntwo\nthree\n"


async def test_a_followed_log_reaches_kubectl_line_by_line(fleet: FakeFleet) -> None:
    following = await fleet.command("logs", "-f", "web", "-c", "main", "--tail=1")
    assert following.stdout is not None
    async with asyncio.timeout(PATIENCE_S):
        assert await following.stdout.readline() == b"three\n"
        fleet.nodes["n2"].write("web", "four")
        assert await following.stdout.readline() == b"four\n"
        fleet.nodes["n2"].running.clear()
        assert await following.stdout.read() == b""
        assert await following.wait() == 0


async def test_a_kubectl_that_stops_following_is_followed_by_nobody_either(fleet: FakeFleet) -> None:
    following = await fleet.command("logs", "-f", "web", "-c", "main", "--tail=1")
    assert following.stdout is not None
    async with asyncio.timeout(PATIENCE_S):
        assert await following.stdout.readline() == b"three\n"
        following.terminate()
        await following.wait()
        await fleet.nodes["n2"].left_alone()


async def test_a_command_is_run_by_the_kubelet_and_its_code_comes_back(fleet: FakeFleet) -> None:
    node = fleet.nodes["n2"]
    assert await fleet.said("exec", "web", "-c", "side", "--", "nvidia-smi", "-L") == "out\n"
    assert node.commands == [("uid-web", "side", "nvidia-smi", "-L")]
    node.answer = CommandOutput("", "no such thing\n", 127)
    done = await fleet.kubectl("exec", "-i", "web", "-c", "main", "--", "torchrun")
    assert (done.code, done.out) == (127, "")
    assert done.err == "no such thing\ncommand terminated with exit code 127\n"


async def test_a_command_that_the_kubelet_refuses_is_refused(fleet: FakeFleet) -> None:
    fleet.nodes["n2"].running.clear()
    done = await fleet.kubectl("exec", "web", "-c", "main", "--", "env")
    assert done.code == 1
    assert 'container not found ("main")' in done.err


async def test_what_a_node_says_is_read_through_its_proxy(fleet: FakeFleet) -> None:
    text = await fleet.said("get", "--raw", "/api/v1/nodes/n1/proxy/metrics/dcgm")
    assert text == 'DCGM_FI_DEV_GPU_UTIL{gpu="0",Hostname="n1"} 85\n'
    assert '"nodeName":"n2"' in await fleet.said("get", "--raw", "/api/v1/nodes/n2/proxy/stats/summary")
    assert await fleet.said("get", "--raw", "/api/v1/nodes/n2/proxy/healthz") == "ok"
    done = await fleet.kubectl("get", "--raw", "/api/v1/nodes/n3/proxy/metrics")
    assert done.err == 'Error from server (NotFound): nodes "n3" not found\n'


async def test_top_shows_what_is_used(fleet: FakeFleet) -> None:
    await fleet.said("wait", "apiservice/v1beta1.metrics.k8s.io", AVAILABLE, f"--timeout={PATIENCE_S - 5}s")
    lines = (await fleet.said("top", "nodes")).splitlines()
    assert [line.split() for line in lines[1:]] == [[name, "1500m", "37%", "3072Mi", "18%"] for name in ("n1", "n2")]
    assert (await fleet.said("top", "pods")).splitlines()[1].split() == ["web", "500m", "128Mi"]
    lines = (await fleet.said("top", "pods", "--containers", "-l", "app=web")).splitlines()
    assert [line.split() for line in lines[1:]] == [["web", name, "250m", "64Mi"] for name in ("main", "side")]
    assert "No resources found" in (await fleet.kubectl("top", "pods", "-l", "app=other")).err


async def test_a_kubelet_that_is_not_there_is_told_in_kubernetes_words(fleet: FakeFleet) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        # Held and not listened at: nobody else is given it meanwhile.
        address = f"127.0.0.1:{probe.getsockname()[1]}"
        await fleet.announce("n2", f"https://{address}")
        refused = f"dial tcp {address}: connect: connection refused"
        done = await fleet.kubectl("logs", "web", "-c", "main", "--tail=1")
        url = f"https://{address}/containerLogs/default/web/main?tailLines=1"
        assert done.err == f'Error from server: Get "{url}": {refused}\n'
        done = await fleet.kubectl("exec", "web", "-c", "main", "--", "env")
        assert f"error dialing backend: {refused}" in done.err
        done = await fleet.kubectl("get", "--raw", "/api/v1/nodes/n2/proxy/metrics")
        assert f"error trying to reach service: {refused}" in done.err


async def test_a_node_that_is_cut_off_ends_the_connection(fleet: FakeFleet) -> None:
    fleet.nodes["n2"].reachable = False
    done = await fleet.kubectl("logs", "web", "-c", "main")
    assert done.err.startswith('Error from server: Get "https://127.0.0.1:')
    assert done.err.endswith('/containerLogs/default/web/main": EOF\n')


async def test_a_node_that_tells_of_no_kubelet_is_answered_for(fleet: FakeFleet) -> None:
    await fleet.announce("n2", "")
    assert "runs no process" in await fleet.said("logs", "web", "-c", "main")
    done = await fleet.kubectl("get", "--raw", "/api/v1/nodes/n2/proxy/metrics")
    assert 'node "n2" has no kubelet that can be reached from here' in done.err


async def test_other_streams_are_refused_in_one_line(fleet: FakeFleet) -> None:
    for arguments in (("attach", "web", "-c", "main"), ("port-forward", "web", "8080:80")):
        done = await fleet.kubectl(*arguments)
        assert done.code == 1
        assert "is not possible here" in done.err


async def test_a_node_that_names_the_api_server_as_its_kubelet_gains_nothing(tmp_path: Path) -> None:
    async with fake_fleet(tmp_path, "n1", authorization="rbac") as fleet:
        url = (await fleet.said("config", "view", "-o", "jsonpath={.clusters[0].cluster.server}")).strip()
        await fleet.announce("n1", url)
        done = await fleet.kubectl("get", "--raw", "/api/v1/nodes/n1/proxy/api/v1/secrets")
        assert done.code == 1
        assert 'User "kube-apiserver-kubelet-client" cannot list resource "secrets"' in done.err


async def test_a_kubelet_that_does_not_know_the_api_server_is_told_of(fleet: FakeFleet) -> None:
    stranger = Endpoint(fleet.nodes, EndpointSettings(kubelet_port=0, metrics_port=0), lambda: 0.0)
    ports = await stranger.start()
    await fleet.announce("n2", ports.kubelet_url)
    done = await fleet.kubectl("logs", "web", "-c", "main")
    assert done.err.endswith("Internal error occurred: the kubelet answered 401: Unauthorized\n")
    await stranger.stop()
