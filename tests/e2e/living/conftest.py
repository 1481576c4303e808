"""Two living clusters, one at life's pace, one whose minutes are seconds; a namespace for each test.

They end with the last test of this folder: a cluster whose minutes are seconds takes a tenth of a core while nobody
uses it, at the cost of all tests that follow.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from build.cluster_server import ServerProcess
from build.kubectl_runs import Kubectl
from build.living_cluster import living, namespaces_in


@pytest.fixture(scope="package")
def steady(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """Two nodes with eight GPUs each, and one without."""
    with living(tmp_path_factory.mktemp("steady"), "2xp5.48xlarge,1xcpu-64", "--memory") as server:
        yield server


@pytest.fixture(scope="package")
def hasty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """Three nodes with eight GPUs each."""
    with living(tmp_path_factory.mktemp("hasty"), "3xp5.48xlarge", "--memory", "--speed", "60") as server:
        yield server


@pytest.fixture(scope="package")
def steady_namespaces(steady: ServerProcess, kubectl_home: Path) -> Iterator[Kubectl]:
    return namespaces_in(Kubectl(steady.kubeconfig, kubectl_home))


@pytest.fixture(scope="package")
def hasty_namespaces(hasty: ServerProcess, kubectl_home: Path) -> Iterator[Kubectl]:
    return namespaces_in(Kubectl(hasty.kubeconfig, kubectl_home))


@pytest.fixture
def kubectl(steady_namespaces: Iterator[Kubectl]) -> Iterator[Kubectl]:
    """In a namespace that goes afterwards, and its pods with it: whoever comes next may need their GPUs."""
    inside = next(steady_namespaces)
    yield inside
    with suppress(AssertionError):
        # The test may have deleted it.
        inside.client.delete_namespace(inside.namespace)


@pytest.fixture
def fast(hasty_namespaces: Iterator[Kubectl]) -> Kubectl:
    """kubectl on the cluster whose minutes are seconds."""
    return next(hasty_namespaces)
