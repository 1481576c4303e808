"""What kubectl makes of the kinds of other projects: their short names, their manifests as they are, their columns."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from build.cluster_server import ServerProcess
from build.foreign_kinds import SAMPLES, provided_kinds, samples
from build.kubectl_runs import Kubectl
from build.living_cluster import WITHIN, wait
from shoal.embedded.apiserver.foreign.definitions import definitions

COLLECTED = Path(__file__).parents[5] / "shared" / "manifests"
KINDS = provided_kinds()


@pytest.fixture(scope="module")
def kubectl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    server = ServerProcess(tmp_path_factory.mktemp("foreign"), "--nodes", "1xp5.48xlarge", is_bare=False)
    yield Kubectl(server.kubeconfig, tmp_path_factory.mktemp("home"))
    server.stop()


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    """A server without controllers: nobody else writes the status that a test has written."""
    server = ServerProcess(tmp_path_factory.mktemp("alone"))
    kubectl = Kubectl(server.kubeconfig, tmp_path_factory.mktemp("home"))
    kubectl("create", "-f-", given=[one for one in definitions() if one["spec"]["names"]["kind"] == "LocalQueue"])
    kubectl("wait", "--for=condition=Established", "crd", "--all", WITHIN)
    yield kubectl
    server.stop()


@pytest.mark.parametrize("name", sorted(path.name for path in SAMPLES.glob("*.yaml")))
def test_samples_are_applied_without_a_word_about_unknown_fields(kubectl: Kubectl, name: str) -> None:
    done = kubectl.run("apply", "--validate=strict", "-f", str(SAMPLES / name))
    assert done.code == 0, done.err
    assert len(done.out.splitlines()) == sum(1 for _ in samples([SAMPLES / name]))
    if name == "training.yaml":
        # The queues of the other files are theirs too: jobs are started and stopped meanwhile.
        return
    again = kubectl("apply", "-f", str(SAMPLES / name)).splitlines()
    # Its checks are kept as v1beta2 has them, so kubectl says them anew each time; that changes nothing either.
    said = [line for line in again if line.endswith(" configured")]
    assert said in ([], ["clusterqueue.kueue.x-k8s.io/team-b configured"])
    for line in said:
        assert kubectl("get", line.split()[0], "-o", "jsonpath={.metadata.generation}") == "1"


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("jobs", "jobs.batch"),
        ("cronjob", "cronjobs.batch"),
        ("vcjob", "jobs.batch.volcano.sh"),
        ("vj", "jobs.batch.volcano.sh"),
        ("cq", "clusterqueues.kueue.x-k8s.io"),
        ("lq", "localqueues.kueue.x-k8s.io"),
        ("wl", "workloads.kueue.x-k8s.io"),
        ("q", "queues.scheduling.volcano.sh"),
        ("queues.scheduling.run.ai", "queues.scheduling.run.ai"),
        ("podgroups.scheduling.x-k8s.io", "podgroups.scheduling.x-k8s.io"),
        ("podgroup-v1beta1", "podgroups.scheduling.volcano.sh"),
        ("clusterpolicies", "clusterpolicies.nvidia.com"),
        ("clusterpolicy", "clusterpolicies.nvidia.com"),
        ("scaledobjects", "scaledobjects.keda.sh"),
        ("so", "scaledobjects.keda.sh"),
        ("nodepools", "nodepools.karpenter.sh"),
        ("isvc", "inferenceservices.serving.kserve.io"),
        ("lws", "leaderworkersets.leaderworkerset.x-k8s.io"),
        ("vpa", "verticalpodautoscalers.autoscaling.k8s.io"),
        ("services", "services"),
        ("pr", "pipelineruns.tekton.dev"),
    ],
)
def test_a_name_means_what_it_means_elsewhere(kubectl: Kubectl, said: str, meant: str) -> None:
    asked = kubectl.run("get", said, "-A", "-v=6").err
    plural, _, group = meant.partition(".")
    path = rf"/apis/{re.escape(group)}/[^/]+/{plural}\?" if group else rf"/api/v1/{plural}\?"
    assert re.search(path, asked), asked


def test_a_misspelt_group_is_taken_with_a_warning(kubectl: Kubectl) -> None:
    done = kubectl.run("apply", "-f-", given=[one for one in samples(SAMPLES.glob("*.yaml")) if _is_misplaced(one)])
    assert done.code == 0
    assert "Warning: ScaledObject belongs to keda.sh/v1alpha1" in done.err
    assert "Warning: ClusterPolicy belongs to nvidia.com/v1" in done.err


def _is_misplaced(one: dict[str, object]) -> bool:
    return str(one["apiVersion"]).partition("/")[0] in ("autoscaling.keda.sh", "config.openshift.io")


def test_the_parts_of_a_running_cluster_may_follow_a_policy(kubectl: Kubectl) -> None:
    replicas = "version: v1\nsharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}"
    named = {"name": "time-slicing-config", "namespace": "kube-system"}
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": named, "data": {"any": replicas}}
    kubectl.within("kube-system")("apply", "-f-", given=config)
    policies = [one for one in samples([SAMPLES / "serving.yaml"]) if one["apiVersion"] == "nvidia.com/v1"]
    kubectl("apply", "-f-", given=policies)
    wait(kubectl, "node/p5-48xlarge-0", r"jsonpath={.status.allocatable.nvidia\.com/gpu}=32")
    node = kubectl.get("node/p5-48xlarge-0")
    assert node["metadata"]["labels"]["nvidia.com/gpu.replicas"] == "4"


def test_a_custom_kind_with_a_scale_is_scaled(kubectl: Kubectl) -> None:
    worker = {"replicas": 1, "template": {}}
    job = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": "scaled"},
        "spec": {"pytorchReplicaSpecs": {"Worker": worker}},
    }
    kubectl("create", "-f-", given=job)
    kubectl("scale", "pytorchjob/scaled", "--replicas=4")
    assert kubectl.get("pytorchjob", "scaled")["spec"]["pytorchReplicaSpecs"]["Worker"]["replicas"] == 4


def test_columns_are_those_of_the_project(alone: Kubectl) -> None:
    spec = {"clusterQueue": "team-a"}
    queue = {
        "apiVersion": "kueue.x-k8s.io/v1beta1",
        "kind": "LocalQueue",
        "metadata": {"name": "columns"},
        "spec": spec,
    }
    alone("create", "-f-", given=queue)
    alone.set_status("lq/columns", {"pendingWorkloads": 3, "admittedWorkloads": 1})
    head, row = alone("get", "lq", "columns").splitlines()
    assert re.split(r"\s{2,}", head.strip()) == [
        "NAME",
        "CLUSTERQUEUE",
        "PENDING WORKLOADS",
        "ADMITTED WORKLOADS",
        "AGE",
    ]
    assert row.split()[:4] == ["columns", "team-a", "3", "1"]


@pytest.mark.skipif(not COLLECTED.exists(), reason="no collected manifests beside this repository")
def test_collected_manifests_of_these_kinds_are_applied_as_they_are(kubectl: Kubectl) -> None:
    paths = [path for path in sorted(COLLECTED.rglob("*.yaml")) if _names_a_kind(path)]
    assert len(paths) >= 18
    for path in paths:
        namespace = max(one["metadata"].get("namespace", "") for one in samples([path])) or "default"
        kubectl.run("create", "namespace", namespace)
        done = kubectl.within(namespace).run("apply", "-f", str(path))
        assert done.code == 0, f"{path}: {done.err}"


def _names_a_kind(path: Path) -> bool:
    return any((one["apiVersion"], one["kind"]) in KINDS for one in samples([path]))


def test_the_projects_own_definition_is_applied_with_its_documented_command(kubectl: Kubectl) -> None:
    """With the names, versions and labels of Kueue 0.13, which has no v1beta2."""
    name = "multikueueconfigs.kueue.x-k8s.io"
    config = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "MultiKueueConfig", "metadata": {"name": "kept"}}
    kubectl("create", "-f-", given={**config, "spec": {"clusters": ["west"]}})
    theirs = next(one for one in definitions() if one["metadata"]["name"] == name)
    theirs["metadata"]["labels"] = {"app.kubernetes.io/name": "kueue"}
    theirs["spec"]["names"].pop("shortNames", None)
    theirs["spec"]["versions"] = [one for one in theirs["spec"]["versions"] if one["name"] == "v1beta1"]
    theirs["spec"]["versions"][0] |= {"storage": True, "deprecated": False, "deprecationWarning": None}
    assert "serverside-applied" in kubectl("apply", "--server-side", "-f-", given=theirs)
    assert kubectl("get", "crd", name, "-o", "jsonpath={.status.storedVersions}") == '["v1beta1"]'
    assert (
        kubectl("get", "multikueueconfigs.v1beta1.kueue.x-k8s.io", "kept", "-o", "jsonpath={.spec.clusters}")
        == '["west"]'
    )
