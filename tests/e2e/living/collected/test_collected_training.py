"""Collected training jobs under Shoal's scheduler, pieces of pods put into one, and jobs that an operator would run.

No operator runs here: what its pods would be is played by the test, once the job was let go.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from build.collected_manifests import COLLECTED, applied, claim, phases, storage_class, why_pending
from build.kubectl_runs import Kubectl, Obj
from build.living_cluster import events, nodes_of, pod, pods, until, wait

pytestmark = pytest.mark.skipif(not COLLECTED.exists(), reason="no collected manifests beside this repository")

AMPERE, HOPPER, VOLTA = "dgx-a100-80", "p5-48xlarge", "v100-box-8"
QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
API = "kueue.x-k8s.io/v1beta2"


def machines(kubectl: Kubectl) -> set[str]:
    """Without their numbers."""
    return {node.rpartition("-")[0] for node in nodes_of(pods(kubectl))}


def missing(name: str) -> str:
    return f'0/7 nodes are available: persistentvolumeclaim "{name}" not found'


@pytest.mark.parametrize(
    ("path", "name", "successes", "machine"),
    [
        ("training/job-distributed-4x2.yaml", "distributed-training", 4, ""),
        ("training/job-pytorch-4gpu-a100.yaml", "pytorch-training", 1, AMPERE),
        ("training/job-pytorch-single-gpu-v100.yaml", "pytorch-training", 1, VOLTA),
    ],
)
def test_a_training_job_runs_where_it_asks_to(
    kubectl: Kubectl, path: str, name: str, successes: int, machine: str
) -> None:
    kubectl("create", "-f-", given=[claim("training-data-pvc"), claim("model-output-pvc")])
    assert applied(kubectl, path).code == 0
    wait(kubectl, f"job/{name}", "condition=complete")
    assert phases(kubectl) == ["Succeeded"] * successes
    assert not machine or machines(kubectl) == {machine}


def test_a_job_of_two_is_a_gang_once_it_says_so_and_is_spread_over_hosts(kubectl: Kubectl) -> None:
    text = (COLLECTED / "training/job-pytorch-torchrun-2x4.yaml").read_text()
    assert kubectl.run("apply", "-f-", given=text).code == 0
    until(lambda: why_pending(kubectl) == missing("training-data-pvc"))
    shared = claim("training-data-pvc", "shared-by-hosts", mode="ReadWriteMany")
    kubectl("create", "-f-", given=[storage_class("shared-by-hosts", "Immediate"), shared])
    until(lambda: "didn't match Pod's node affinity/selector" in why_pending(kubectl))
    (waiting, _) = pods(kubectl)
    told = "".join(events(kubectl, waiting["metadata"]["name"]).values())
    assert "did you mean NVIDIA-A100-SXM4-80GB" in told
    kubectl("delete", "job", "distributed-training", "--cascade=foreground")
    meant = text.replace("'A100-SXM4-80GB'", "NVIDIA-A100-SXM4-80GB")
    gang = meant.replace("  name: distributed-training\n", '  name: gang\n  annotations: {shoal.dev/gang: "true"}\n', 1)
    kubectl("apply", "-f-", given=gang)
    wait(kubectl, "job/gang", "condition=complete")
    assert nodes_of(pods(kubectl)) == {f"{AMPERE}-0", f"{AMPERE}-1"}
    kubectl("delete", "storageclass", "shared-by-hosts")


def test_a_shared_claim_is_bound_where_its_class_exists(kubectl: Kubectl) -> None:
    applied(kubectl, "training/pvc-cephfs-llama2-dataset.yaml")
    assert kubectl.get("pvc", "llama2-dataset")["status"]["phase"] == "Pending"
    kubectl("create", "-f-", given=storage_class("csi-cephfs-sc", "Immediate"))
    try:
        wait(kubectl, "pvc/llama2-dataset", "jsonpath={.status.phase}=Bound")
        assert kubectl.get("pvc", "llama2-dataset")["status"]["capacity"] == {"storage": "5Ti"}
    finally:
        kubectl("delete", "storageclass", "csi-cephfs-sc")


# -- jobs of operators ------------------------------------------------------------------------------------------------


@pytest.fixture
def queue(kubectl: Kubectl) -> Iterator[Kubectl]:
    """Sixteen GPUs for this namespace, anywhere."""
    flavors = [{"name": "anywhere", "resources": [{"name": "nvidia.com/gpu", "nominalQuota": 16}]}]
    spec = {"namespaceSelector": {}, "resourceGroups": [{"coveredResources": ["nvidia.com/gpu"], "flavors": flavors}]}
    made: list[Obj] = [
        {"apiVersion": API, "kind": "ResourceFlavor", "metadata": {"name": "anywhere"}},
        {"apiVersion": API, "kind": "ClusterQueue", "metadata": {"name": "sixteen"}, "spec": spec},
        {"apiVersion": API, "kind": "LocalQueue", "metadata": {"name": "mine"}, "spec": {"clusterQueue": "sixteen"}},
    ]
    kubectl("create", "-f-", given=made)
    yield kubectl
    kubectl("delete", "mpijobs,pytorchjobs,pods", "--all", "--cascade=foreground", "--grace-period=1")
    kubectl("delete", "localqueue/mine", "clusterqueue.kueue.x-k8s.io/sixteen", "resourceflavor/anywhere")


def test_an_mpi_job_is_let_go_as_a_whole_and_its_pods_take_the_places_kept_for_them(queue: Kubectl) -> None:
    (job,) = yaml.safe_load_all((COLLECTED / "training/mpijob-nccl-test.yaml").read_text())
    job["metadata"] = {"name": "nccl-test", "labels": {QUEUE_LABEL: "mine"}}
    queue("create", "-f-", given=job)
    until(lambda: queue.get("mpijob", "nccl-test")["spec"]["runPolicy"].get("suspend") is False)
    (workload,) = queue.get("workloads")["items"]
    sets = {one["name"]: one["count"] for one in workload["status"]["admission"]["podSetAssignments"]}
    assert sets == {"launcher": 1, "worker": 2}
    queue("create", "-f-", given=list(played(queue.get("mpijob", "nccl-test"))))
    until(lambda: "configmap" in str(queue.get("events")).lower() and len(running_on(queue, "worker")) == 2)
    taken = nodes_of(pods(queue))
    queue("create", "configmap", "nccl-topology", "--from-literal=nccl-topo.xml=<system/>")
    until(lambda: phases(queue) == ["Running"] * 3)
    assert nodes_of(pods(queue)) == taken


def running_on(kubectl: Kubectl, role: str) -> set[str]:
    """Nodes of bound pods of that role."""
    return nodes_of(pods(kubectl, f"role={role}")) - {""}


def played(job: Obj) -> Iterator[Obj]:
    """What the MPI operator would make of it."""
    owner = {"apiVersion": job["apiVersion"], "kind": "MPIJob", "name": "nccl-test", "uid": job["metadata"]["uid"]}
    for role, replicas in job["spec"]["mpiReplicaSpecs"].items():
        template = replicas["template"]
        for at in range(replicas["replicas"]):
            meta = {**template.get("metadata", {}), "name": f"nccl-test-{role.lower()}-{at}"}
            meta["labels"] = {**meta.get("labels", {}), "role": role.lower()}
            meta["ownerReferences"] = [{**owner, "controller": True}]
            yield {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": template["spec"]}


def test_a_pytorch_job_that_names_no_local_queue_is_held_and_says_which(queue: Kubectl) -> None:
    enforced = "pod-security.kubernetes.io/enforce"
    queue("label", "namespace", queue.namespace, f"{enforced}=restricted")
    try:
        assert applied(queue, "training/pytorchjob-llama2.yaml").code == 0
        told: dict[str, str] = {}
        until(lambda: told.update(events(queue, "llama2-training")) or {"Misconfigured", "PodSecurity"} <= told.keys())
    finally:
        queue("label", "namespace", queue.namespace, f"{enforced}-")
    assert told["Misconfigured"] == "LocalQueue research-queue doesn't exist"
    assert "not a label of the job itself" in told["MisplacedQueueName"]
    assert "level restricted, which refuses such pods" in told["PodSecurity"]
    assert queue.get("pytorchjob", "llama2-training")["spec"]["runPolicy"]["suspend"] is True


# -- pieces of pods ---------------------------------------------------------------------------------------------------


def piece(path: str) -> Any:
    return yaml.safe_load((COLLECTED / path).read_text())


def test_the_pieces_make_one_pod_that_waits_for_its_claim_and_runs_where_it_says(kubectl: Kubectl) -> None:
    made = pod("whole")
    spec, (container,) = made["spec"], made["spec"]["containers"]
    container |= piece("scheduling/fragment-container-resources.yaml") | piece("training/fragment-nccl-env.yaml")
    spec |= piece("scheduling/fragment-nodeselector-h100-8gpu.yaml")
    spec |= piece("training/fragment-checkpoint-volume.yaml")
    spec |= piece("training/fragment-termination-grace.yaml")["spec"]
    kubectl("create", "-f-", given=made)
    until(lambda: why_pending(kubectl) == missing("training-checkpoints-pvc"))
    kubectl("create", "-f-", given=claim("training-checkpoints-pvc"))
    wait(kubectl, "pod/whole", "condition=ready")
    assert machines(kubectl) == {HOPPER}
    kept = kubectl.get("pod", "whole")["spec"]
    assert kept["terminationGracePeriodSeconds"] == 60
    assert kept["containers"][0]["env"] == piece("training/fragment-nccl-env.yaml")["env"]
    assert re.search(r"^NCCL_SOCKET_IFNAME=eth0$", kubectl("exec", "whole", "--", "env"), re.MULTILINE)
