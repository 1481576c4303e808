"""What keeps pods waiting, and what shares GPUs among them, in small: the cases that people ask about first."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from build.collected_manifests import claim, phases, why_pending
from build.kubectl_runs import Kubectl, Obj
from build.living_cluster import ended, events, job, living, nodes_of, pod, pods, rolled_out, until, wait

SHARED, CUT, WHOLE = "workstation-2x-rtx4090-0", "p4d-24xlarge-0", "p5-48xlarge-0"
FLEET = "1xworkstation-2x-rtx4090[time-slicing=4],1xp4d.24xlarge[mig=all-1g.5gb],1xp5.48xlarge"


@pytest.fixture(scope="module")
def kubectl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    with living(tmp_path_factory.mktemp("limits"), FLEET, "--memory") as server:
        inside = Kubectl(server.kubeconfig, server.folder)
        wait(inside, "serviceaccount/default", "create")
        yield inside


def deployment(name: str, replicas: int, node: str, **resources: str) -> Obj:
    labels = {"app": name}
    container = {"name": "server", "image": "server:1", "resources": {"limits": resources}}
    spec = {"nodeSelector": {"kubernetes.io/hostname": node}, "containers": [container]}
    template = {"metadata": {"labels": labels}, "spec": spec}
    whole = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": whole}


def devices(kubectl: Kubectl, found: list[Obj]) -> list[str]:
    """The last line that each pod's `nvidia-smi -L` says."""
    return [kubectl("exec", one["metadata"]["name"], "--", "nvidia-smi", "-L").splitlines()[-1] for one in found]


def test_eight_pods_take_turns_on_two_gpus(kubectl: Kubectl) -> None:
    kubectl("create", "-f-", given=deployment("chat", 9, SHARED, **{"nvidia.com/gpu": "1"}))
    until(lambda: phases(kubectl, "app=chat") == ["Pending"] + ["Running"] * 8)
    running = [one for one in pods(kubectl, "app=chat") if one["status"]["phase"] == "Running"]
    seen = {line.partition("UUID: ")[2] for line in devices(kubectl, running)}
    assert (nodes_of(running), len(seen)) == ({SHARED}, 2)


def test_each_pod_has_a_slice_for_itself(kubectl: Kubectl) -> None:
    kubectl("create", "-f-", given=deployment("embed", 3, CUT, **{"nvidia.com/mig-1g.5gb": "1"}))
    rolled_out(kubectl, "deployment/embed")
    seen = devices(kubectl, pods(kubectl, "app=embed"))
    assert all(line.split()[:2] == ["MIG", "1g.5gb"] for line in seen)
    assert len({line.partition("UUID: ")[2] for line in seen}) == 3


def test_a_job_beyond_its_quota_gets_the_rest_when_some_has_ended(kubectl: Kubectl) -> None:
    kubectl("create", "namespace", "team-ml")
    team = kubectl.within("team-ml")
    team("create", "quota", "gpus", "--hard=requests.nvidia.com/gpu=4")
    until(lambda: "hard" in team.get("quota", "gpus")["status"])
    given = job("train", {"run-for": "1h"}, gpus=2, completions=3, parallelism=3)
    given["spec"]["template"]["spec"]["nodeSelector"] = {"kubernetes.io/hostname": WHOLE}
    team("create", "-f-", given=given)
    told = until(lambda: events(team, "train").get("FailedCreate", ""))
    assert "exceeded quota: gpus, requested: requests.nvidia.com/gpu=2, used: requests.nvidia.com/gpu=4, " in told
    until(lambda: ended(team, "train"))


def test_a_pod_waits_for_a_claim_that_is_not_there_and_goes_on_when_it_is(kubectl: Kubectl) -> None:
    waiting = pod("images", volumes=[{"name": "models", "persistentVolumeClaim": {"claimName": "models"}}])
    waiting["metadata"]["labels"] = {"app": "images"}
    kubectl("create", "-f-", given=waiting)
    missing = '0/3 nodes are available: persistentvolumeclaim "models" not found'
    until(lambda: why_pending(kubectl, "app=images") == missing)
    kubectl("create", "-f-", given=claim("models"))
    wait(kubectl, "pod/images", "condition=ready")
    assert kubectl.get("pvc", "models")["status"]["phase"] == "Bound"


def test_a_claim_of_a_class_that_is_not_there_waits_and_says_so(kubectl: Kubectl) -> None:
    kubectl("create", "-f-", given=claim("fast", "fast-ssd"))
    told = until(lambda: events(kubectl, "fast").get("ProvisioningFailed", ""))
    assert told == 'storageclass.storage.k8s.io "fast-ssd" not found'
    assert kubectl.get("pvc", "fast")["status"]["phase"] == "Pending"


def test_what_cannot_be_allocated_fails_in_the_kubelets_words(kubectl: Kubectl) -> None:
    """Whoever names the node himself passes the scheduler by."""
    kubectl("create", "-f-", given=pod("greedy", gpus=16, nodeName=WHOLE))
    wait(kubectl, "pod/greedy", "jsonpath={.status.phase}=Failed")
    status = kubectl.get("pod", "greedy")["status"]
    words = "Allocate failed due to requested number of devices unavailable for nvidia.com/gpu. Requested: 16, "
    assert status["reason"] == "UnexpectedAdmissionError"
    # Pods of another test may still hold some.
    assert re.fullmatch(rf"Pod was rejected: {words}Available: [0-8], which is unexpected", status["message"])


def test_a_deployment_beyond_the_fleet_says_how_far_it_got(kubectl: Kubectl) -> None:
    kubectl("create", "-f-", given=deployment("wide", 3, WHOLE, **{"nvidia.com/gpu": "4"}))
    until(lambda: phases(kubectl, "app=wide") == ["Pending", "Running", "Running"])
    said = "0/3 nodes are available: 1 Insufficient nvidia.com/gpu, 2 node(s) didn't match Pod's node affinity/selector"
    until(lambda: why_pending(kubectl, "app=wide") == said)
    kubectl("delete", "deployment", "wide")
