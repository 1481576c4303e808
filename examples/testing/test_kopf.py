"""A kopf operator against the fixtures of `shoal.testing`: it labels each ConfigMap, also if the API server is unavailable at first."""

import pytest

kopf = pytest.importorskip("kopf")

OPERATOR = """
import kopf

@kopf.on.login()
def login(**kwargs):
    return kopf.login_with_kubeconfig(**kwargs)

@kopf.on.startup()
def configure(settings, **_):
    settings.posting.enabled = False

@kopf.on.create("configmaps")
def label(patch, **_):
    patch.metadata.labels["seen-by"] = "operator"
"""


def test_the_operator_labels_a_config_map(kube_cluster, kube_namespace, tmp_path, monkeypatch):
    from kopf.testing import KopfRunner

    from shoal.client.kind import CONFIG_MAPS

    operator = tmp_path / "operator.py"
    operator.write_text(OPERATOR)
    monkeypatch.setenv("KUBECONFIG", str(kube_cluster.kubeconfig))
    kube_cluster.refuse_requests(503, 1, verbs=["patch"], resource="configmaps", namespace=kube_namespace)
    with KopfRunner(["run", "--standalone", "--namespace", kube_namespace, str(operator)], timeout=30) as runner:
        kube_cluster.create(CONFIG_MAPS, {"metadata": {"name": "a", "namespace": kube_namespace}})
        kube_cluster.wait_for(
            CONFIG_MAPS,
            "a",
            lambda obj: obj["metadata"].get("labels", {}).get("seen-by") == "operator",
            namespace=kube_namespace,
        )
    assert runner.exit_code == 0
