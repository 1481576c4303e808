"""The cluster of `shoal.testing` as tests of an operator use it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from shoal.client.kind import CONFIG_MAPS, NODES
from shoal.client.refusals import NotFoundError
from shoal.testing import KubeCluster, KubeClusterOptions


@pytest.fixture(scope="module")
def cluster() -> Iterator[KubeCluster]:
    with KubeCluster(KubeClusterOptions(nodes="1xp5.48xlarge")) as running:
        yield running


def test_two_namespaces_are_isolated(cluster: KubeCluster) -> None:
    first, second = cluster.namespace(), cluster.namespace()
    cluster.create(CONFIG_MAPS, {"metadata": {"name": "a", "namespace": first}})
    assert cluster.get(CONFIG_MAPS, "a", first)["metadata"]["namespace"] == first
    with pytest.raises(NotFoundError):
        cluster.get(CONFIG_MAPS, "a", second)


def test_a_gpu_fault_is_seen_on_the_node_until_it_is_healed(cluster: KubeCluster) -> None:
    (name,) = cluster.node_names()
    cluster.fail_gpu(name, 3)
    cluster.wait_for(NODES, name, lambda node: node["status"]["allocatable"]["nvidia.com/gpu"] == "7")
    cluster.heal_gpu(name, 3)
    cluster.wait_for(NODES, name, lambda node: node["status"]["allocatable"]["nvidia.com/gpu"] == "8")


def test_waiting_goes_on_after_watches_expire(cluster: KubeCluster) -> None:
    namespace = cluster.namespace()
    cluster.expire_watches()
    cluster.create(CONFIG_MAPS, {"metadata": {"name": "late", "namespace": namespace}})
    assert cluster.wait_for(CONFIG_MAPS, "late", namespace=namespace)


def test_a_wait_that_fails_names_the_object(cluster: KubeCluster) -> None:
    with pytest.raises(TimeoutError, match='configmaps "absent" did not fulfil the condition'):
        cluster.wait_for(CONFIG_MAPS, "absent", timeout_s=0.1, namespace="default")
