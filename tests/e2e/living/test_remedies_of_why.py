"""A new user asks `shoal why` about pods that wait, and does exactly what it says: then they run."""

from __future__ import annotations

import copy
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from build.cluster_server import ServerProcess
from build.kubectl import kubectl_binary
from build.kubectl_runs import PATIENCE_S, Kubectl, Obj
from build.living_cluster import events, job, living, namespaces_in, pod, pods, shoal, until

FLEET = "2xp5.48xlarge,1xdgx-a100-80[mig=all-1g.10gb],1xp4d.24xlarge"
HELP = "would help"
COMMANDS = ("kubectl ", "shoal ")
EDIT = re.compile(r"In job \S+, (?P<path>\S+): (?P<new>\S+) instead of (?P<old>\S+)\.")
"""A change that no command can make: the field, and its new and old value."""
RACK = "example.com/rack"
LEVEL = "kueue.x-k8s.io/podset-required-topology"
GPU = "nvidia.com/gpu"
DEPLOYMENT: Obj = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with living(tmp_path_factory.mktemp("helped"), FLEET, "--memory") as started:
        yield started


@pytest.fixture(scope="module")
def all_namespaces(server: ServerProcess, kubectl_home: Path) -> Iterator[Kubectl]:
    return namespaces_in(Kubectl(server.kubeconfig, kubectl_home))


@pytest.fixture
def kubectl(all_namespaces: Iterator[Kubectl]) -> Iterator[Kubectl]:
    inside = next(all_namespaces)
    yield inside
    inside("delete", "jobs,pods", "--all", "--wait=true")


def help_of(kubectl: Kubectl, name: str) -> list[str]:
    """The lines under `would help`."""
    told = shoal("why", name, "-n", kubectl.namespace, kubeconfig=kubectl.kubeconfig)
    assert told.code == 0, told.err
    lines = told.out.splitlines()
    assert not [line for line in lines if line != line.rstrip()]
    begin = next((at for at, line in enumerate(lines) if line.strip().startswith(HELP)), None)
    assert begin is not None, told.out
    column = lines[begin].index(HELP) + len(HELP) + 2
    found = [lines[begin][column:]]
    for line in lines[begin + 1 :]:
        if line[:column].strip():
            break
        found.append(line[column:])
    return found


def first_commands(lines: list[str]) -> list[str]:
    """Those of the first remedy."""
    found: list[str] = []
    for line in lines:
        if line.startswith(COMMANDS):
            found.append(line)
        elif found:
            break
    return found


def run(kubectl: Kubectl, command: str) -> None:
    """As a user pastes it, with `kubectl` and `shoal` on the path."""
    path = os.pathsep.join([str(Path(kubectl_binary()).parent), str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        ["bash", "-c", command],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        env=kubectl.environment(PATH=path),
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"


def follow(kubectl: Kubectl, name: str) -> list[str]:
    lines = help_of(kubectl, name)
    commands = first_commands(lines)
    assert commands, lines
    for command in commands:
        run(kubectl, command)
    return lines


def waits(kubectl: Kubectl, name: str) -> None:
    """Its scheduler has said that no node takes it."""
    conditions = until(lambda: kubectl.get("pod", name)["status"].get("conditions"))
    assert [one["reason"] for one in conditions if one["type"] == "PodScheduled"] == ["Unschedulable"]


def runs(kubectl: Kubectl, name: str) -> None:
    kubectl("wait", f"pod/{name}", "--for=jsonpath={.status.phase}=Running", f"--timeout={PATIENCE_S - 5}s")


def on(node: str) -> dict[str, str]:
    """As a node selector."""
    return {"kubernetes.io/hostname": node}


def pair(kubectl: Kubectl) -> list[str]:
    """The names of the two pods."""

    def found() -> list[str]:
        names = [str(one["metadata"]["name"]) for one in pods(kubectl)]
        return names if len(names) == 2 else []

    return until(found)


def asks(name: str, resource: str, node: str) -> Obj:
    made = pod(name, nodeSelector=on(node))
    made["spec"]["containers"][0]["resources"] = {"limits": {resource: "1"}}
    return made


def test_a_taint_is_tolerated(kubectl: Kubectl) -> None:
    kubectl("taint", "node", "p4d-24xlarge-0", "dedicated=research:NoSchedule")
    kubectl("create", "-f-", given=pod("tainted", gpus=8, nodeSelector=on("p4d-24xlarge-0")))
    waits(kubectl, "tainted")
    assert "Tolerate dedicated=research:NoSchedule (1 node)." in follow(kubectl, "pod/tainted")
    runs(kubectl, "tainted")


def test_fragments_are_freed(kubectl: Kubectl) -> None:
    notebooks = [pod(f"notebook-{at}", {"run-for": "1h"}, gpus=2, nodeSelector=on("p5-48xlarge-0")) for at in range(2)]
    kubectl("create", "-f-", given=notebooks)
    for at in range(2):
        runs(kubectl, f"notebook-{at}")
    kubectl("create", "-f-", given=pod("whole", gpus=8, nodeSelector=on("p5-48xlarge-0")))
    waits(kubectl, "whole")
    lines = follow(kubectl, "pod/whole")
    assert "Free 4 GPUs on p5-48xlarge-0" in lines[0]
    runs(kubectl, "whole")


def test_a_failed_gpu_is_named_and_repaired(kubectl: Kubectl, server: ServerProcess) -> None:
    assert shoal("cluster", "gpu-fail", "p5-48xlarge-1", "3", kubeconfig=server.kubeconfig).code == 0
    until(lambda: kubectl.get("node", "p5-48xlarge-1")["status"]["allocatable"][GPU] == "7")
    kubectl("create", "-f-", given=pod("eight", gpus=8, nodeSelector=on("p5-48xlarge-1")))
    waits(kubectl, "eight")
    told = shoal("why", "pod/eight", "-n", kubectl.namespace, kubeconfig=kubectl.kubeconfig).out
    assert "node p5-48xlarge-1: 1 of 8 GPUs is unhealthy (GPU 3: XID 79)" in " ".join(told.split())
    follow(kubectl, "pod/eight")
    runs(kubectl, "eight")


def test_the_history_of_a_job_tells_which_pod_a_failed_gpu_ended_and_when_it_started_again(
    kubectl: Kubectl, server: ServerProcess
) -> None:
    made = job("hurt", {"run-for": "1h"}, gpus=8, parallelism=1, completions=1)
    made["spec"]["template"]["spec"]["nodeSelector"] = on("p5-48xlarge-1")
    kubectl("create", "-f-", given=made)
    (first,) = until(lambda: [str(one["metadata"]["name"]) for one in pods(kubectl)])
    runs(kubectl, first)
    assert shoal("cluster", "gpu-fail", "p5-48xlarge-1", "3", kubeconfig=server.kubeconfig).code == 0
    kubectl("wait", f"pod/{first}", "--for=jsonpath={.status.phase}=Failed", f"--timeout={PATIENCE_S - 5}s")
    assert shoal("cluster", "heal", "p5-48xlarge-1", "--gpu", "3", kubeconfig=server.kubeconfig).code == 0
    second = until(lambda: next((n for one in pods(kubectl) if (n := str(one["metadata"]["name"])) != first), ""))
    runs(kubectl, second)
    kubectl("delete", "pod", first, "--wait=true")
    text = shoal("why", "job/hurt", "-n", kubectl.namespace, kubeconfig=kubectl.kubeconfig).out
    history = " ".join(text.partition("history")[2].split())
    events = [f"{first} started", "node p5-48xlarge-1: XidError: NVRM: Xid", "GPU 3 works again", f"{second} started"]
    places = [history.find(each) for each in events]
    assert -1 not in places, history
    assert places == sorted(places), history


def test_an_idle_node_gets_the_mig_layout_that_is_asked_for(kubectl: Kubectl) -> None:
    kubectl("create", "-f-", given=asks("slice", "nvidia.com/mig-3g.40gb", "dgx-a100-80-0"))
    waits(kubectl, "slice")
    follow(kubectl, "pod/slice")
    runs(kubectl, "slice")
    assert kubectl.get("node", "dgx-a100-80-0")["metadata"]["labels"]["nvidia.com/mig.config"] == "all-3g.40gb"


def test_a_misspelled_topology_level_is_corrected(kubectl: Kubectl) -> None:
    kubectl("label", "nodes", "p5-48xlarge-0", "p5-48xlarge-1", f"{RACK}=a", "--overwrite")
    gang = job("train", {"run-for": "1h"}, gpus=8, parallelism=2, completions=2)
    gang["metadata"]["annotations"] = {"shoal.dev/gang": "true"}
    gang["spec"]["template"]["metadata"]["annotations"][LEVEL] = f"{RACK}k"
    kubectl("create", "-f-", given=gang)
    for name in pair(kubectl):
        waits(kubectl, name)
    text = " ".join(help_of(kubectl, "job/train"))
    assert f"No node has a label {RACK}k; did you mean {RACK}?" in text
    change = EDIT.search(text)
    assert change is not None, text
    corrected = copy.deepcopy(gang)
    replace(corrected, change["path"], change["old"], change["new"])
    kubectl("delete", "job", "train", "--wait=true")
    until(lambda: not pods(kubectl))
    kubectl("create", "-f-", given=corrected)
    for name in pair(kubectl):
        runs(kubectl, name)


def replace(obj: Obj, path: str, old: str, new: str) -> None:
    """Sets a field that is written as `spec.template.metadata.annotations["key"]`."""
    *parents, last = [quoted or plain for quoted, plain in re.findall(r'\["([^"]+)"\]|([^.\[\]"]+)', path)]
    for name in parents:
        obj = obj[name]
    assert obj[last] == old
    obj[last] = new


def queued(namespace: str, kubectl: Kubectl, name: str) -> None:
    """A job of eight GPUs in a queue that has four."""
    kubectl("apply", "-f-", given=queue_objects(namespace, "4"))
    made = job(name, {"run-for": "1h"}, gpus=8, parallelism=1, completions=1, suspend=True)
    made["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "user"}
    made["spec"]["template"]["spec"]["nodeSelector"] = on("p5-48xlarge-0")
    kubectl("create", "-f-", given=made)
    until(lambda: kubectl.get("workloads")["items"])


def runs_job(kubectl: Kubectl) -> None:
    found = until(lambda: [one for one in pods(kubectl) if "ownerReferences" in one["metadata"]])
    runs(kubectl, found[0]["metadata"]["name"])


def test_quota_is_raised_where_the_pods_then_run(kubectl: Kubectl) -> None:
    queued(kubectl.namespace, kubectl, "queued")
    assert "from 4 to 8" in " ".join(follow(kubectl, "job/queued"))
    runs_job(kubectl)


def test_quota_and_capacity_are_provided_where_both_are_lacking(kubectl: Kubectl) -> None:
    kubectl("create", "-f-", given=pod("notebook", {"run-for": "1h"}, gpus=2, nodeSelector=on("p5-48xlarge-0")))
    runs(kubectl, "notebook")
    queued(kubectl.namespace, kubectl, "both")
    assert "Two changes are needed." in follow(kubectl, "job/both")[0]
    runs_job(kubectl)


def racked(kubectl: Kubectl, name: str, topology: str) -> None:
    """A queue of this name for the nodes with one rack label; its flavor has this topology."""
    kubectl("label", "nodes", "p5-48xlarge-0", f"{RACK}=a", "--overwrite")
    # Another test gives both nodes one rack.
    kubectl("label", "nodes", "p5-48xlarge-1", f"{RACK}=b", "--overwrite")
    *objects, cluster_queue, local_queue = queue_objects(kubectl.namespace, "16")
    version = cluster_queue["apiVersion"]
    levels = [{"nodeLabel": RACK}, {"nodeLabel": "kubernetes.io/hostname"}]
    racks = {"apiVersion": version, "kind": "Topology", "metadata": {"name": "racks"}, "spec": {"levels": levels}}
    flavor = {**objects[0], "metadata": {"name": name}}
    flavor["spec"] = {"topologyName": topology, "nodeLabels": {RACK: "a"}}
    quota = cluster_queue["spec"]["resourceGroups"][0]["flavors"][0]
    quota["name"] = name
    for queue in (cluster_queue, local_queue):
        queue["metadata"]["name"] = name
    local_queue["spec"]["clusterQueue"] = name
    kubectl("apply", "-f-", given=[racks, flavor, cluster_queue, local_queue])


def queued_at(kubectl: Kubectl, name: str, queue: str, level: str, gpus: int = 1) -> None:
    """A job of two pods that requires a topology level."""
    made = job(name, {"run-for": "1h"}, gpus=gpus, parallelism=2, completions=2, suspend=True)
    made["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": queue}
    made["spec"]["template"]["metadata"]["annotations"][LEVEL] = level
    kubectl("create", "-f-", given=made)
    until(lambda: kubectl.get("workloads")["items"])


def test_a_misspelled_topology_level_of_a_queued_job_is_patched(kubectl: Kubectl) -> None:
    racked(kubectl, "racked", "racks")
    queued_at(kubectl, "levels", "racked", f"{RACK}k")
    assert f"No node has a label {RACK}k;" in " ".join(follow(kubectl, "job/levels"))
    for name in pair(kubectl):
        runs(kubectl, name)


def test_the_flavor_of_a_misspelled_topology_is_replaced(kubectl: Kubectl) -> None:
    racked(kubectl, "misspelled", "rcks")
    queued_at(kubectl, "placed", "misspelled", RACK)
    assert 'did you mean "racks"?' in " ".join(follow(kubectl, "job/placed"))
    for name in pair(kubectl):
        runs(kubectl, name)


def test_pods_that_hold_a_rack_end_for_a_queued_job_that_requires_one(kubectl: Kubectl) -> None:
    racked(kubectl, "held", "racks")
    kubectl("create", "-f-", given=pod("notebook", {"run-for": "1h"}, gpus=2, nodeSelector=on("p5-48xlarge-0")))
    runs(kubectl, "notebook")
    queued_at(kubectl, "whole", "held", RACK, gpus=4)
    lines = help_of(kubectl, "job/whole")
    command = next(line for line in lines if line.startswith("kubectl delete pod notebook"))
    run(kubectl, command)
    for name in pair(kubectl):
        runs(kubectl, name)


def test_a_misspelled_selector_of_a_pod_is_corrected_in_a_copy(kubectl: Kubectl) -> None:
    kubectl("create", "-f-", given=pod("typo", gpus=1, nodeSelector={"kubernetes.io/hostnam": "p5-48xlarge-1"}))
    waits(kubectl, "typo")
    assert "did you mean kubernetes.io/hostname" in " ".join(follow(kubectl, "pod/typo"))
    runs(kubectl, "typo")


def test_a_quota_of_the_namespace_is_raised_for_pods_that_it_refuses(kubectl: Kubectl) -> None:
    kubectl("create", "quota", "gpus", f"--hard=requests.{GPU}=4")
    made = job("refused", {"run-for": "1h"}, gpus=4, parallelism=2, completions=2)
    made["spec"]["template"]["spec"]["nodeSelector"] = on("p5-48xlarge-1")
    kubectl("create", "-f-", given=made)
    until(lambda: "FailedCreate" in events(kubectl, "refused"))
    told = shoal("why", "job/refused", "-n", kubectl.namespace, kubeconfig=kubectl.kubeconfig).out
    figures = "ResourceQuota gpus would be exceeded: 4 of 4 requests.nvidia.com/gpu used, a pod requests 4, 4 missing"
    assert figures in " ".join(told.split())
    follow(kubectl, "job/refused")
    for name in pair(kubectl):
        runs(kubectl, name)


def test_replicas_that_a_quota_refuses_are_counted_and_the_quota_is_raised(kubectl: Kubectl) -> None:
    kubectl("create", "quota", "small", f"--hard=requests.{GPU}=1")
    template = pod("web", gpus=1)
    spec: Obj = {"selector": {"matchLabels": {"app": "web"}}, "replicas": 2}
    spec["template"] = {"metadata": {"labels": {"app": "web"}}, "spec": template["spec"]}
    spec["template"]["spec"].pop("restartPolicy", None)
    kubectl("create", "-f-", given={**copy.deepcopy(DEPLOYMENT), "spec": spec})
    until(lambda: "exceeded quota" in kubectl("get", "events"))
    told = shoal("why", "deployment/web", "-n", kubectl.namespace, kubeconfig=kubectl.kubeconfig).out
    assert "pods: 1 runs, 1 pod not created: ExceededQuota" in " ".join(told.split())
    follow(kubectl, "deployment/web")
    kubectl("wait", "deployment/web", "--for=jsonpath={.status.readyReplicas}=2", f"--timeout={PATIENCE_S}s")
    kubectl("delete", "deployment/web", "quota/small")


def test_a_gang_tells_which_of_its_pods_run(kubectl: Kubectl) -> None:
    gang = job("slow", {"run-for": "1h", "start-delay": "1h"}, gpus=1, parallelism=2, completions=2)
    gang["metadata"]["annotations"] = {"shoal.dev/gang": "true"}
    kubectl("create", "-f-", given=gang)
    until(lambda: [one["spec"].get("nodeName") for one in pods(kubectl)].count(None) == 0 and pair(kubectl))
    told = shoal("why", "gang/slow", "-n", kubectl.namespace, kubeconfig=kubectl.kubeconfig).out
    assert told.startswith(f"gang {kubectl.namespace}/slow starts: 0 of 2 pods run")


def test_a_failed_job_tells_exit_code_policy_and_history(kubectl: Kubectl) -> None:
    rules = {"rules": [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}]}
    made = job("broken", {"run-for": "1ms", "exit-code": "42"}, podFailurePolicy=rules)
    kubectl("create", "-f-", given=made)
    kubectl("wait", "job/broken", "--for=condition=failed", f"--timeout={PATIENCE_S - 5}s")
    text = shoal("why", "job/broken", "-n", kubectl.namespace, kubeconfig=kubectl.kubeconfig).out
    told = " ".join(text.split())
    assert "container main exited with code 42" in told
    assert "PodFailurePolicy: Container main for pod" in told
    assert "history" in told


def queue_objects(namespace: str, gpus: str) -> list[Obj]:
    version = "kueue.x-k8s.io/v1beta2"
    resources = [{"name": GPU, "nominalQuota": gpus}]
    groups = [{"coveredResources": [GPU], "flavors": [{"name": "gpus", "resources": resources}]}]
    return [
        {"apiVersion": version, "kind": "ResourceFlavor", "metadata": {"name": "gpus"}},
        {
            "apiVersion": version,
            "kind": "ClusterQueue",
            "metadata": {"name": "team"},
            "spec": {"namespaceSelector": {}, "resourceGroups": groups},
        },
        {
            "apiVersion": version,
            "kind": "LocalQueue",
            "metadata": {"name": "user", "namespace": namespace},
            "spec": {"clusterQueue": "team"},
        },
    ]
