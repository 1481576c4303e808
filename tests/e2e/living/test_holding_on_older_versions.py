"""Servers of Kubernetes 1.34 and 1.35 have no policies that change what is created: Shoal's webhook holds jobs there.

What is held, and how, is as on 1.36: one answer is compared with the other.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from build.cluster_server import ServerProcess
from build.free_ports import free_port
from build.kubectl_runs import Kubectl
from build.living_cluster import job, living, namespaces_in, pod, until, wait
from build.shoal_process import shoal_process

Obj = dict[str, Any]
QUEUE = "kueue.x-k8s.io/queue-name"
QUEUED = {QUEUE: "team"}
HOOK = "mutatingwebhookconfiguration/shoal-gatekeeping"
_TEMPLATE: Obj = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "main", "image": "busybox"}]}}
_REPLICAS: Obj = {"selector": {"matchLabels": {"app": "a"}}, "template": _TEMPLATE}


@pytest.fixture(scope="module")
def older(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with living(tmp_path_factory.mktemp("older"), "1xp5.48xlarge", "--memory", "--kube-version", "1.34") as server:
        yield server


@pytest.fixture(scope="module")
def older_namespaces(older: ServerProcess, kubectl_home: Path) -> Iterator[Kubectl]:
    return namespaces_in(Kubectl(older.kubeconfig, kubectl_home))


@pytest.fixture
def before(older_namespaces: Iterator[Kubectl]) -> Kubectl:
    """kubectl on the older server."""
    return next(older_namespaces)


def labelled(obj: Obj, labels: Obj) -> Obj:
    return {**obj, "metadata": {**obj["metadata"], "labels": {**obj["metadata"].get("labels", {}), **labels}}}


def of(api_version: str, kind: str, labels: Obj, **spec: object) -> Obj:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "one", "labels": labels}, "spec": spec}


def created(kubectl: Kubectl, obj: Obj) -> Obj:
    """As the server answers to the creation itself."""
    made: Obj = json.loads(kubectl("create", "-f-", "-o", "json", given=obj))
    return made


def local_queue(name: str) -> Obj:
    return of("kueue.x-k8s.io/v1beta2", "LocalQueue", {}, clusterQueue="all") | {"metadata": {"name": name}}


def queues() -> list[Obj]:
    """A team of four GPUs."""
    quota = {"name": "nvidia.com/gpu", "nominalQuota": "4"}
    resources = ["nvidia.com/gpu"]
    group = {"coveredResources": resources, "flavors": [{"name": "default", "resources": [quota]}]}
    kueue = "kueue.x-k8s.io/v1beta2"
    return [
        {"apiVersion": kueue, "kind": "ResourceFlavor", "metadata": {"name": "default"}},
        {
            "apiVersion": kueue,
            "kind": "ClusterQueue",
            "metadata": {"name": "all"},
            "spec": {"namespaceSelector": {}, "resourceGroups": [group]},
        },
        local_queue("team"),
    ]


def held(obj: Obj) -> Obj:
    """What holding an object changes of it."""
    meta, spec = obj["metadata"], obj["spec"]
    inner = (spec.get("template") or {}).get("metadata", {})
    run = spec.get("runPolicy") or {}
    return {
        "labels": {name: value for name, value in (meta.get("labels") or {}).items() if "uid" not in name},
        "finalizers": meta.get("finalizers"),
        "suspend": (spec.get("suspend"), run.get("suspend")),
        "gates": spec.get("schedulingGates"),
        "handed down": (inner.get("labels", {}).get(QUEUE), inner.get("annotations")),
        "env": [one.get("env") for one in spec.get("containers", ())],
    }


_TASK = {"name": "w", "replicas": 1, "template": _TEMPLATE}
_TORCH = {"Worker": {"replicas": 1, "template": _TEMPLATE}}
_ASKS = {"rendezvous": "true"}
CASES = {
    "job": labelled(job("one", {}), QUEUED),
    "free job": job("one", {}),
    "pod": labelled(pod("one"), QUEUED),
    "free pod": pod("one"),
    "pod with a rendezvous": pod("one", _ASKS),
    "deployment": of("apps/v1", "Deployment", QUEUED, **_REPLICAS),
    "statefulset": of("apps/v1", "StatefulSet", QUEUED, serviceName="a", **_REPLICAS),
    "pytorchjob": of("kubeflow.org/v1", "PyTorchJob", QUEUED, pytorchReplicaSpecs=_TORCH),
    "vcjob": of("batch.volcano.sh/v1alpha1", "Job", QUEUED, minAvailable=1, schedulerName="volcano", tasks=[_TASK]),
    "pod of KAI": labelled(pod("one", schedulerName="kai-scheduler"), {"kai.scheduler/queue": "team"}),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("has_default", [False, True], ids=["", "with a default queue"])
def test_what_is_created_is_answered_as_by_a_server_with_policies(
    name: str, has_default: bool, before: Kubectl, kubectl: Kubectl
) -> None:
    if has_default:
        for one in (before, kubectl):
            one("create", "-f-", given=local_queue("default"))
    assert held(created(before, CASES[name])) == held(created(kubectl, CASES[name]))


def test_a_queued_job_and_a_queued_pod_are_held_in_the_answer_and_run_once_admitted(before: Kubectl) -> None:
    done = {"run-for": "1s"}
    train = created(before, labelled(job("train", done, gpus=2), QUEUED))
    single = created(before, labelled(pod("single", done, gpus=1, restartPolicy="Never"), QUEUED))
    assert train["spec"]["suspend"] is True
    assert single["spec"]["schedulingGates"] == [{"name": "kueue.x-k8s.io/admission"}]
    before("create", "-f-", given=queues())
    wait(before, "job/train", "condition=complete")
    wait(before, "pod/single", "jsonpath={.status.phase}=Succeeded")


def test_a_deployment_s_pods_are_held_one_by_one(before: Kubectl) -> None:
    before("create", "-f-", given=of("apps/v1", "Deployment", QUEUED, replicas=2, **_REPLICAS))
    gates = "jsonpath={.items[*].spec.schedulingGates[*].name}"
    until(lambda: before("get", "pods", "-o", gates).split() == ["kueue.x-k8s.io/admission"] * 2)


@pytest.mark.e2e
@pytest.mark.parametrize(
    ("options", "later"),
    [
        (("--kube-version", "1.35"), {("--scheduler", "simple"): False, ("--kube-version", "1.36"): True}),
        (("--kube-version", "1.34", "--processes"), {}),
    ],
    ids=["alone", "processes"],
)
def test_a_killed_cluster_holds_again_from_its_first_moment_and_hooks_nobody_once_shoal_is_gone(
    options: tuple[str, ...], later: dict[tuple[str, ...], bool], tmp_path: Path, kubectl_home: Path
) -> None:
    """`later`: other lives of it, and whether they hold jobs; none of them has a webhook."""
    bundle = "jsonpath={.webhooks[0].clientConfig.caBundle}"

    def is_suspended(name: str) -> bool:
        suspend: bool = created(kubectl, labelled(job(name, {}), QUEUED))["spec"]["suspend"]
        return suspend

    server = ServerProcess(tmp_path, "--nodes", "none", *options, is_bare=False)
    try:
        kubectl = Kubectl(server.kubeconfig, kubectl_home)
        assert is_suspended("first")
        papers = kubectl("get", HOOK, "-o", bundle)
    finally:
        server.stop(signal.SIGKILL)
    with living(tmp_path, "none", *options):
        assert is_suspended("second")
        assert kubectl("get", HOOK, "-o", bundle) == papers
    for number, (more, is_held) in enumerate(later.items()):
        with living(tmp_path, "none", *options, *more):
            assert is_suspended(f"later-{number}") is is_held
            assert kubectl.run("get", HOOK).code != 0


def test_beside_an_older_server_one_is_told_what_to_set_and_once_it_is_set_jobs_are_held(
    tmp_path: Path, kubectl_home: Path
) -> None:
    options = ("--memory", "--kube-version", "1.34", "--scheduler", "simple")
    port = free_port()
    file = tmp_path / "shoal.yaml"
    file.write_text(
        "apiVersion: config.shoal.dev/v1alpha1\nkind: ShoalConfiguration\n"
        f"webhook: {{address: 127.0.0.1, port: {port}, url: 'https://127.0.0.1:{port}'}}\n"
    )
    with living(tmp_path / "beside", "none", *options) as server:
        kubectl = Kubectl(server.kubeconfig, kubectl_home)
        with shoal_process(server.kubeconfig, "run", "--no-leader-elect") as process:
            assert process.is_ready(), process.said
            assert process.said.count("webhook.url") == 1
        with shoal_process(server.kubeconfig, "run", "--no-leader-elect", "--config", str(file)) as process:
            assert process.is_ready(), process.said
            assert "webhook.url" not in process.said
            assert created(kubectl, labelled(job("one", {}), QUEUED))["spec"]["suspend"] is True
