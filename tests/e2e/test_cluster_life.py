"""`shoal up` as a process among others: a second one, a busy port, a stale folder, its end, and its commands."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import yaml

from build.cluster_api import Api
from build.cluster_server import ServerProcess
from build.kubectl_runs import PATIENCE_S, Kubectl

CONFIGURED = {
    "apiVersion": "v1",
    "kind": "Config",
    "clusters": [{"name": "work", "cluster": {"server": "https://work.example"}}],
    "users": [{"name": "me", "user": {"token": "secret"}}],
    "contexts": [{"name": "work", "context": {"cluster": "work", "user": "me"}}],
    "current-context": "work",
}


def shoal(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """One `shoal` command to its end."""
    command = [sys.executable, "-m", "shoal", *arguments]
    given = {**os.environ, **environment}
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, env=given, check=False)


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A cluster of the older version with a kubeconfig that held something before."""
    folder = tmp_path_factory.mktemp("own")
    (folder / "kubeconfig").write_text(yaml.safe_dump(CONFIGURED))
    started = ServerProcess(folder, "--kube-version", "1.35")
    yield started
    started.stop()


def state(server: ServerProcess) -> tuple[str, str]:
    return "--state", str(server.folder / "state")


def test_a_second_server_on_the_same_folder_is_refused_in_one_line(own: ServerProcess) -> None:
    done = shoal("up", *state(own), "--port", "0")
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)
    assert "running" in done.stderr


def test_a_busy_port_is_told_in_one_line_with_what_to_do(own: ServerProcess, tmp_path: Path) -> None:
    config = yaml.safe_load(own.kubeconfig.read_text())
    port = config["clusters"][-1]["cluster"]["server"].rpartition(":")[2]
    done = shoal("up", "--state", str(tmp_path / "other"), "--port", port)
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)
    assert f"cannot listen on 127.0.0.1:{port}" in done.stderr
    assert "--port" in done.stderr


def test_the_kubeconfig_is_private_and_keeps_what_was_in_it(own: ServerProcess, kubectl: Kubectl) -> None:
    assert own.kubeconfig.stat().st_mode & 0o777 == 0o600
    config = yaml.safe_load(own.kubeconfig.read_text())
    assert {one["name"] for one in config["contexts"]} == {"work", "shoal"}
    assert CONFIGURED["users"][0] in config["users"]
    assert "kube-system" in kubectl.by(own.kubeconfig)("--context=shoal", "get", "namespaces")


def test_an_older_version_is_served_when_asked_for(own: ServerProcess, kubectl: Kubectl) -> None:
    by_own = kubectl.by(own.kubeconfig)
    assert "Server Version: v1.35." in by_own("--context=shoal", "version")
    assert "deployments" in by_own("--context=shoal", "api-resources")


def test_status_tells_where_it_runs_and_what_is_in_it(own: ServerProcess) -> None:
    done = shoal("cluster", "status", *state(own))
    assert done.returncode == 0
    told = dict(line.split(None, 1) for line in done.stdout.splitlines())
    assert (told["ready"], told["nodes"], told["namespaces"]) == ("ok", "0", "4")
    assert told["kubeconfig"] == str(own.kubeconfig)


def test_a_running_cluster_is_not_reset(own: ServerProcess) -> None:
    done = shoal("cluster", "reset", "--yes", *state(own))
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert "shoal down" in done.stderr


@pytest.mark.slow
def test_detached_it_serves_kubectl_until_it_is_told_to_end_and_remembers(kubectl: Kubectl, tmp_path: Path) -> None:
    where = ("--state", str(tmp_path / "state"))
    try:
        started = shoal("up", *where, "--port", "0", "--detach")
        assert started.stdout == f"export KUBECONFIG={tmp_path}/state/kubeconfig\n"
        mine = kubectl.by(tmp_path / "state" / "kubeconfig").within("default")
        mine("create", "configmap", "kept")
        down = shoal("down", *where)
        assert (down.returncode, "has ended" in down.stderr) == (0, True)
        assert "refused" in mine.refused("get", "configmaps")
        assert shoal("cluster", "status", *where).returncode == 1
        shoal("up", *where, "--port", "0", "--detach")
        assert "configmap/kept" in mine.names("configmaps")
        shoal("down", *where)
        assert shoal("cluster", "reset", "--yes", *where).returncode == 0
        assert not (tmp_path / "state").exists()
    finally:
        shoal("down", *where)


async def test_told_to_end_it_ends_open_watches_in_order_and_is_gone(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path, "--memory")
    async with Api.open(server.kubeconfig) as api, AsyncExitStack() as stack, asyncio.timeout(PATIENCE_S):
        watches = [await stack.enter_async_context(api.watch("/api/v1/namespaces")) for _ in range(20)]
        for watch in watches:
            await watch.next_of("ADDED")
        assert await asyncio.to_thread(server.stop, signal.SIGTERM) == 0
        # One that is cut off, because the server would not wait for it any longer, has no end.
        for watch in watches:
            while not await watch.is_at_end():
                pass
    assert "Traceback" not in server.log.read_text()


@pytest.mark.slow
def test_a_folder_whose_server_was_killed_is_taken_over(kubectl: Kubectl, tmp_path: Path) -> None:
    server = ServerProcess(tmp_path)
    kubectl.by(server.kubeconfig).within("default")("create", "configmap", "kept")
    server.stop(signal.SIGKILL)
    assert "not running" in shoal("cluster", "status", *state(server)).stdout
    assert "no cluster is running" in shoal("down", *state(server)).stderr
    again = ServerProcess(tmp_path)
    assert "configmap/kept" in kubectl.by(again.kubeconfig).within("default").names("configmaps")
    assert again.stop() == 0
