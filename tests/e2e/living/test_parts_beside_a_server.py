"""`shoal cluster nodes` and `shoal cluster controllers` as processes of their own, beside a server that has neither."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from build.cluster_server import ServerProcess
from build.kubectl_runs import PATIENCE_S, Kubectl
from build.living_cluster import job, nodes_of, pod, pods, rolled_out, shoal, shoal_apart, wait


class Part:
    """One `shoal cluster ...`, until Ctrl-C. `said`: everything on its standard error."""

    def __init__(self, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "shoal", "cluster", *arguments],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stderr is not None
        self.cluster = self.process.stderr.readline()
        self.said = self.process.stderr.readline()

    def interrupted(self) -> int:
        self.process.send_signal(signal.SIGINT)
        _, rest = self.process.communicate(timeout=PATIENCE_S)
        self.said += rest
        return self.process.returncode


@contextmanager
def part(*arguments: str) -> Iterator[Part]:
    started = Part(*arguments)
    try:
        yield started
    finally:
        if started.process.poll() is None:
            started.process.kill()
            started.process.communicate(timeout=PATIENCE_S)


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    server = ServerProcess(tmp_path_factory.mktemp("bare"), "--memory")
    yield server
    assert server.stop() == 0


def test_nodes_and_controllers_of_other_processes_make_a_bare_server_live(
    bare: ServerProcess, kubectl_home: Path
) -> None:
    access = ("--kubeconfig", str(bare.kubeconfig))
    kubectl = Kubectl(bare.kubeconfig, kubectl_home)
    fleet = ("--nodes", "2xg5.12xlarge[time-slicing=2]", "--metrics-port", "0")
    with part("controllers", *access) as controllers, part("nodes", *access, *fleet) as nodes:
        assert controllers.cluster.startswith("cluster: shoal (https://127.0.0.1:")
        assert "controllers at https://127.0.0.1:" in controllers.said
        assert nodes.said.startswith("2 nodes at https://127.0.0.1:")
        wait(kubectl, "node --all", "condition=Ready")
        kubectl("create", "deployment", "web", "--image=nginx:1", "--replicas=2")
        rolled_out(kubectl, "deployment/web")
        kubectl("create", "-f-", given=job("train", {"run-for": "300ms", "log": "done"}, gpus=1))
        wait(kubectl, "job/train", "condition=complete")
        assert "done" in kubectl("logs", "job/train")
        kubectl("create", "-f-", given=pod("shared", gpus=1))
        wait(kubectl, "pod/shared", "condition=ready")
        assert "NVIDIA A10G" in kubectl("exec", "shared", "--", "nvidia-smi", "-L")
        assert shoal("cluster", "fail", "g5-12xlarge-1", kubeconfig=bare.kubeconfig).code == 0
        assert (nodes.interrupted(), nodes.said.count("\n")) == (0, 1), nodes.said
        assert (controllers.interrupted(), controllers.said.count("\n")) == (0, 1), controllers.said
    # The same nodes join again, in another process, and find their pods.
    assert shoal("cluster", "heal", "g5-12xlarge-1", kubeconfig=bare.kubeconfig).code == 0
    with part("nodes", *access, *fleet) as nodes:
        wait(kubectl, "node --all", "condition=Ready")
        assert nodes_of(pods(kubectl, "app=web")) <= {"g5-12xlarge-0", "g5-12xlarge-1"}
        assert (nodes.interrupted(), nodes.said.count("\n")) == (0, 1), nodes.said


@pytest.mark.parametrize("what", ["nodes", "controllers"])
def test_a_server_that_does_not_answer_is_told_in_one_line(what: str, bare: ServerProcess, tmp_path: Path) -> None:
    nowhere = tmp_path / "kubeconfig"
    text = bare.kubeconfig.read_text()
    server = next(line.split()[-1] for line in text.splitlines() if "server:" in line)
    nowhere.write_text(text.replace(server, "https://127.0.0.1:1"))
    refused = shoal_apart("cluster", what, "--kubeconfig", str(nowhere))
    assert (refused.code != 0, refused.out) == (True, "")
    named, line = refused.err.splitlines()
    assert named == "cluster: shoal (https://127.0.0.1:1, from --kubeconfig)"
    assert "the API server at https://127.0.0.1:1 does not answer: connection refused" in line


def test_a_kubeconfig_that_is_not_there_is_told_in_one_line(tmp_path: Path) -> None:
    refused = shoal_apart("cluster", "nodes", "--kubeconfig", str(tmp_path / "none"))
    assert (refused.code, refused.err.count("\n")) == (2, 1)
    assert "cannot be read: No such file or directory" in refused.err
