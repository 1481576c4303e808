"""kr8s against the fixtures of `shoal.testing`."""

import pytest

kr8s = pytest.importorskip("kr8s")


def test_a_config_map_is_stored(kube_cluster, kube_namespace):
    from kr8s.objects import ConfigMap

    api = kr8s.api(kubeconfig=str(kube_cluster.kubeconfig))
    body = {"metadata": {"name": "a", "namespace": kube_namespace}, "data": {"key": "value"}}
    ConfigMap(body, api=api).create()
    assert ConfigMap.get("a", namespace=kube_namespace, api=api).data == {"key": "value"}
