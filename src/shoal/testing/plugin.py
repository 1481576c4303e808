"""The pytest plugin: the fixtures `kube_cluster_options`, `kube_cluster` and `kube_namespace`.

A session that requests none of them imports this module and nothing else of Shoal. With pytest-xdist each worker is a
session, and so has its own cluster.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from shoal.testing.cluster import KubeCluster, KubeClusterOptions

_NODES, _SCHEDULER = "kube_nodes", "kube_scheduler"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini(_NODES, "Simulated nodes of kube_cluster, as for `shoal up --nodes`.", default="")
    parser.addini(_SCHEDULER, "Scheduler of kube_cluster: simple or shoal.", default="")


@pytest.fixture(scope="session")
def kube_cluster_options(pytestconfig: pytest.Config) -> KubeClusterOptions:
    """Options of `kube_cluster`. Override this fixture in conftest.py to choose others than the ini file can."""
    from shoal.testing.cluster import options_from_ini

    return options_from_ini(str(pytestconfig.getini(_NODES)), str(pytestconfig.getini(_SCHEDULER)))


@pytest.fixture(scope="session")
def kube_cluster(kube_cluster_options: KubeClusterOptions) -> Iterator[KubeCluster]:
    """A running cluster, started once per session."""
    from shoal.testing.cluster import KubeCluster

    with KubeCluster(kube_cluster_options) as cluster:
        yield cluster


@pytest.fixture
def kube_namespace(kube_cluster: KubeCluster) -> Iterator[str]:
    """The name of a new namespace. Its deletion begins after the test and is not waited for."""
    name = kube_cluster.namespace()
    yield name
    kube_cluster.delete_namespace(name)
