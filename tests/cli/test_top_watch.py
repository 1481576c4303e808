"""`shoal top --watch` follows a cluster on which Shoal's scheduler does not run, and leaves the terminal as it was."""

from __future__ import annotations

import asyncio
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from build.cluster_server import ServerProcess
from build.gpu_queues import gpu_queue, gpus
from build.manifests import node, pod
from build.queue_manifests import flavor
from build.terminal_process import TerminalProcess
from shoal.cli.main import main
from shoal.client.ecosystem_kinds import CLUSTER_QUEUES, LOCAL_QUEUES, RESOURCE_FLAVORS
from shoal.client.http.api import KubeApi
from shoal.client.http.locate import locate
from shoal.client.kind import NAMESPACES, NODES, PODS
from shoal.client.port import Patch
from shoal.wiring.foreign_kinds import provide_foreign

LEFT = "\x1b[?1049l"
"""What was on the terminal before comes back."""
KINDS = {"ClusterQueue": CLUSTER_QUEUES, "LocalQueue": LOCAL_QUEUES, "ResourceFlavor": RESOURCE_FLAVORS}


async def _fill(kubeconfig: Path) -> None:
    api = KubeApi(locate(kubeconfig, ""), random.Random(0))
    try:
        await provide_foreign(api)
        # Kinds of other projects are there a moment after the server is.
        while not set(KINDS.values()) <= {one.kind for one in await api.served()}:
            pass
        await api.create(NAMESPACES, {"metadata": {"name": "t"}})
        machine = node("gpu-node-0", 8)
        await api.create(NODES, machine)
        for each in (pod("t/holds", 3, "gpu-node-0"), pod("t/waits", 8)):
            each["spec"]["containers"][0]["image"] = "x"
            await api.create(PODS, each)
        running = {"status": {"phase": "Running"}}
        await api.patch(PODS, "t", "holds", Patch("merge", running), "status")
        for each in (flavor(), *gpu_queue("t", gpus(8))):
            if each["kind"] in KINDS:
                await api.create(KINDS[each["kind"]], each)
    finally:
        await api.close()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    server = ServerProcess(tmp_path_factory.mktemp("watched"), "--memory")
    try:
        asyncio.run(_fill(server.kubeconfig))
        yield server.kubeconfig
    finally:
        server.stop()


def _command(kubeconfig: Path, *more: str) -> list[str]:
    return [sys.executable, "-m", "shoal", "top", "--watch", "--kubeconfig", str(kubeconfig), *more]


def test_it_draws_the_cluster_and_answers_keys_until_the_user_quits(cluster: Path) -> None:
    with TerminalProcess(_command(cluster), (120, 40)) as terminal:
        drawn = terminal.shows("gpu-node-0")
        assert "3/8 GPUs held" in drawn
        assert "Shoal on shoal" in drawn
        assert terminal.mode() == (False, False)
        terminal.type(b"2")
        assert "the scheduler default-scheduler has not tried it yet" in terminal.shows("t/waits")
        terminal.type(b"1j\r")
        terminal.shows("HELD BY")
        terminal.type(b"\x1b")
        terminal.type(b"3")
        terminal.shows("NOMINAL")
        terminal.type(b"q")
        assert terminal.told() == "ended 0"
        terminal.writes(LEFT)
        assert terminal.mode() == terminal.first_mode == (True, True)


def test_a_namespace_stays_the_only_one_and_no_key_removes_it(cluster: Path) -> None:
    with TerminalProcess(_command(cluster, "-n", "elsewhere"), (120, 40)) as terminal:
        terminal.shows("gpu-node-0")
        terminal.shows(", namespace elsewhere")
        terminal.type(b"2")
        terminal.shows("Nothing waits.")
        terminal.type(b"\x1b")
        terminal.type(b"?")
        terminal.shows("this help; any key closes it")
        terminal.type(b"x")
        terminal.shows("Nothing waits.")
        terminal.type(b"q")
        assert terminal.told() == "ended 0"


@pytest.mark.parametrize("name", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda name: name.name)
def test_a_signal_ends_it_and_the_terminal_is_as_before(cluster: Path, name: signal.Signals) -> None:
    with TerminalProcess(_command(cluster), (80, 24)) as terminal:
        terminal.shows("gpu-node-0")
        terminal.send(name)
        assert terminal.told() == "ended 0"
        terminal.writes(LEFT)
        assert terminal.mode() == terminal.first_mode


def test_a_suspended_dashboard_gives_the_terminal_back_and_takes_it_again(cluster: Path) -> None:
    with TerminalProcess(_command(cluster), (80, 24)) as terminal:
        terminal.shows("gpu-node-0")
        # Ctrl-Z, which the terminal turns into a signal.
        terminal.type(b"\x1a")
        assert terminal.told() == "stopped"
        terminal.writes(LEFT)
        assert terminal.mode() == terminal.first_mode
        terminal.resize(100, 30)
        terminal.continue_()
        terminal.type(b"?")
        terminal.shows("this help; any key closes it")
        assert terminal.mode() == (False, False)
        terminal.type(b"qq")
        assert terminal.told() == "ended 0"


def test_in_a_pipe_it_prints_a_line_now_and_then(cluster: Path) -> None:
    process = subprocess.Popen(_command(cluster), stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        assert "3/8 GPUs held" in line
        assert "t 3" in line
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        process.stdout.close()


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        (("-l", "kubernetes.io/hostname=gpu-node-0"), "gpu-node-0"),
        (("-l", "zone=nowhere"), "no nodes with the labels zone=nowhere found"),
        (("--sort-by", "gpu", "-o", "name"), "node/gpu-node-0"),
        (("--no-headers",), "gpu-node-0"),
        (("-o", "json"), '"nodes"'),
    ],
)
def test_with_options_of_the_tables_the_tables_are_printed_again_when_they_have_changed(
    options: tuple[str, ...], shown: str, cluster: Path
) -> None:
    process = subprocess.Popen(_command(cluster, *options), stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        assert any(shown in line for line in process.stdout)
    finally:
        process.terminate()
        process.wait(60)
        process.stdout.close()


async def _add_node(kubeconfig: Path) -> None:
    api = KubeApi(locate(kubeconfig, ""), random.Random(0))
    try:
        await api.create(NODES, node("gpu-node-1", 8))
    finally:
        await api.close()


@pytest.fixture
def own_cluster(tmp_path: Path) -> Iterator[Path]:
    """To which a test adds nodes."""
    server = ServerProcess(tmp_path, "--memory")
    try:
        asyncio.run(_fill(server.kubeconfig))
        yield server.kubeconfig
    finally:
        server.stop()


def test_a_node_that_comes_is_in_the_next_table(own_cluster: Path) -> None:
    process = subprocess.Popen(_command(own_cluster, "-o", "name"), stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "node/gpu-node-0\n"
        asyncio.run(_add_node(own_cluster))
        assert [process.stdout.readline() for _ in range(3)] == ["\n", "node/gpu-node-1\n", "node/gpu-node-0\n"]
    finally:
        process.terminate()
        process.wait(60)
        process.stdout.close()


@pytest.mark.parametrize(("option", "value"), [("-f", "x.yaml"), ("--nodes", "2xp5.48xlarge")])
def test_options_of_the_one_time_output_are_refused(
    option: str, value: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["top", "--watch", option, value]) == 2
    assert "does not go with --watch" in capsys.readouterr().err


def test_a_server_that_does_not_answer_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kubeconfig = tmp_path / "config"
    kubeconfig.write_text(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
        "clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]\n"
        "contexts: [{name: c, context: {cluster: c, user: u}}]\nusers: [{name: u, user: {}}]\n"
    )
    assert main(["top", "--watch", "--kubeconfig", str(kubeconfig)]) == 1
    assert capsys.readouterr().err.startswith("shoal: context")
