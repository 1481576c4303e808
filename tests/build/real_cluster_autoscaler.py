"""Runs a Cluster Autoscaler that was built with its provider of simulated nodes (`-tags kwok`) on one scenario.

The API server needs no controllers and no scheduler: nodes are Ready when they are created, pods are marked as
unschedulable here, and the autoscaler itself leaves out pods for which a node has room.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import yaml

from build.cluster_api import Api
from build.literal_cluster_autoscaler import Group, Outcome, Pods, Scenario
from build.server_processes import free_port

Raw = dict[str, Any]
_NAMESPACE = "default"
_GROUP, _MANAGED = "cluster-autoscaler.kwok.nodegroup/name", "kwok.x-k8s.io/node"
_QUIET_LOOPS, _QUIET_LOOPS_WITH_GPUS = 6, 36
"""So many rounds without a new node end a scenario. Pods younger than 2 s are left alone, pods with GPUs for 30 s."""
_LOOPS = re.compile(r'^cluster_autoscaler_function_duration_seconds_count\{function="main"\} (\d+)', re.MULTILINE)
_PLAN = re.compile(r"Final scale-up plan: \[(.*)\]")
_GROWTH = re.compile(r"\{(\S+) (\d+)->(\d+) \(max: \d+\)\}")


async def real_outcome(
    api: Api, kubeconfig: str, binary: str, scenario: Scenario, folder: Path
) -> tuple[Outcome, Outcome]:
    """The sizes of the groups after the first decision, and when nothing grows any more."""
    await _clear(api)
    await _create(api, scenario)
    start = {group.name: group.size for group in scenario.groups}
    log = folder / "autoscaler.log"
    async with _autoscaler(kubeconfig, binary, scenario, log) as port:
        await _until_quiet(
            api, port, _QUIET_LOOPS_WITH_GPUS if any(each.gpus for each in scenario.pods) else _QUIET_LOOPS
        )
    sizes = dict.fromkeys(start, 0)
    for node in (await api.get("/api/v1/nodes")).ok()["items"]:
        sizes[node["metadata"]["annotations"][_GROUP]] += 1
    plans = _PLAN.findall(log.read_text())
    first = start | {name: int(after) for name, _, after in _GROWTH.findall(plans[0] if plans else "")}
    await _clear(api)
    return frozenset(first.items()), frozenset(sizes.items())


@asynccontextmanager
async def _autoscaler(kubeconfig: str, binary: str, scenario: Scenario, log: Path) -> AsyncIterator[int]:
    port = free_port()
    arguments = [
        "--cloud-provider=kwok",
        f"--kubeconfig={kubeconfig}",
        f"--namespace={_NAMESPACE}",
        "--scan-interval=1s",
        "--leader-elect=false",
        # A round right after another does not see the nodes of the first, and the provider takes its sizes from nodes.
        "--frequent-loops-enabled=false",
        "--scale-down-enabled=false",
        f"--expander={','.join(scenario.expanders)}",
        f"--balance-similar-node-groups={str(scenario.balances).lower()}",
        # The label by which the provider knows the group.
        "--balancing-ignore-label=group",
        f"--max-nodes-total={scenario.most_nodes}",
        f"--address=127.0.0.1:{port}",
        "--logtostderr=true",
        "--v=2",
    ]
    environment = {"KUBECONFIG": kubeconfig, "POD_NAMESPACE": _NAMESPACE, "KWOK_PROVIDER_MODE": "local"}
    with log.open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            binary, *arguments, env=environment, stderr=output, stdout=output
        )
        try:
            yield port
        finally:
            process.kill()
            await process.wait()


async def _until_quiet(api: Api, port: int, quiet: int) -> None:
    """Until the autoscaler has looked several times and added nothing."""
    last, since, loops = -1, 0, 0
    async with asyncio.timeout(120), aiohttp.ClientSession() as session:
        while loops - since < quiet:
            await asyncio.sleep(0.2)
            nodes = len((await api.get("/api/v1/nodes")).ok()["items"])
            loops = await _loops(session, port)
            if nodes != last or not loops:
                last, since = nodes, loops


async def _loops(session: aiohttp.ClientSession, port: int) -> int:
    try:
        async with session.get(f"http://127.0.0.1:{port}/metrics") as answer:
            found = _LOOPS.search(await answer.text())
    except aiohttp.ClientError:
        return 0
    return int(found.group(1)) if found else 0


async def _clear(api: Api) -> None:
    for plural in ("pods", "configmaps"):
        path = f"/api/v1/namespaces/{_NAMESPACE}/{plural}"
        await api.delete(path, {"gracePeriodSeconds": 0}, labelSelector="scenario=yes")
    await api.delete("/api/v1/nodes", labelSelector="scenario=yes")


async def _create(api: Api, scenario: Scenario) -> None:
    templates = [_node(group, group.name, {}) for group in scenario.groups]
    config = {
        "apiVersion": "v1alpha1",
        "readNodesFrom": "configmap",
        "nodegroups": {"fromNodeLabelKey": "group"},
        "nodes": {"skipTaint": True},
        "configmap": {"name": "kwok-provider-templates"},
    }
    listed = {"apiVersion": "v1", "kind": "List", "items": templates}
    await _config_map(api, "kwok-provider-config", "config", yaml.safe_dump(config))
    await _config_map(api, "kwok-provider-templates", "templates", yaml.safe_dump(listed))
    if scenario.priorities is not None:
        await _config_map(api, "cluster-autoscaler-priority-expander", "priorities", scenario.priorities)
    for group in scenario.groups:
        for number in range(group.size):
            name = f"{group.name}-{number}"
            (await api.post("/api/v1/nodes", _node(group, name, {_GROUP: group.name, _MANAGED: "fake"}))).ok()
    for kind in scenario.pods:
        for number in range(kind.count):
            await _waiting_pod(api, kind, number)


async def _config_map(api: Api, name: str, key: str, text: str) -> None:
    body = {"metadata": {"name": name, "labels": {"scenario": "yes"}}, "data": {key: text}}
    (await api.post(f"/api/v1/namespaces/{_NAMESPACE}/configmaps", body)).ok()


def _node(group: Group, name: str, annotations: dict[str, str]) -> Raw:
    amounts = {"cpu": f"{group.cpu_milli}m", "memory": f"{group.memory_mib}Mi", "pods": "110"}
    if group.gpus:
        amounts["nvidia.com/gpu"] = str(group.gpus)
    labels = {"scenario": "yes", "group": group.name, "kubernetes.io/hostname": name, **(group.labels or {})}
    bounds = {
        "cluster-autoscaler.kwok.nodegroup/min-count": "0",
        "cluster-autoscaler.kwok.nodegroup/max-count": str(group.most),
    }
    taints = [{"key": group.taint, "effect": "NoSchedule"}] if group.taint else []
    ready = {
        "type": "Ready",
        "status": "True",
        "reason": "KubeletReady",
        "lastHeartbeatTime": "2026-01-01T00:00:00Z",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels, "annotations": {**bounds, **annotations}},
        "spec": {"providerID": f"kwok:{name}", "taints": taints},
        "status": {
            "capacity": amounts,
            "allocatable": {**amounts, "cpu": f"{group.allocatable_milli}m"},
            "conditions": [ready],
        },
    }


async def _waiting_pod(api: Api, kind: Pods, number: int) -> None:
    requests = {"cpu": f"{kind.cpu_milli}m", "memory": f"{kind.memory_mib}Mi"}
    limits = {"nvidia.com/gpu": str(kind.gpus)} if kind.gpus else {}
    container: Raw = {
        "name": "main",
        "image": "none",
        "resources": {"requests": {**requests, **limits}, "limits": limits},
    }
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": kind.name, "uid": kind.name, "controller": True}
    metadata = {
        "name": f"{kind.name}-{number}",
        "labels": {"scenario": "yes", "app": kind.name},
        "ownerReferences": [owner],
    }
    spec: Raw = {"containers": [container], "nodeSelector": dict(kind.selector or {})}
    if kind.tolerates:
        spec["tolerations"] = [{"key": kind.tolerates, "operator": "Exists"}]
    if kind.apart:
        # Nodes that the provider creates have one host name, so an affinity for host names would not do.
        container["ports"] = [{"containerPort": 9000, "hostPort": 9000}]
    path = f"/api/v1/namespaces/{_NAMESPACE}/pods"
    (await api.post(path, {"metadata": metadata, "spec": spec})).ok()
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    status = {"status": {"phase": "Pending", "conditions": [condition]}}
    (await api.patch(f"{path}/{kind.name}-{number}/status", status)).ok()
