"""lightkube against the fixtures of `shoal.testing`."""

import pytest

lightkube = pytest.importorskip("lightkube")


def test_a_config_map_is_stored(kube_cluster, kube_namespace):
    from lightkube.models.meta_v1 import ObjectMeta
    from lightkube.resources.core_v1 import ConfigMap

    client = lightkube.Client(lightkube.KubeConfig.from_file(str(kube_cluster.kubeconfig)), namespace=kube_namespace)
    client.create(ConfigMap(metadata=ObjectMeta(name="a"), data={"key": "value"}))
    assert client.get(ConfigMap, "a").data == {"key": "value"}
