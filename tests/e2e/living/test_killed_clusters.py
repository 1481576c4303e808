"""Living clusters that are killed while a Job runs: whoever comes back goes on, and nothing runs twice for it."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from build.cluster_server import ServerProcess
from build.kubectl_runs import Kubectl, Obj
from build.living_cluster import indexes, job, pods, restarts, rolled_out, uids, until, wait

MANY = 200
BEGUN = MANY // 5


def server_in(folder: Path, *arguments: str) -> ServerProcess:
    return ServerProcess(folder, "--nodes", "5xp5.48xlarge", *arguments, is_bare=False)


def begun(kubectl: Kubectl) -> dict[str, str]:
    """A service that is up, and a Job of which some pods have ended, some run and some are not there yet."""
    kubectl("create", "deployment", "web", "--image=nginx:1", "--replicas=3")
    rolled_out(kubectl, "deployment/web")
    spec: Obj = {"completions": MANY, "parallelism": 50, "completionMode": "Indexed"}
    kubectl("create", "-f-", given=job("sweep", {"run-for": "1s"}, **spec))
    until(lambda: succeeded(kubectl) >= BEGUN)
    return uids(pods(kubectl, "app=web"))


def succeeded(kubectl: Kubectl) -> int:
    return int(kubectl.get("job", "sweep")["status"].get("succeeded", 0))


def check_the_end(kubectl: Kubectl, services: dict[str, str]) -> None:
    until(lambda: kubectl.run("wait", "job/sweep", "--for=condition=complete", "--timeout=20s").code == 0)
    status = kubectl.get("job", "sweep")["status"]
    assert (status["succeeded"], status.get("failed", 0), status["completedIndexes"]) == (MANY, 0, f"0-{MANY - 1}")
    workers = pods(kubectl, "job-name=sweep")
    assert (indexes(workers), restarts(workers)) == (list(range(MANY)), 0)
    assert {one["status"]["phase"] for one in workers} == {"Succeeded"}
    web = pods(kubectl, "app=web")
    assert (uids(web), restarts(web), {one["status"]["phase"] for one in web}) == (services, 0, {"Running"})
    wait(kubectl, "pod --selector=app=web", "condition=ready")


@pytest.mark.slow
def test_a_killed_cluster_goes_on_where_it_was(tmp_path: Path, kubectl_home: Path) -> None:
    server = server_in(tmp_path)
    services = begun(Kubectl(server.kubeconfig, kubectl_home))
    server.stop(signal.SIGKILL)
    again = server_in(tmp_path)
    try:
        kubectl = Kubectl(again.kubeconfig, kubectl_home)
        assert succeeded(kubectl) >= BEGUN
        check_the_end(kubectl, services)
    finally:
        assert again.stop() == 0
    assert "Traceback" not in again.log.read_text()


def children(process: int) -> set[int]:
    listed = subprocess.run(["ps", "-o", "pid=", "--ppid", str(process)], capture_output=True, text=True, check=False)
    return {int(word) for word in listed.stdout.split()}


@pytest.mark.e2e
@pytest.mark.slow
def test_killed_controllers_and_nodes_come_back_beside_their_server(tmp_path: Path, kubectl_home: Path) -> None:
    server = server_in(tmp_path, "--processes")
    parent = server.process.pid
    try:
        kubectl = Kubectl(server.kubeconfig, kubectl_home)
        services = begun(kubectl)
        before = children(parent)
        assert len(before) == 3
        for child in before:
            os.kill(child, signal.SIGKILL)
        until(all_new(parent, before))
        check_the_end(kubectl, services)
    finally:
        assert server.stop() == 0
    assert "Traceback" not in server.log.read_text()


def all_new(parent: int, before: set[int]) -> Callable[[], bool]:
    return lambda: len(children(parent) - before) == 3


def test_nobody_is_left_of_a_cluster_whose_server_was_killed(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path, "--memory", "--nodes", "1xg5.12xlarge", "--processes", is_bare=False)
    clients = children(server.process.pid)
    assert len(clients) == 3
    server.stop(signal.SIGKILL)
    until(lambda: not any(Path(f"/proc/{client}").exists() for client in clients))
