"""Shoal's own scheduler and queues on a fleet of many kinds, for the collected manifests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from build.cluster_server import ServerProcess
from build.kubectl_runs import Kubectl
from build.living_cluster import living, namespaces_in

FLEET = "2xdgx-a100-80,2xp5.48xlarge,1xv100-box-8,2xcpu-64"


@pytest.fixture(scope="package")
def collected_fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    folder = tmp_path_factory.mktemp("collected")
    with living(folder, FLEET, "--memory", "--speed", "60", "--scheduler", "shoal") as server:
        yield server


@pytest.fixture(scope="package")
def collected_namespaces(collected_fleet: ServerProcess, kubectl_home: Path) -> Iterator[Kubectl]:
    return namespaces_in(Kubectl(collected_fleet.kubeconfig, kubectl_home))


@pytest.fixture
def kubectl(collected_namespaces: Iterator[Kubectl]) -> Iterator[Kubectl]:
    """In a namespace whose pods are gone afterwards, so that every test has the whole fleet."""
    inside = next(collected_namespaces)
    yield inside
    inside("delete", "deployments,statefulsets,jobs,pods", "--all", "--cascade=foreground", "--grace-period=1")
