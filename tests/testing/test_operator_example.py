"""The operator of docs/client.md, as processes against the cluster of `shoal.testing`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from shoal.client.kind import CONFIG_MAPS, LEASES, NAMESPACES
from shoal.testing import KubeCluster, KubeClusterOptions

OPERATOR = Path(__file__).parents[2] / "examples" / "client" / "team_labels.py"


@pytest.fixture(scope="module")
def cluster() -> Iterator[KubeCluster]:
    with KubeCluster(KubeClusterOptions(nodes="none")) as running:
        yield running


@contextmanager
def operator(cluster: KubeCluster, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    environment = {**os.environ, "KUBECONFIG": str(cluster.kubeconfig)}
    process = subprocess.Popen([sys.executable, str(OPERATOR), *arguments], env=environment)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()


def labelled_namespace(cluster: KubeCluster, name: str) -> str:
    cluster.create(NAMESPACES, {"metadata": {"name": name, "labels": {"team": "vision"}}})
    cluster.create(CONFIG_MAPS, {"metadata": {"name": "a", "namespace": name}})
    return name


def has_team(obj: dict[str, Any]) -> bool:
    return bool(obj["metadata"].get("labels", {}).get("team") == "vision")


def test_the_operator_retries_a_conflict(cluster: KubeCluster) -> None:
    cluster.refuse_requests(409, 2, verbs=["patch"], resource="configmaps", namespace="conflicts")
    with operator(cluster):
        labelled_namespace(cluster, "conflicts")
        cluster.wait_for(CONFIG_MAPS, "a", has_team, namespace="conflicts")


def test_the_operator_continues_after_its_watches_ended(cluster: KubeCluster) -> None:
    with operator(cluster):
        cluster.wait_for(CONFIG_MAPS, "a", has_team, namespace=labelled_namespace(cluster, "before"))
        cluster.expire_watches()
        cluster.wait_for(CONFIG_MAPS, "a", has_team, namespace=labelled_namespace(cluster, "after"))


def test_a_replica_takes_over_from_a_leader_that_was_killed(cluster: KubeCluster) -> None:
    with ExitStack() as stack:
        first = stack.enter_context(operator(cluster, "--replica"))
        lease = cluster.wait_for(LEASES, "team-labels", lambda obj: obj["spec"]["holderIdentity"], namespace="default")
        stack.enter_context(operator(cluster, "--replica"))
        first.kill()
        cluster.wait_for(CONFIG_MAPS, "a", has_team, namespace=labelled_namespace(cluster, "failover"))
        now = cluster.get(LEASES, "team-labels", "default")["spec"]["holderIdentity"]
        assert now != lease["spec"]["holderIdentity"]
