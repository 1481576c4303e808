"""`shoal permissions` grants what `shoal run` needs and no more: a service account with these rights and no others runs
all parts, and who takes one away is told which."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from build.cluster_server import ServerProcess
from build.free_ports import free_port
from build.kubectl_runs import Kubectl
from build.living_cluster import job, living, pod, shoal, until, wait
from build.shoal_process import ShoalProcess, shoal_process

Obj = dict[str, Any]
KUEUE = "kueue.x-k8s.io"
DRA = "resource.k8s.io/v1"
NODE = "p5-48xlarge-0"
REFUSED = ("RBAC does not let", "forbidden", "403")


def grant(kubectl: Kubectl) -> None:
    """shoal permissions | kubectl apply -f -"""
    kubectl.within("")("apply", "-f-", given=shoal("permissions").out)


def account(server: ServerProcess, kubectl: Kubectl, folder: Path) -> Path:
    """The kubeconfig of the account that `shoal permissions` makes."""
    grant(kubectl)
    token = kubectl.within("shoal-system")("create", "token", "shoal").strip()
    whole = json.loads(kubectl("config", "view", "--raw", "-o", "json"))
    whole["users"] = [{"name": user["name"], "user": {"token": token}} for user in whole["users"]]
    file = folder / "account"
    file.write_text(json.dumps(whole))
    return file


@contextmanager
def run_as_granted(folder: Path, home: Path, version: str, *options: str) -> Iterator[tuple[Kubectl, ShoalProcess]]:
    nodes = ("1xp5.48xlarge", "--memory", "--scheduler", "simple", "--authorization", "rbac")
    with living(folder / "granted", *nodes, "--kube-version", version) as server:
        kubectl = Kubectl(server.kubeconfig, home)
        kubeconfig = account(server, kubectl, folder)
        with shoal_process(kubeconfig, "run", *options) as process:
            assert process.is_ready(), process.said
            yield kubectl, process


@pytest.fixture(scope="module")
def granted(tmp_path_factory: pytest.TempPathFactory, kubectl_home: Path) -> Iterator[tuple[Kubectl, ShoalProcess]]:
    with run_as_granted(tmp_path_factory.mktemp("rights"), kubectl_home, "1.36") as both:
        yield both


def of(api_version: str, kind: str, name: str, **fields: object) -> Obj:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **fields}


def surroundings() -> list[Obj]:
    """A team of four GPUs, two priorities of each sort, a claim for a device, a volume, a budget."""
    quota = {"name": "nvidia.com/gpu", "nominalQuota": "4"}
    flavors = [{"name": "any", "resources": [quota]}]
    lower = {"withinClusterQueue": "LowerPriority"}
    groups = [{"coveredResources": ["nvidia.com/gpu"], "flavors": flavors}]
    pool = {"name": NODE, "generation": 1, "resourceSliceCount": 1}
    device = {"driver": "nic.example.com", "nodeName": NODE, "pool": pool, "devices": [{"name": "nic-0"}]}
    asks = {"devices": {"requests": [{"name": "nic", "exactly": {"deviceClassName": "nic"}}]}}
    is_nic = {"selectors": [{"cel": {"expression": 'device.driver == "nic.example.com"'}}]}
    storage = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}}
    chosen = {"matchLabels": {"app": "guarded"}}
    queue = {"namespaceSelector": {}, "preemption": lower, "resourceGroups": groups}
    return [
        of(f"{KUEUE}/v1beta2", "ResourceFlavor", "any"),
        of(f"{KUEUE}/v1beta2", "ClusterQueue", "team", spec=queue),
        of(f"{KUEUE}/v1beta2", "LocalQueue", "team", spec={"clusterQueue": "team"}),
        of(f"{KUEUE}/v1beta2", "WorkloadPriorityClass", "soon", value=100),
        of("scheduling.k8s.io/v1", "PriorityClass", "urgent", value=1000),
        of(DRA, "DeviceClass", "nic", spec=is_nic),
        of(DRA, "ResourceSlice", "nic", spec=device),
        of(DRA, "ResourceClaimTemplate", "nic", spec={"spec": asks}),
        of("v1", "PersistentVolumeClaim", "scratch", spec=storage),
        of("policy/v1", "PodDisruptionBudget", "guarded", spec={"minAvailable": 0, "selector": chosen}),
    ]


def queued(name: str, labels: Obj) -> Obj:
    """A gang of two pods with two GPUs each."""
    made = job(name, {"run-for": "1h"}, gpus=2, parallelism=2, completions=2)
    made["metadata"] |= {"labels": {f"{KUEUE}/queue-name": "team", **labels}, "annotations": {"shoal.dev/gang": "true"}}
    inner = made["spec"]["template"]["spec"]
    inner |= {
        "schedulerName": "shoal",
        "volumes": [{"name": "scratch", "persistentVolumeClaim": {"claimName": "scratch"}}],
    }
    inner["containers"][0]["volumeMounts"] = [{"name": "scratch", "mountPath": "/scratch"}]
    return made


def guarded() -> Obj:
    """A pod with a claim, which its budget lets nobody end but through the eviction door."""
    claims = [{"name": "nic", "resourceClaimTemplateName": "nic"}]
    made = pod("guarded", gpus=1, schedulerName="shoal", resourceClaims=claims)
    made["metadata"]["labels"] = {"app": "guarded"}
    return made


def ready(kubectl: Kubectl, name: str) -> None:
    until(lambda: kubectl("get", "job", name, "-o", "jsonpath={.status.ready}") == "2")


def refusals(process: ShoalProcess) -> list[str]:
    """The messages of the log, without time and level."""
    lines = [line for line in process.said.splitlines() if any(word in line for word in REFUSED)]
    return [line.partition(" WARNING ")[2] or line for line in lines]


def test_the_rights_that_are_printed_are_all_that_is_needed(granted: tuple[Kubectl, ShoalProcess]) -> None:
    kubectl, process = granted
    earlier = refusals(process)
    kubectl("create", "-f-", given=surroundings())
    kubectl("create", "-f-", given=[queued("low", {}), guarded()])
    ready(kubectl, "low")
    wait(kubectl, "pod/guarded", "condition=ready")
    kubectl("create", "-f-", given=queued("high", {f"{KUEUE}/priority-class": "soon"}))
    ready(kubectl, "high")
    assert kubectl.get("job", "low")["spec"]["suspend"] is True
    # Three GPUs are free: the guarded pod has to go.
    kubectl("create", "-f-", given=pod("big", gpus=4, schedulerName="shoal", priorityClassName="urgent"))
    wait(kubectl, "pod/big", "condition=ready")
    wait(kubectl, "pod/guarded", "delete")
    kubectl("delete", "job", "high")
    ready(kubectl, "low")
    assert refusals(process) == earlier


def test_the_webhook_needs_no_more_than_is_printed(tmp_path: Path, kubectl_home: Path) -> None:
    port = free_port()
    file = tmp_path / "shoal.yaml"
    file.write_text(
        "apiVersion: config.shoal.dev/v1alpha1\nkind: ShoalConfiguration\n"
        f"webhook: {{address: 127.0.0.1, port: {port}, url: 'https://127.0.0.1:{port}'}}\n"
    )
    with run_as_granted(tmp_path, kubectl_home, "1.34", "--config", str(file)) as (kubectl, process):
        made = json.loads(kubectl("create", "-f-", "-o", "json", given=queued("low", {})))
        assert made["spec"]["suspend"] is True
        assert refusals(process) == []


def test_a_right_that_is_taken_away_is_named_with_its_rule_and_counts_again_once_it_is_back(
    granted: tuple[Kubectl, ShoalProcess],
) -> None:
    kubectl, process = granted
    earlier = refusals(process)
    whole = kubectl.get("clusterrole", "shoal-scheduler")
    less = [rule for rule in whole["rules"] if rule["resources"] != ["pods/binding"]]
    kubectl("replace", "-f-", given={**whole, "rules": less})
    kubectl("create", "-f-", given=pod("waits", schedulerName="shoal"))
    told = until(lambda: refusals(process)[len(earlier) :])
    words = (
        "RBAC does not let system:serviceaccount:shoal-system:shoal create pods/binding in namespace default: the "
        'missing rule is {apiGroups: [""], resources: ["pods/binding"], verbs: ["create"]}; all that shoal run '
        "needs: shoal permissions | kubectl apply -f -"
    )
    assert told == [words]
    grant(kubectl)
    wait(kubectl, "pod/waits", "condition=ready")
    assert refusals(process) == [*earlier, *told]


def test_who_may_not_even_ask_for_the_lease_is_told_the_rule_once(
    granted: tuple[Kubectl, ShoalProcess], tmp_path: Path
) -> None:
    kubectl, _ = granted
    kubectl("create", "serviceaccount", "poor")
    whole = json.loads(kubectl("config", "view", "--raw", "-o", "json"))
    whole["users"] = [
        {**user, "user": {"token": kubectl("create", "token", "poor").strip()}} for user in whole["users"]
    ]
    file = tmp_path / "poor"
    file.write_text(json.dumps(whole))
    with shoal_process(file, "run") as process:
        until(lambda: "leases.coordination.k8s.io in namespace kube-system: the missing rule is" in process.said)
