"""`shoal install`, `upgrade`, `status` and `uninstall` against a server: repeated, changed, returned, removed."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import random
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from build.whole_clusters import whole_cluster
from build.yaml_texts import yaml_values
from shoal.cli.main import main
from shoal.client.clock import LoopClock
from shoal.client.http.api import KubeApi
from shoal.client.http.kubeconfig import KubeconfigChoice
from shoal.client.http.locate import locate
from shoal.client.http.settings import KubeSettings
from shoal.client.kind import CONFIG_MAPS, DEPLOYMENTS, NAMESPACES, Kind
from shoal.client.port import Patch
from shoal.client.refusals import NotFoundError
from shoal.install.kinds import installed_kind
from shoal.wiring.installation.cluster_writer import ClusterWriter, request_kind

Obj = dict[str, Any]
pytestmark = pytest.mark.needs("controllers")
_MADE_BY_OTHERS = ("metrics.k8s.io/", "/pods ", "apps/replicasets ", "/endpoints ", "discovery.k8s.io/", "/secrets ")
"""They follow from the objects of the release, and change by themselves."""
_QUICK = ("--no-wait", "--set", "smokeTest.enabled=false")


class Installation:
    """The commands on one release, which no other worker installs at the same time."""

    def __init__(self, kubeconfig: Path, namespace: str, capsys: pytest.CaptureFixture[str]) -> None:
        self.kubeconfig = kubeconfig
        self.namespace = namespace
        self._capsys = capsys

    def run(self, *arguments: str) -> tuple[int, str, str]:
        code = main([*arguments, "--kubeconfig", str(self.kubeconfig)])
        printed = self._capsys.readouterr()
        return code, printed.out, printed.err

    def ok(self, *arguments: str) -> str:
        code, out, err = self.run(*arguments)
        assert code == 0, err
        return out

    def install(self, *more: str) -> str:
        return self.ok("install", "-n", self.namespace, *_QUICK, *more)

    def objects(self) -> dict[str, Obj]:
        """Those that could be of the release: other tests work in the same cluster."""

        async def read() -> dict[str, Obj]:
            api = KubeApi(locate(self.kubeconfig, KubeconfigChoice()), random.Random())
            try:
                found = await whole_cluster(api)
            finally:
                await api.close()
            return {name: obj for name, obj in found.items() if self._may_be_ours(name)}

        return asyncio.run(read())

    def _may_be_ours(self, name: str) -> bool:
        if name.startswith(_MADE_BY_OTHERS):
            return False
        return self.namespace in name or "/shoal" in name or "cluster-policy" in name

    def get(self, kind: Any, name: str, namespace: str = "") -> Obj:
        async def read() -> Obj:
            api = KubeApi(locate(self.kubeconfig, KubeconfigChoice()), random.Random())
            try:
                return (await api.get(kind, namespace, name)).obj()
            finally:
                await api.close()

        return asyncio.run(read())

    def apply(self, manager: str, manifests: str) -> None:
        """By server-side apply without force, as another client."""

        async def write() -> None:
            settings = KubeSettings(manager=manager)
            api = KubeApi(locate(self.kubeconfig, KubeconfigChoice()), random.Random(), settings)
            try:
                for obj in yaml_values(manifests):
                    found = installed_kind(obj["apiVersion"], obj["kind"])
                    meta = obj["metadata"]
                    await api.patch(request_kind(found), meta.get("namespace", ""), meta["name"], Patch("apply", obj))
            finally:
                await api.close()

        asyncio.run(write())

    def versions(self) -> dict[str, int]:
        """Of the objects of the release, but for those whose status changes by itself."""

        async def read() -> dict[str, int]:
            api = KubeApi(locate(self.kubeconfig, KubeconfigChoice()), random.Random())
            try:
                writer = ClusterWriter(api, LoopClock(0.0))
                found = await writer.labelled("app.kubernetes.io/managed-by=shoal,app.kubernetes.io/instance=shoal")
            finally:
                await api.close()
            moving = ("Deployment", "PodDisruptionBudget", "CustomResourceDefinition", "Pod")
            return {
                str(address): int(obj["metadata"]["resourceVersion"])
                for address, obj in found
                if address.kind not in moving
            }

        return asyncio.run(read())

    def remove_namespace(self) -> None:
        async def remove() -> None:
            api = KubeApi(locate(self.kubeconfig, KubeconfigChoice()), random.Random())
            try:
                with suppress(NotFoundError):
                    await api.delete(NAMESPACES, "", self.namespace)
            finally:
                await api.close()

        asyncio.run(remove())

    def change(self, kind: Any, name: str, namespace: str, body: Obj) -> None:
        async def write() -> None:
            api = KubeApi(locate(self.kubeconfig, KubeconfigChoice()), random.Random())
            try:
                await api.patch(kind, namespace, name, Patch("merge", body))
            finally:
                await api.close()

        asyncio.run(write())


@pytest.fixture
def installation(kubeconfig: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Installation]:
    with (Path(tempfile.gettempdir()) / f"shoal-installation-{os.getuid()}.lock").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        installed = Installation(kubeconfig, f"gpu-{uuid4().hex[:8]}", capsys)
        yield installed
        installed.run("uninstall", "-n", installed.namespace, "--delete-objects")
        installed.remove_namespace()


def test_a_second_installation_changes_nothing_and_the_removal_leaves_nothing(installation: Installation) -> None:
    before = installation.objects()
    assert "is installed in the namespace" in installation.install()
    first = installation.objects()
    assert len(first) > len(before) + 30
    versions = {name: obj for name, obj in first.items() if "shoal-release" not in name}
    assert installation.ok("install", "-n", installation.namespace, "--diff", *_QUICK) == "nothing would change\n"
    installation.install()
    again = installation.objects()
    assert {name: obj for name, obj in again.items() if "shoal-release" not in name} == versions
    installation.ok("uninstall")
    assert installation.objects() == before


def test_applying_again_writes_nothing(installation: Installation) -> None:
    """Also by another client: Argo CD and Flux apply rendered manifests again and again."""
    installation.install()
    printed = installation.ok("install", "-n", installation.namespace, "--dry-run", *_QUICK)
    installation.apply("argocd", printed)
    before = installation.versions()
    assert len(before) > 30
    installation.apply("argocd", printed)
    installation.install()
    assert installation.versions() == before


def test_what_is_printed_is_what_is_applied(installation: Installation) -> None:
    printed = list(yaml_values(installation.ok("install", "-n", installation.namespace, "--dry-run", *_QUICK)))
    assert not [name for name in installation.objects() if installation.namespace in name]
    installation.install()
    names = {(one["kind"], one["metadata"]["name"]) for one in printed}
    record = installation.get(CONFIG_MAPS, "shoal-release-shoal", installation.namespace)
    listed = {(line.split()[1], line.split()[3]) for line in record["data"]["inventory"].splitlines()}
    assert listed == names
    assert record["data"]["state"] == "deployed"


def test_drift_is_shown_and_corrected(installation: Installation) -> None:
    installation.install()
    installation.change(DEPLOYMENTS, "shoal", installation.namespace, {"spec": {"replicas": 5}})
    told = installation.ok("install", "-n", installation.namespace, "--diff", *_QUICK)
    assert f"~ Deployment {installation.namespace}/shoal\n    spec.replicas: 5 -> 2" in told
    installation.install()
    assert installation.get(DEPLOYMENTS, "shoal", installation.namespace)["spec"]["replicas"] == 2


def test_an_upgrade_keeps_values_and_can_be_taken_back(installation: Installation) -> None:
    installation.install("--set", "mig.strategy=mixed")

    def config() -> tuple[str, str, int]:
        found = installation.objects()
        (policy,) = [obj for name, obj in found.items() if "clusterpolicies /cluster-policy" in name]
        replicas = installation.get(DEPLOYMENTS, "shoal", installation.namespace)["spec"]["replicas"]
        return policy["spec"]["mig"]["strategy"], policy["spec"]["driver"]["version"], replicas

    before = config()
    out = installation.ok("upgrade", "--no-wait", "--set", "driver.version=580.82.07", "--set", "replicas=1")
    assert "has revision 2" in out
    assert config() == ("mixed", "580.82.07", 1)
    assert not [name for name in installation.objects() if "poddisruptionbudgets" in name]
    assert "has revision 3" in installation.ok("upgrade", "--rollback", "--no-wait")
    assert config() == before
    assert [name for name in installation.objects() if "poddisruptionbudgets" in name]


def test_an_object_of_a_user_is_neither_overwritten_nor_removed(installation: Installation) -> None:
    async def create() -> None:
        api = KubeApi(locate(installation.kubeconfig, KubeconfigChoice()), random.Random())
        try:
            await api.create(NAMESPACES, {"metadata": {"name": installation.namespace, "labels": {"team": "a"}}})
            meta = {"name": "shoal-config", "namespace": installation.namespace}
            await api.create(CONFIG_MAPS, {"metadata": meta, "data": {"mine": "1"}})
        finally:
            await api.close()

    asyncio.run(create())
    code, _, err = installation.run("install", "-n", installation.namespace, *_QUICK)
    assert code == 1
    assert f"ConfigMap {installation.namespace}/shoal-config exist and do not belong to release shoal" in err
    assert installation.get(CONFIG_MAPS, "shoal-config", installation.namespace)["data"] == {"mine": "1"}
    installation.install("--take-ownership")
    assert "config.yaml" in installation.get(CONFIG_MAPS, "shoal-config", installation.namespace)["data"]
    installation.ok("uninstall")
    assert installation.get(NAMESPACES, installation.namespace)["metadata"]["labels"]["team"] == "a"


def test_a_namespace_that_forbids_privileged_pods_stops_the_installation(installation: Installation) -> None:
    async def create() -> None:
        labels = {"pod-security.kubernetes.io/enforce": "restricted"}
        api = KubeApi(locate(installation.kubeconfig, KubeconfigChoice()), random.Random())
        try:
            await api.create(NAMESPACES, {"metadata": {"name": installation.namespace, "labels": labels}})
        finally:
            await api.close()

    asyncio.run(create())
    code, _, err = installation.run("install", "-n", installation.namespace, *_QUICK)
    assert code == 1
    words = f"kubectl label --overwrite ns {installation.namespace} pod-security.kubernetes.io/enforce=privileged"
    assert words in err
    assert "nothing was installed" in err


def test_the_status_names_the_release_and_its_components(installation: Installation) -> None:
    installation.install()
    _, out, _ = installation.run("status", "-o", "json")
    found = json.loads(out)
    assert (found["release"], found["namespace"], found["state"]) == ("shoal", installation.namespace, "deployed")
    assert [one["component"] for one in found["components"]][:2] == ["scheduler", "operator"]


def test_without_a_release_the_commands_say_how_to_install_one(installation: Installation) -> None:
    for command in ("status", "upgrade", "uninstall"):
        code, _, err = installation.run(command)
        assert (code, "shoal install" in err) == (2, True), command


def test_a_second_release_is_refused(installation: Installation) -> None:
    installation.install()
    code, _, err = installation.run("install", "other", "-n", installation.namespace, *_QUICK)
    assert code == 1
    assert f"Shoal is installed already, as release shoal in the namespace {installation.namespace}" in err


def test_a_generated_name_works_for_every_command(installation: Installation) -> None:
    out = installation.install("--generate-name")
    assert "release shoal-1" in out or "release shoal-2" in out
    assert "revision 1" in installation.run("status")[1]
    assert "is removed" in installation.ok("uninstall")


def test_a_check_explains_what_waits_and_writes_nothing(installation: Installation) -> None:
    before = installation.objects()
    out = installation.ok("install", "check", "-n", installation.namespace)
    assert "wait:" in out or "waits:" in out or out == "no pod waits for a node\n"
    assert installation.objects() == before


def test_an_observer_is_installed_alone_and_later_replaced_by_the_whole(installation: Installation) -> None:
    before = installation.objects()
    out = installation.ok("install", "--observe", "-n", installation.namespace, "--no-wait")
    assert "wait:" in out or "waits:" in out or "no pod waits for a node\n" in out
    names = {name.rpartition("/")[2] for name in installation.objects().keys() - before.keys()}
    names -= {installation.namespace, "default", "kube-root-ca.crt"}
    assert names == {"shoal-observer", "shoal-observer-metrics", "shoal-release-shoal"}
    status = json.loads(installation.run("status", "-o", "json")[1])
    assert [one["component"] for one in status["components"]] == ["observer"]
    installation.ok("upgrade", "--no-wait", "--set", "observe.enabled=false,smokeTest.enabled=false")
    there = {name.rpartition("/")[2] for name in installation.objects()}
    assert "cluster-policy" in there
    assert not {name for name in there if "observer" in name}
    installation.ok("uninstall", "--delete-objects")
    assert installation.objects() == before


def test_an_adoption_is_planned_carried_out_and_reverted(installation: Installation) -> None:
    installation.install("--set", "config.namespaces.kueue=" + (space := f"{installation.namespace}-kueue"))
    hook = {
        "name": "vworkload.kb.io",
        "clientConfig": {"service": {"namespace": space, "name": "kueue-webhook-service"}},
        "rules": [{"operations": ["*"], "apiGroups": ["none.example"], "apiVersions": ["*"], "resources": ["nones"]}],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    hooks = Kind(
        "admissionregistration.k8s.io",
        "v1",
        "validatingwebhookconfigurations",
        "ValidatingWebhookConfiguration",
        is_namespaced=False,
    )
    labels = {"control-plane": "kueue"}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "manager", "image": "kueue"}]}}
    # Without a pod, so that the queues of this cluster continue.
    spec = {"replicas": 0, "selector": {"matchLabels": labels}, "template": pod}
    name = f"{space}-hooks"

    async def create() -> None:
        api = KubeApi(locate(installation.kubeconfig, KubeconfigChoice()), random.Random())
        try:
            await api.create(NAMESPACES, {"metadata": {"name": space}})
            meta = {"name": "kueue-controller-manager", "namespace": space}
            await api.create(DEPLOYMENTS, {"metadata": meta, "spec": spec})
            await api.create(hooks, {"metadata": {"name": name}, "webhooks": [hook]})
        finally:
            await api.close()

    async def remove() -> None:
        api = KubeApi(locate(installation.kubeconfig, KubeconfigChoice()), random.Random())
        try:
            await api.delete(hooks, "", name)
            await api.delete(NAMESPACES, "", space)
        finally:
            await api.close()

    asyncio.run(create())
    try:
        arguments = ("install", "-n", installation.namespace, "--adopt", "kueue")
        before = installation.objects()
        plan = installation.ok(*arguments, "--dry-run")
        assert f"Deployment {space}/kueue-controller-manager: 0 -> 0 replicas" in plan
        found = json.loads(installation.ok(*arguments, "--dry-run", "-o", "json"))
        assert [one["hooks"] for one in found["setAside"]] == [["vworkload.kb.io"]]
        assert installation.objects() == before
        installation.ok(*arguments)
        assert installation.get(hooks, name)["webhooks"][0]["matchConditions"][0]["expression"] == "false"
        code, _, err = installation.run("upgrade", "--no-wait", "--set", "controllers={scheduler}")
        assert (code, "the release has adopted Kueue" in err) == (1, True)
        assert "would be restored" in installation.ok(*arguments, "--revert", "--dry-run")
        installation.ok(*arguments)
        installation.ok(*arguments, "--revert")
        assert installation.objects() == before
        assert "has not adopted Kueue" in installation.run(*arguments, "--revert")[2]
        installation.ok(*arguments)
        installation.ok("uninstall", "--delete-objects")
        assert "matchConditions" not in installation.get(hooks, name)["webhooks"][0]
    finally:
        asyncio.run(remove())


def test_beside_nvidias_operator_its_stack_is_used(installation: Installation) -> None:
    space = f"{installation.namespace}-nvidia"
    labels = {"app": "gpu-operator"}
    container = {"name": "gpu-operator", "image": "nvcr.io/nvidia/gpu-operator:v25.10.0"}
    spec = {
        "replicas": 0,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
    }

    async def create() -> None:
        api = KubeApi(locate(installation.kubeconfig, KubeconfigChoice()), random.Random())
        try:
            await api.create(NAMESPACES, {"metadata": {"name": space}})
            meta = {"name": "gpu-operator", "namespace": space, "labels": labels}
            await api.create(DEPLOYMENTS, {"metadata": meta, "spec": spec})
        finally:
            await api.close()

    async def remove() -> None:
        api = KubeApi(locate(installation.kubeconfig, KubeconfigChoice()), random.Random())
        try:
            await api.delete(NAMESPACES, "", space)
        finally:
            await api.close()

    asyncio.run(create())
    try:
        code, _, err = installation.run("install", "-n", installation.namespace, *_QUICK)
        assert code == 0
        assert f"the GPU operator {space}/gpu-operator runs: its device plugin and exporter are used" in err
        names = [name for name in installation.objects() if space not in name]
        assert not [name for name in names if "operator" in name.rpartition("/")[2] or "cluster-policy" in name]
        level = installation.get(NAMESPACES, installation.namespace)["metadata"]["labels"]
        assert level["pod-security.kubernetes.io/enforce"] == "restricted"
    finally:
        asyncio.run(remove())
