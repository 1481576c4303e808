"""The processes of a distributed job find each other: what their containers have in their environment."""

from __future__ import annotations

import json
from typing import Any

from build.kubectl_runs import Kubectl

Obj = dict[str, Any]


def train(size: int, env: list[Obj]) -> list[Obj]:
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "train"},
        "spec": {"clusterIP": "None", "selector": {"app": "train"}, "ports": [{"port": 29500}]},
    }
    container = {
        "name": "main",
        "image": "pytorch",
        "command": ["sleep", "3600"],
        "env": env,
        "resources": {"limits": {"nvidia.com/gpu": "2"}},
    }
    pod = {"schedulerName": "shoal", "subdomain": "train", "restartPolicy": "Never", "containers": [container]}
    asks = {"labels": {"app": "train"}, "annotations": {"shoal.dev/rendezvous": "true"}}
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "train", "annotations": {"shoal.dev/gang": "true"}},
        "spec": {
            "parallelism": size,
            "completions": size,
            "completionMode": "Indexed",
            "template": {"metadata": asks, "spec": pod},
        },
    }
    return [service, job]


def test_each_of_four_knows_its_rank_and_where_the_first_one_is(kubectl: Kubectl) -> None:
    env = [{"name": "STORE", "value": "tcp://$(MASTER_ADDR):$(MASTER_PORT)"}, {"name": "NODE_RANK", "value": "own"}]
    kubectl("apply", "-f", "-", given=train(4, env))
    kubectl("wait", "--for=jsonpath={.status.ready}=4", "job/train", "--timeout=60s")
    pods = json.loads(kubectl("get", "pods", "-l", "app=train", "-o", "json"))["items"]
    seen = {}
    for pod in pods:
        printed = kubectl("exec", pod["metadata"]["name"], "--", "env").splitlines()
        found = dict(line.split("=", 1) for line in printed)
        seen[found["RANK"]] = (pod, found)
    assert sorted(seen) == ["0", "1", "2", "3"]
    nodes = ",".join(seen[str(rank)][0]["spec"]["nodeName"] for rank in range(4))
    first = f"train-0.train.{kubectl.namespace}.svc"
    for pod, found in seen.values():
        index = pod["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"]
        assert (found["RANK"], found["JOB_COMPLETION_INDEX"]) == (index, index)
        assert (found["WORLD_SIZE"], found["SHOAL_NODES"]) == ("4", nodes)
        assert (found["MASTER_ADDR"], found["MASTER_PORT"]) == (first, "29500")
        assert found["STORE"] == f"tcp://{first}:29500"
        assert found["NODE_RANK"] == "own", "what a container sets itself stays"
        levels = json.loads(found["SHOAL_TOPOLOGY"])
        assert levels["topology.kubernetes.io/zone"]
        assert sorted(rank for ranks in levels["topology.kubernetes.io/zone"].values() for rank in ranks) == [
            0,
            1,
            2,
            3,
        ]
        said = kubectl("exec", pod["metadata"]["name"], "--", "printenv", "RANK", "WORLD_SIZE")
        assert said.split() == [index, "4"]
