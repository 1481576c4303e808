"""`shoal run` as people start it: beside a cluster that has a scheduler of its own, two for one lease, with files."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from build.cluster_server import ServerProcess
from build.kubectl_runs import Kubectl
from build.living_cluster import events, living, namespaces_in, pod, until, wait
from build.shoal_process import ShoalProcess, shoal_process

LEASE = "leaderElection: {resourceName: LEASE, leaseDuration: 3s, renewDeadline: 2s, retryPeriod: 500ms}\n"
OWN = "apiVersion: config.shoal.dev/v1alpha1\nkind: ShoalConfiguration\ncontrollers: [scheduler]\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """Pods that name no scheduler are the simple one's; all others wait for a `shoal run`."""
    folder = tmp_path_factory.mktemp("beside")
    with living(folder, "2xp5.48xlarge", "--memory", "--scheduler", "simple") as started:
        yield started


@pytest.fixture(scope="module")
def all_namespaces(server: ServerProcess, kubectl_home: Path) -> Iterator[Kubectl]:
    return namespaces_in(Kubectl(server.kubeconfig, kubectl_home))


@pytest.fixture
def beside(all_namespaces: Iterator[Kubectl]) -> Kubectl:
    return next(all_namespaces)


@contextmanager
def running(kubectl: Kubectl, *arguments: str) -> Iterator[ShoalProcess]:
    """Killed afterwards, if it has not been ended."""
    process = ShoalProcess(kubectl.kubeconfig, "run", *arguments)
    try:
        yield process
    finally:
        process.stop(signal.SIGKILL)


def configuration(folder: Path, name: str) -> str:
    """A scheduler and a lease of that name, which is lost within seconds."""
    file = folder / "shoal.yaml"
    file.write_text(f"{OWN}schedulerNames: [{name}]\n{LEASE.replace('LEASE', name)}")
    return str(file)


def holder(kubectl: Kubectl, name: str) -> str:
    found = kubectl.within("kube-system").run("get", "lease", name, "-o", "jsonpath={.spec.holderIdentity}")
    return found.out


def place(kubectl: Kubectl, name: str, scheduler: str) -> None:
    kubectl("create", "-f-", given=pod(name, gpus=1, schedulerName=scheduler))
    wait(kubectl, f"pod/{name}", "condition=ready")


def test_one_of_two_works_and_the_other_goes_on_when_it_is_killed(beside: Kubectl, tmp_path: Path) -> None:
    file = configuration(tmp_path, "batch")
    with running(beside, "--config", file) as first:
        assert first.is_ready(), first.said
        leader = holder(beside, "batch")
        with running(beside, "--config", file) as second:
            place(beside, "before", "batch")
            assert holder(beside, "batch") == leader != ""
            first.stop(signal.SIGKILL)
            place(beside, "after", "batch")
            assert second.is_ready(), second.said
            assert holder(beside, "batch") not in ("", leader)
            assert events(beside, "after")["Scheduled"].startswith(f"Successfully assigned {beside.namespace}/after to")
            assert second.stop() == 0
            assert "Traceback" not in second.said
    # Whoever ends in order gives the lease back, so that nobody waits for it.
    assert holder(beside, "batch") == ""


def test_whoever_asks_for_no_lease_is_told_of_the_holder(beside: Kubectl, tmp_path: Path) -> None:
    file = configuration(tmp_path, "alone")
    with running(beside, "--config", file) as first, running(beside, "--config", file, "--no-leader-elect") as second:
        assert first.is_ready(), first.said
        assert second.is_ready(), second.said
        with running(beside, "--config", file, "--no-leader-elect") as third:
            assert third.is_ready()
            assert f"{holder(beside, 'alone')} holds the lease kube-system/alone" in third.said


def test_a_leader_that_is_ended_hands_over_at_once(beside: Kubectl, tmp_path: Path) -> None:
    slow = tmp_path / "slow.yaml"
    # Whoever is to have it within the test must be given it back.
    lease = "{resourceName: handed, leaseDuration: 1h, renewDeadline: 30m}"
    slow.write_text(f"{OWN}schedulerNames: [handed]\nleaderElection: {lease}\n")
    with running(beside, "--config", str(slow)) as first:
        assert first.is_ready(), first.said
        with running(beside, "--config", str(slow)) as second:
            leader = holder(beside, "handed")
            assert first.stop(signal.SIGINT) == 0
            until(lambda: holder(beside, "handed") not in ("", leader))
            place(beside, "pod", "handed")
            assert second.stop() == 0


def test_a_configuration_of_kube_scheduler_is_taken_as_it_is(beside: Kubectl, tmp_path: Path) -> None:
    file = tmp_path / "scheduler.yaml"
    file.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "profiles:\n- schedulerName: packing\n  pluginConfig:\n  - name: NodeResourcesFit\n    args:\n"
        "      scoringStrategy: {type: MostAllocated, resources: [{name: nvidia.com/gpu, weight: 1}]}\n"
    )
    options = ("--config", str(file), "--controllers", "scheduler", "--no-leader-elect")
    with running(beside, *options) as process:
        assert process.is_ready(), process.said
        nodes = set()
        for name in ("a", "b", "c"):
            place(beside, name, "packing")
            nodes.add(beside("get", "pod", name, "-o", "jsonpath={.spec.nodeName}"))
        assert len(nodes) == 1
        assert process.stop() == 0


def test_pods_of_other_schedulers_are_left_to_them(beside: Kubectl, tmp_path: Path) -> None:
    with running(beside, "--config", configuration(tmp_path, "ours")) as process:
        assert process.is_ready(), process.said
        beside("create", "-f-", given=pod("theirs", schedulerName="nobody"))
        place(beside, "ours", "ours")
        place(beside, "usual", "default-scheduler")
        assert beside("get", "pod", "theirs", "-o", "jsonpath={.spec.nodeName}{.status.conditions}") == ""


def test_a_server_that_does_not_answer_is_one_line_and_waited_for(server: ServerProcess, tmp_path: Path) -> None:
    nowhere = tmp_path / "kubeconfig"
    text = server.kubeconfig.read_text()
    url = next(line.split()[-1] for line in text.splitlines() if "server:" in line)
    nowhere.write_text(text.replace(url, "https://127.0.0.1:1"))
    with shoal_process(nowhere, "run") as process:
        until(lambda: process.said)
        (told,) = process.said.splitlines()
        assert "127.0.0.1:1" in told
        assert process.process.poll() is None
