"""The chart and the kustomize base on a cluster: Helm's commands, and repeated applications that change nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tools.chart import BASE, CHART, ROOT

from build.charts import by_address, comparable, helm, installed, release, rendered
from build.cluster_server import ServerProcess
from build.kubectl import kubectl_binary
from build.kubectl_runs import Kubectl
from build.shoal_process import shoal_process
from shoal.install.manifest import address_of, manifest
from shoal.install.values.reading import read_values

pytestmark = [pytest.mark.slow, pytest.mark.e2e]
Obj = dict[str, Any]
_NAMESPACE = "gpu-operator"
_SHARED = ROOT.parent / "shared/manifests/helm-values"
_FILES = sorted(_SHARED.glob("*.yaml"))


@pytest.fixture(name="cluster")
def cluster_fixture(tmp_path: Path) -> Iterator[Kubectl]:
    """An API server without definitions of other projects, and a namespace."""
    server = ServerProcess(tmp_path, "--memory", "--no-foreign-kinds")
    try:
        kubectl = AnyNamespace(server.kubeconfig, tmp_path)
        kubectl("create", "namespace", _NAMESPACE)
        yield kubectl
    finally:
        server.stop()


@pytest.fixture(name="config")
def config_fixture(cluster: Kubectl) -> Iterator[Any]:
    with helm().Config(kubeconfig_path=cluster.kubeconfig, namespace=_NAMESPACE) as found:
        yield found


class AnyNamespace(Kubectl):
    """Objects of several namespaces are refused if the command names one."""

    def command(self, *arguments: str) -> list[str]:
        return [kubectl_binary(), *arguments]


def live(kubectl: Kubectl, obj: Obj) -> Obj:
    address = address_of(obj)
    where = ["-n", address.namespace] if address.namespace else []
    kind = address.kind if "/" not in address.api_version else f"{address.kind}.{address.api_version.split('/')[0]}"
    found: Obj = yaml.safe_load(kubectl("get", kind, address.name, *where, "-o", "yaml"))
    return found


def versions(kubectl: Kubectl, objects: list[Obj]) -> dict[str, str]:
    return {str(address_of(one)): live(kubectl, one)["metadata"]["resourceVersion"] for one in objects}


def written(folder: Path, objects: list[Obj]) -> str:
    file = folder / "objects.yaml"
    file.write_text("---\n".join(yaml.safe_dump(one) for one in objects))
    return str(file)


def test_a_release_is_installed_upgraded_rolled_back_and_removed(cluster: Kubectl, config: Any) -> None:
    chart = str(ROOT / CHART)
    config.install(chart, "shoal", {"mig": {"strategy": "mixed"}})
    assert config.status("shoal")["status"] == "deployed"
    policy = live(
        cluster, {"apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy", "metadata": {"name": "cluster-policy"}}
    )
    assert policy["spec"]["mig"] == {"strategy": "mixed"}

    config.upgrade(chart, "shoal", {"driver": {"version": "580.82.07"}}, reuse_values=True)
    changed = live(cluster, policy)["spec"]
    assert (changed["mig"], changed["driver"]["version"]) == ({"strategy": "mixed"}, "580.82.07")

    config.rollback("shoal", version=1)
    assert live(cluster, policy)["spec"] == policy["spec"]

    config.uninstall("shoal")
    for kind in ("deployment", "configmap", "serviceaccount", "service", "networkpolicy", "poddisruptionbudget"):
        assert "shoal" not in cluster("get", kind, "-A", "-o", "name")
    assert "shoal" not in cluster("get", "clusterrole,clusterrolebinding,role,rolebinding", "-A", "-o", "name").replace(
        "system:shoal", ""
    )
    # Helm never removes definitions, because objects of users would go with them.
    assert "clusterpolicies.nvidia.com" in cluster("get", "crd", "-o", "name")


def test_the_objects_on_the_cluster_are_those_that_the_chart_renders(cluster: Kubectl, config: Any) -> None:
    config.install(str(ROOT / CHART), "shoal", {})
    for address, wanted in installed("", release("shoal", _NAMESPACE)).items():
        present = comparable(live(cluster, wanted))
        for field in ("rules", "subjects", "roleRef"):
            assert present.get(field) == wanted.get(field), address
        if address.kind == "ClusterPolicy":
            assert present["spec"] == wanted["spec"]


def test_applying_the_rendered_objects_again_changes_nothing(cluster: Kubectl, tmp_path: Path) -> None:
    """As Argo CD and Flux do, by server-side apply."""
    objects = rendered({}, "shoal", _NAMESPACE)
    cluster("apply", "--server-side", "-f", str(ROOT / CHART / "crds/gpu-operator.yaml"))
    apply = ("apply", "--server-side", "--field-manager=argocd-controller", "-f", written(tmp_path, objects))
    cluster(*apply)
    before = versions(cluster, objects)
    cluster(*apply)
    assert versions(cluster, objects) == before
    assert cluster("diff", "--server-side", *apply[2:]) == ""


def test_shoal_at_work_does_not_change_what_was_applied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOAL_IMAGE", "shoal:test")
    monkeypatch.setenv("SHOAL_NAMESPACE", _NAMESPACE)
    alone = tmp_path / "operator.yaml"
    objects = rendered({}, "shoal", _NAMESPACE)
    config = next(one for one in objects if one["metadata"]["name"] == "shoal-operator-config")
    alone.write_text(config["data"]["operator.yaml"])
    arguments = ("--memory", "--no-foreign-kinds", "--nodes=1xp5.48xlarge", "--scheduler=simple")
    server = ServerProcess(tmp_path, *arguments, is_bare=False)
    try:
        kubectl = AnyNamespace(server.kubeconfig, tmp_path)
        kubectl("create", "namespace", _NAMESPACE)
        kubectl("apply", "--server-side", "-k", str(ROOT / CHART / "crds"))
        applied = ("--server-side", "--field-manager=argocd-controller", "-f", written(tmp_path, objects))
        kubectl("apply", *applied)
        run, operator = ("run", "--metrics-address=none"), ("--controllers=operator", f"--config={alone}")
        with (
            shoal_process(server.kubeconfig, *run) as scheduler,
            shoal_process(server.kubeconfig, *run, *operator) as stack,
        ):
            assert scheduler.is_ready(), scheduler.said
            assert stack.is_ready(), stack.said
            waiting = ("wait", f"--namespace={_NAMESPACE}", "--timeout=60s")
            kubectl(*waiting, "daemonset/nvidia-operator-validator", "--for=create")
            kubectl(*waiting, "clusterpolicy/cluster-policy", "--for=jsonpath={.status.state}")
            assert kubectl("diff", *applied) == ""
            assert kubectl("diff", "--server-side", "-k", str(ROOT / CHART / "crds")) == ""
    finally:
        server.stop()


@pytest.mark.skipif(not _FILES, reason="the folder of values of other installations is not here")
def test_the_server_accepts_the_objects_for_values_of_other_installations(cluster: Kubectl, tmp_path: Path) -> None:
    cluster("apply", "--server-side", "-f", str(ROOT / CHART / "crds/gpu-operator.yaml"))
    for file in _FILES:
        objects = rendered(yaml.safe_load(file.read_text()), "shoal", _NAMESPACE)
        said = cluster("apply", "--server-side", "--dry-run=server", "-f", written(tmp_path, objects))
        assert said.count("serverside-applied (server dry run)") == len(objects), file.name


def test_the_kustomize_base_has_the_objects_of_shoal_install_and_applying_it_again_changes_nothing(
    cluster: Kubectl,
) -> None:
    objects = list(yaml.safe_load_all(cluster("kustomize", str(ROOT / BASE))))
    own = [one for one in objects if one["kind"] != "CustomResourceDefinition"]
    wanted = manifest(release(), read_values([]))
    assert by_address(own) == {address_of(one): comparable(one) for one in wanted}
    definitions = {one["metadata"]["name"] for one in objects} & {
        "clusterpolicies.nvidia.com",
        "workloads.kueue.x-k8s.io",
    }
    assert len(definitions) == 2

    cluster("apply", "--server-side", "-k", str(ROOT / CHART / "crds"))
    apply = ("apply", "--server-side", "-k", str(ROOT / BASE))
    cluster(*apply)
    before = versions(cluster, own)
    cluster(*apply)
    assert versions(cluster, own) == before
