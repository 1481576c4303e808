"""Collected queues of Kueue and Volcano: who may use them, what they give, and what they say when they give nothing."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from build.cluster_server import ServerProcess
from build.collected_manifests import COLLECTED, applied, phases, why_pending
from build.kubectl_runs import Kubectl, Obj
from build.living_cluster import conditions, events, job, nodes_of, patch, pod, pods, shoal, until, wait

pytestmark = pytest.mark.skipif(not COLLECTED.exists(), reason="no collected manifests beside this repository")

HOPPER, OTHER_HOPPER = "p5-48xlarge-0", "p5-48xlarge-1"
QUEUE, CLOSED = "research-local", "no namespace may use it"
NVLINK = "gpu.nvidia.com/nvlink-enabled"


@pytest.fixture
def queued(kubectl: Kubectl) -> Iterator[Kubectl]:
    """The collected queue, its flavor, and one node of that flavor."""
    for name in ("clusterqueue-research-queue", "localqueue-research-local", "resourceflavor-h100-nvlink"):
        assert applied(kubectl, f"kueue/{name}.yaml").code == 0
    kubectl("label", "node", OTHER_HOPPER, f"{NVLINK}=false", "--overwrite")
    yield kubectl
    kubectl("delete", "jobs,pytorchjobs", "--all", "--cascade=foreground")
    kubectl("delete", "localqueues", "--all")
    kubectl("delete", "clusterqueues.kueue.x-k8s.io,resourceflavors,workloadpriorityclasses", "--all")
    kubectl("label", "node", OTHER_HOPPER, f"{NVLINK}=true", "--overwrite")


def training(name: str, gpus: int, queue: str = QUEUE, **labels: str) -> Obj:
    made = job(name, {"run-for": "20s"}, gpus=gpus)
    asked = {"cpu": "1", "memory": "1Gi"}
    made["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"] = asked
    if queue:
        made["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": queue, **labels}
    return made


def opened(kubectl: Kubectl) -> None:
    kubectl("patch", "clusterqueue", "research-queue", "--type=merge", "-p", patch({"spec": {"namespaceSelector": {}}}))


def workload(kubectl: Kubectl) -> Obj:
    found: list[Obj] = kubectl.get("workloads")["items"]
    return found[0] if found else {}


def why_waiting(kubectl: Kubectl) -> str:
    found = workload(kubectl)
    return str(conditions(found).get("QuotaReserved", {}).get("message", "")) if found.get("status") else ""


def test_a_queue_without_a_selector_admits_nobody_and_says_so_wherever_one_looks(queued: Kubectl) -> None:
    ran = shoal("queue", "research-queue", kubeconfig=queued.kubeconfig)
    listed = " ".join(ran.out.split())
    assert ran.code == 0, ran.err
    assert "research-queue admits no workloads: it has no namespaceSelector" in listed
    queued("create", "-f-", given=training("train", 1))
    until(lambda: CLOSED in why_waiting(queued))
    assert CLOSED in until(lambda: events(queued, "train").get("Inadmissible", ""))
    assert queued.get("job", "train")["spec"]["suspend"] is True
    told = until(lambda: events(queued.within("default"), "research-queue").get("NoNamespaceSelector", ""))
    assert told.startswith("spec.namespaceSelector: is absent, so no namespace may use the queue")
    for words in (("queue", "research-queue"), ("why", "job/train", "-n", queued.namespace)):
        assert CLOSED in " ".join(shoal(*words, kubeconfig=queued.kubeconfig).out.split())


def test_an_opened_queue_sends_its_pods_to_its_flavor_and_lets_them_go_by_the_label_alone(queued: Kubectl) -> None:
    opened(queued)
    queued("create", "-f-", given=[training("train", 2), training("free", 1, queue="")])
    wait(queued, "job/train job/free", "condition=complete")
    (one,) = pods(queued, "job-name=train")
    wanted = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3", NVLINK: "true"}
    assert (one["spec"]["nodeSelector"], one["spec"]["nodeName"]) == (wanted, HOPPER)
    (free,) = pods(queued, "job-name=free")
    assert "nodeSelector" not in free["spec"]
    assert len(queued.get("workloads")["items"]) == 1
    (usage,) = queued.get("clusterqueue", "research-queue")["status"]["flavorsUsage"]
    assert {one["name"] for one in usage["resources"]} == {"nvidia.com/gpu", "cpu", "memory"}


@pytest.mark.parametrize("name", ["inference-spot", "production-research"])
def test_classes_with_their_value_below_spec_order_the_workloads(queued: Kubectl, name: str) -> None:
    assert applied(queued, f"kueue/workloadpriorityclasses-{name}.yaml").code == 0
    classes = queued.get("workloadpriorityclasses")["items"]
    values = {one["metadata"]["name"]: one["spec"]["value"] for one in classes}
    given = [training(label, 1, **{"kueue.x-k8s.io/priority-class": label}) for label in values]
    queued("create", "-f-", given=given)
    until(lambda: len(queued.get("workloads")["items"]) == len(values))
    found = queued.get("workloads")["items"]
    assert {one["spec"]["priorityClassRef"]["name"]: one["spec"]["priority"] for one in found} == values
    assert sorted(values.values()) == [100, 1000]


def test_sixty_four_gpus_are_more_than_the_queue_could_ever_borrow(queued: Kubectl) -> None:
    opened(queued)
    flavors = [{"name": "h100-nvlink", "resources": [{"name": "nvidia.com/gpu", "nominalQuota": 40}]}]
    groups = [{"coveredResources": ["nvidia.com/gpu"], "flavors": flavors}]
    lender = {"cohort": "shared-gpus", "namespaceSelector": {}, "resourceGroups": groups}
    kind = {"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "ClusterQueue", "metadata": {"name": "lender"}}
    queued("create", "-f-", given={**kind, "spec": lender})
    local = {"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "LocalQueue", "metadata": {"name": "research-queue"}}
    queued("create", "-f-", given={**local, "spec": {"clusterQueue": "research-queue"}})
    assert applied(queued, "training/pytorchjob-llama2.yaml").code == 0
    said = until(lambda: why_waiting(queued))
    assert "(8) + current podset request (56) > maximum capacity (48)" in said
    assert queued.get("pytorchjob", "llama2-training")["spec"]["runPolicy"]["suspend"] is True


def test_a_flavor_whose_nodes_are_tainted_is_warned_of(kubectl: Kubectl, request: pytest.FixtureRequest) -> None:
    kubectl("taint", "node", HOPPER, OTHER_HOPPER, "nvidia.com/gpu=present:NoSchedule")
    try:
        queued = request.getfixturevalue("queued")
        told = until(lambda: events(queued.within("default"), "h100-nvlink").get("TaintedNodes", ""))
    finally:
        kubectl("taint", "node", HOPPER, OTHER_HOPPER, "nvidia.com/gpu-")
    assert "have taints, the first has nvidia.com/gpu=present:NoSchedule" in told


# -- Volcano ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def grouped(kubectl: Kubectl, collected_fleet: ServerProcess) -> Iterator[Kubectl]:
    assert applied(kubectl, "volcano/queue-research.yaml").code == 0
    assert applied(kubectl, "volcano/podgroup-pytorch-distributed.yaml").code == 0
    yield kubectl
    kubectl("delete", "podgroups.scheduling.volcano.sh", "--all")
    kubectl("delete", "queues.scheduling.volcano.sh", "research-queue")


def member(name: str) -> Obj:
    made = pod(name, gpus=1)
    made["metadata"]["annotations"]["scheduling.k8s.io/group-name"] = "pytorch-distributed"
    made["spec"]["containers"][0]["resources"]["requests"] = {"cpu": "8", "memory": "64Gi"}
    return made


def test_a_group_waits_for_its_eighth_member_and_then_runs_as_a_whole(grouped: Kubectl) -> None:
    assert "high-priority" in until(lambda: events(grouped, "pytorch-distributed").get("UnknownPriorityClass", ""))
    grouped("create", "-f-", given=[member(f"worker-{at}") for at in range(7)])
    until(lambda: "the gang needs 8 pods, and only 7 exist" in why_pending(grouped))
    assert phases(grouped) == ["Pending"] * 7
    grouped("create", "-f-", given=member("worker-7"))
    until(lambda: phases(grouped) == ["Running"] * 8)
    assert "" not in nodes_of(pods(grouped))


def test_a_queue_keeps_the_fields_that_volcano_has_and_is_told_of_the_others(grouped: Kubectl) -> None:
    spec = grouped.get("queues.scheduling.volcano.sh", "research-queue")["spec"]
    assert (spec["weight"], spec["capability"]) == (50, {"nvidia.com/gpu": 32, "cpu": 256})
    assert spec["preemptionPolicy"] == "bestFit"
    told = until(lambda: events(grouped.within("default"), "research-queue").get("UnknownField", ""))
    assert "is not a field of Volcano's queues" in told
