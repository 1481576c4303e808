"""Faults asked for by `shoal cluster ...`, on a cluster whose minutes are seconds: how each of them ends."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from time import monotonic

import pytest

from build.kubectl_runs import PATIENCE_S, Kubectl, Obj
from build.living_cluster import (
    WITHIN,
    ended,
    events,
    indexes,
    job,
    living,
    nodes_of,
    pod,
    pods,
    restarts,
    rolled_out,
    shoal,
    uids,
    until,
    wait,
)

NODES = ("p5-48xlarge-0", "p5-48xlarge-1", "p5-48xlarge-2")
FIRST = NODES[0]
READY, UNKNOWN = "condition=Ready", "condition=Ready=Unknown"


def told(kubectl: Kubectl, *arguments: str) -> str:
    done = shoal("cluster", *arguments, kubeconfig=kubectl.kubeconfig)
    assert done.code == 0, done.err
    return done.out.strip()


@pytest.fixture
def faulty(fast: Kubectl) -> Iterator[Kubectl]:
    """The fast cluster, whole again afterwards."""
    yield fast
    fast("annotate", "node", "--all", "shoal.dev/fault-", "shoal.dev/gpu-faults-")
    wait(fast, " ".join(f"node/{node}" for node in NODES), READY)


def on_first(kubectl: Kubectl, made: Obj) -> None:
    """Its pods are on the first node, and may go to any when they are made again."""
    kubectl("cordon", *NODES[1:])
    kubectl("create", "-f-", given=made)
    until(lambda: len(pods(kubectl)) >= 2)
    wait(kubectl, "pod --all", READY)
    kubectl("uncordon", *NODES[1:])
    assert nodes_of(pods(kubectl)) == {FIRST}


SOON, LATE = 60, 7200
"""Seconds of the cluster until pods on a node that is not heard of are given up."""


def given_up(pod_spec: Obj, after_s: int) -> None:
    unheard = {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute"}
    pod_spec["tolerations"] = [{**unheard, "tolerationSeconds": after_s}]


def deployment(after_s: int) -> Obj:
    labels = {"app": "web"}
    pod_spec: Obj = {"containers": [{"name": "web", "image": "nginx:1"}]}
    given_up(pod_spec, after_s)
    template = {"metadata": {"labels": labels}, "spec": pod_spec}
    spec = {"replicas": 2, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}


def everyone(kubectl: Kubectl) -> dict[str, str]:
    """Those that are being deleted, too."""
    return uids(kubectl.get("pods")["items"])


def test_a_failed_node_loses_its_pods_to_others_and_comes_back_empty(faulty: Kubectl) -> None:
    on_first(faulty, deployment(SOON))
    before = everyone(faulty)
    assert told(faulty, "fail", FIRST).startswith(f"node {FIRST} has failed; ")
    wait(faulty, f"node/{FIRST}", UNKNOWN)
    assert "NodeStatusUnknown" in faulty("describe", "node", FIRST)
    # Nobody knows whether they still run, so they stay until the node says so.
    until(lambda: not pods(faulty, "app=web") or not before.keys() & uids(pods(faulty)).keys())
    rolled_out(faulty, "deployment/web")
    assert before.keys() <= everyone(faulty).keys()
    assert told(faulty, "heal", FIRST) == f"node {FIRST} is healed"
    wait(faulty, f"node/{FIRST}", READY)
    until(lambda: not before.keys() & everyone(faulty).keys())
    assert (len(everyone(faulty)), FIRST in nodes_of(pods(faulty))) == (2, False)


def test_a_node_that_is_back_before_its_pods_are_given_up_starts_them_again(faulty: Kubectl) -> None:
    on_first(faulty, deployment(LATE))
    before = everyone(faulty)
    told(faulty, "fail", FIRST)
    wait(faulty, f"node/{FIRST}", UNKNOWN)
    told(faulty, "heal", FIRST)
    wait(faulty, f"node/{FIRST}", READY)
    wait(faulty, "pod --all", READY)
    rolled_out(faulty, "deployment/web")
    assert (everyone(faulty), restarts(pods(faulty))) == (before, 2)


def test_what_runs_on_a_node_that_is_cut_off_for_a_while_runs_on_untouched(faulty: Kubectl) -> None:
    on_first(faulty, deployment(LATE))
    before = everyone(faulty)
    assert told(faulty, "partition", FIRST).startswith(f"node {FIRST} is cut off; ")
    wait(faulty, f"node/{FIRST}", UNKNOWN)
    told(faulty, "heal", FIRST)
    wait(faulty, f"node/{FIRST}", READY)
    wait(faulty, "pod --all", READY)
    assert (everyone(faulty), restarts(pods(faulty))) == (before, 0)


def test_a_job_cut_off_for_long_completes_each_index_once(faulty: Kubectl) -> None:
    spec: Obj = {"completions": 4, "parallelism": 4, "completionMode": "Indexed"}
    made = job("train", {"run-for": "1000h"}, gpus=1, **spec)
    given_up(made["spec"]["template"]["spec"], SOON)
    on_first(faulty, made)
    before = everyone(faulty)
    told(faulty, "partition", FIRST)

    def is_replaced() -> bool:
        present = pods(faulty)
        return indexes(present) == [0, 1, 2, 3] and not before.keys() & uids(present).keys()

    until(is_replaced)
    assert before.keys() <= everyone(faulty).keys()
    told(faulty, "heal", FIRST)
    until(lambda: not before.keys() & everyone(faulty).keys())
    until(lambda: ended(faulty, "train"))
    status = faulty.get("job", "train")["status"]
    assert (status["completedIndexes"], status["succeeded"]) == ("0-3", 4)
    assert (indexes(pods(faulty)), restarts(pods(faulty))) == ([0, 1, 2, 3], 0)
    assert {one["status"]["phase"] for one in pods(faulty)} == {"Succeeded"}


def test_a_rebooted_node_comes_back_by_itself(faulty: Kubectl) -> None:
    on_first(faulty, deployment(LATE))
    boot = faulty.get("node", FIRST)["status"]["nodeInfo"]["bootID"]
    assert told(faulty, "reboot", FIRST) == f"node {FIRST} reboots"
    until(lambda: faulty.get("node", FIRST)["status"]["nodeInfo"]["bootID"] != boot)
    until(lambda: "shoal.dev/fault" not in faulty.get("node", FIRST)["metadata"]["annotations"])
    wait(faulty, f"node/{FIRST}", READY)
    wait(faulty, "pod --all", READY)
    assert (len(pods(faulty)), restarts(pods(faulty))) == (2, 2)


def pods_in(kubectl: Kubectl, phase: str) -> list[Obj]:
    return [one for one in pods(kubectl) if one["status"]["phase"] == phase]


def gpus(kubectl: Kubectl, node: str) -> str:
    return str(kubectl.get("node", node)["status"]["allocatable"]["nvidia.com/gpu"])


def test_a_broken_gpu_ends_what_runs_on_it_and_is_not_offered(faulty: Kubectl) -> None:
    on_first(faulty, job("train", {"run-for": "100h"}, gpus=4, parallelism=2, completions=2))
    said = told(faulty, "gpu-fail", FIRST, "3", "--xid", "79")
    assert said == (f"GPU 3 of node {FIRST} reports XID 79; `shoal cluster heal {FIRST} --gpu 3` repairs it")
    until(lambda: gpus(faulty, FIRST) == "7")
    until(lambda: "79, GPU has fallen off the bus" in events(faulty.within("default"), FIRST).get("XidError", ""))
    wait(faulty, "job/train", "jsonpath={.status.failed}=1")
    running = until(lambda: found if len(found := pods_in(faulty, "Running")) == 2 else [])
    assert len(nodes_of(running)) == 2
    assert "GPU" in pods_in(faulty, "Failed")[0]["status"].get("message", "GPU")
    assert told(faulty, "heal", FIRST, "--gpu", "3") == f"GPU 3 of node {FIRST} is healed"
    until(lambda: gpus(faulty, FIRST) == "8")
    assert told(faulty, "heal", FIRST, "--gpu", "3") == f"GPU 3 of node {FIRST} had no fault"


def test_a_server_is_slow_for_as_long_as_it_was_told(fast: Kubectl) -> None:
    assert told(fast, "slow-api", "--delay-ms", "400", "--seconds", "600") == "answers come 400 ms later for 600 s"
    started = monotonic()
    fast("get", "--raw", "/api/v1/namespaces/default")
    slow_s = monotonic() - started
    assert told(fast, "slow-api", "--delay-ms", "0") == "answers come at once"
    assert slow_s > 0.4
    fast("create", "-f-", given=pod("afterwards"))
    wait(fast, "pod/afterwards", READY)


def test_whoever_watches_goes_on_after_all_watches_have_expired(fast: Kubectl) -> None:
    fast("create", "deployment", "web", "--image=nginx:1", "--replicas=2")
    rolled_out(fast, "deployment/web")
    fast("rollout", "pause", "deployment/web")
    fast("set", "image", "deployment/web", "nginx=nginx:2")
    command = fast.command("rollout", "status", "deployment/web", WITHIN)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=fast.environment()) as waiting:
        assert waiting.stdout is not None
        assert waiting.stdout.readline().startswith("Waiting for deployment")
        assert told(fast, "expire-watches") == "every watch has expired"
        fast("rollout", "resume", "deployment/web")
        *_, last = waiting.stdout.read().splitlines()
        assert (waiting.wait(PATIENCE_S), last) == (0, 'deployment "web" successfully rolled out')


def test_a_node_that_does_not_exist_is_one_line_with_the_nearest_names(fast: Kubectl) -> None:
    refused = shoal("cluster", "reboot", "p5-48xlarge-9", kubeconfig=fast.kubeconfig)
    named, line = refused.err.splitlines()
    assert (refused.code, refused.out) == (2, "")
    assert named.startswith("cluster: shoal (https://127.0.0.1:")
    assert line.startswith('shoal: node "p5-48xlarge-9" not found; the nearest: p5-48xlarge-')
    refused = shoal("cluster", "gpu-fail", FIRST, "8", kubeconfig=fast.kubeconfig)
    assert refused.code == 2
    assert refused.err.splitlines()[1] == f"shoal: node {FIRST} has no GPU 8; its GPUs are 0 to 7"


def test_a_fault_that_nobody_can_read_is_an_event_on_its_node(fast: Kubectl) -> None:
    fast("annotate", "node", FIRST, f"shoal.dev/fault={json.dumps({'kind': 'explode'})}")
    wanted = "fail, partition, reboot, spot-interrupt"
    until(lambda: wanted in events(fast.within("default"), FIRST).get("InvalidAnnotation", ""))
    fast("annotate", "node", FIRST, "shoal.dev/fault-")
    wait(fast, f"node/{FIRST}", READY)


def test_a_spot_node_goes_after_its_notice_and_its_pods_go_elsewhere(tmp_path: Path, kubectl_home: Path) -> None:
    with living(tmp_path, "1xg5.12xlarge[spot],1xp5.48xlarge", "--memory", "--speed", "60") as server:
        kubectl = Kubectl(server.kubeconfig, kubectl_home)
        kubectl("cordon", FIRST)
        kubectl("create", "deployment", "web", "--image=nginx:1", "--replicas=2")
        rolled_out(kubectl, "deployment/web")
        kubectl("uncordon", FIRST)
        spot = "g5-12xlarge-0"
        assert nodes_of(pods(kubectl)) == {spot}
        assert told(kubectl, "spot-interrupt", spot).startswith(f"node {spot} has its notice: after two minutes")
        until(lambda: "Spot ITN received" in events(kubectl, spot).get("SpotInterruption", ""))
        wait(kubectl, f"node/{spot}", "delete")
        # Its pods have ended with it, and are forgotten a little later.
        until(lambda: nodes_of(kubectl.get("pods")["items"]) == {FIRST})
        rolled_out(kubectl, "deployment/web")
        assert len(pods(kubectl)) == 2


def taints(kubectl: Kubectl, node: str) -> set[str]:
    return {one["key"] for one in kubectl.get("node", node)["spec"].get("taints", ())}


def test_a_notice_leaves_other_taints_alone_and_goes_when_it_is_taken_back(kubectl: Kubectl) -> None:
    """At life's pace: two minutes are long enough."""
    node, notice = NODES[1], "aws-node-termination-handler/spot-itn"
    kubectl("taint", "node", node, "team=vision:NoSchedule")
    told(kubectl, "spot-interrupt", node)
    until(lambda: {"team", notice} <= taints(kubectl, node))
    until(lambda: kubectl.get("node", node)["spec"].get("unschedulable"))
    assert told(kubectl, "heal", node) == f"node {node} is healed"
    until(lambda: taints(kubectl, node) == {"team"})
    until(lambda: "unschedulable" not in kubectl.get("node", node)["spec"])
    kubectl("taint", "node", node, "team-")
