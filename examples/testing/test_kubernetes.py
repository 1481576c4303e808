"""The official Python client against the fixtures of `shoal.testing`."""

import pytest

kubernetes = pytest.importorskip("kubernetes")


def test_a_config_map_is_stored(kube_cluster, kube_namespace):
    api = kubernetes.client.CoreV1Api(kubernetes.config.new_client_from_config(str(kube_cluster.kubeconfig)))
    api.create_namespaced_config_map(kube_namespace, {"metadata": {"name": "a"}, "data": {"key": "value"}})
    assert api.read_namespaced_config_map("a", kube_namespace).data == {"key": "value"}
