"""How long `shoal doctor` takes to the cause in a cluster of 1,000 nodes: `python -m bench.doctor [--nodes 1000]`.

A server of its own has 1,000 nodes with 8 GPUs, the pods of a GPU operator on each, pods of jobs, pods that wait, and
Events. Three things are wrong: the plugin of one node, an error of a GPU of another, and a request that no node can
satisfy. Prints the wall time of the whole command, from its start to its answer, and its processor time.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from bench.cluster.figures import Figure, table
from build.cluster_server import ServerProcess
from shoal.client.ecosystem_kinds import CLUSTER_QUEUES, LOCAL_QUEUES, RESOURCE_FLAVORS, WORKLOADS
from shoal.client.http.api import KubeApi
from shoal.client.http.kubeconfig import read_kubeconfig
from shoal.client.http.settings import KubeSettings
from shoal.client.kind import EVENTS, JOBS, NAMESPACES, NODES, PODS, Kind
from shoal.client.port import Patch
from shoal.wiring.foreign_kinds import provide_foreign

Obj = dict[str, Any]
BAR_S = 3.0
_AT_ONCE, _TRIES, _PAUSE_S = 64, 3, 0.2
_GPU = "nvidia.com/gpu"
_APPS = (
    "nvidia-driver-daemonset",
    "nvidia-container-toolkit-daemonset",
    "nvidia-device-plugin-daemonset",
    "gpu-feature-discovery",
)
_EXPECTED = {"PluginConfigInvalid", "Xid79", "RequestLargerThanNodes", "QuotaInUse"}
_QUEUE_KINDS = {RESOURCE_FLAVORS, CLUSTER_QUEUES, LOCAL_QUEUES}
_LABELS = {f"{_GPU}.present": "true", f"{_GPU}.product": "NVIDIA-H100-80GB-HBM3"}


def objects(nodes: int) -> Iterator[tuple[Kind, Obj]]:
    for at in range(nodes):
        yield NODES, _node(at, is_silent=at == 1)
        for app in _APPS:
            fails = at == 1 and "plugin" in app
            yield PODS, _pod(f"{app}-{at}", 0, f"n{at}", {"app": app}, fails=fails, namespace="gpu-operator")
        yield PODS, _pod(f"train-{at}", 8, f"n{at}")
        yield PODS, _pod(f"wait-{at}", 16, "")
        yield EVENTS, _event(f"wait-{at}", "Pod", "FailedScheduling", "0 nodes are available", "default")
    yield from _queued(nodes)
    yield EVENTS, _event("n2", "Node", "XidError", "NVRM: Xid (PCI:0000:53:00): 79, GPU has fallen off the bus", "")


def _queued(count: int) -> Iterator[tuple[Kind, Obj]]:
    """Jobs, half of which are admitted."""
    quotas = [{"name": "gpus", "resources": [{"name": _GPU, "nominalQuota": count * 4}]}]
    groups = [{"coveredResources": [_GPU], "flavors": quotas}]
    yield RESOURCE_FLAVORS, {"metadata": {"name": "gpus"}, "spec": {}}
    spec = {"namespaceSelector": {}, "resourceGroups": groups}
    yield CLUSTER_QUEUES, {"metadata": {"name": "gpus"}, "spec": spec}
    yield LOCAL_QUEUES, {"metadata": {"name": "gpus", "namespace": "default"}, "spec": {"clusterQueue": "gpus"}}
    container = {"name": "main", "image": "x", "resources": {"requests": {_GPU: "8"}, "limits": {_GPU: "8"}}}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    sets = [{"name": "main", "count": 1, "template": template}]
    for at in range(count):
        meta = {"name": f"job-{at}", "namespace": "default", "labels": {"kueue.x-k8s.io/queue-name": "gpus"}}
        yield JOBS, {"metadata": meta, "spec": {"suspend": at % 2 == 0, "template": template}}
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": f"job-{at}", "uid": f"u-{at}"}
        own = {"name": f"job-{at}", "namespace": "default", "ownerReferences": [owner]}
        status: Obj = {"conditions": [_condition("QuotaReserved", "False")]}
        if at % 2:
            usage = [{"name": "main", "resourceUsage": {_GPU: "8"}, "count": 1}]
            admission = {"clusterQueue": "gpus", "podSetAssignments": usage}
            status = {
                "conditions": [_condition("QuotaReserved", "True"), _condition("Admitted", "True")],
                "admission": admission,
            }
        yield WORKLOADS, {"metadata": own, "spec": {"queueName": "gpus", "podSets": sets}, "status": status}


def _condition(kind: str, status: str) -> Obj:
    return {"type": kind, "status": status, "reason": "x", "message": "", "lastTransitionTime": "2026-11-27T12:00:00Z"}


def _node(at: int, *, is_silent: bool) -> Obj:
    amounts = {"cpu": "192", "memory": "2Ti", "pods": "110", _GPU: "0" if is_silent else "8"}
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": ""}
    status = {"capacity": amounts, "allocatable": amounts, "conditions": [ready]}
    return {"metadata": {"name": f"n{at}", "labels": {**_LABELS, "zone": f"z{at % 4}"}}, "status": status}


def _pod(
    name: str,
    gpus: int,
    node: str,
    labels: dict[str, str] | None = None,
    *,
    fails: bool = False,
    namespace: str = "default",
) -> Obj:
    limits = {"resources": {"limits": {_GPU: str(gpus)}}} if gpus else {}
    waits = {"waiting": {"reason": "CrashLoopBackOff", "message": "unable to load config: unknown field"}}
    state = waits if fails else {"running": {}}
    container = {"name": "main", "ready": not fails, "restartCount": 0, "image": "x", "imageID": "", "state": state}
    phase: Obj = {"phase": "Running", "containerStatuses": [container]} if node else {"phase": "Pending"}
    meta = {"name": name, "namespace": namespace, "labels": labels or {}}
    bound = {"nodeName": node} if node else {}
    spec = {"schedulerName": "none", "containers": [{"name": "main", "image": "x", **limits}], **bound}
    return {"metadata": meta, "spec": spec, "status": phase}


def _event(name: str, kind: str, reason: str, message: str, namespace: str) -> Obj:
    meta = {"name": f"{name}.{reason.lower()}", "namespace": "default"}
    about = {"kind": kind, "name": name, "namespace": namespace}
    when = "2026-11-27T12:00:00Z"
    return {
        "metadata": meta,
        "involvedObject": about,
        "reason": reason,
        "message": message,
        "firstTimestamp": when,
        "lastTimestamp": when,
        "count": 1,
        "type": "Warning",
    }


async def _filled(kubeconfig: Path, nodes: int) -> int:
    api = KubeApi(read_kubeconfig([kubeconfig]), random.Random(1), KubeSettings())
    made = list(objects(nodes))
    turns = asyncio.Semaphore(_AT_ONCE)

    async def create(kind: Kind, obj: Obj) -> None:
        async with turns:
            item = await api.create(kind, obj)
            if "status" in obj:
                await api.patch(kind, item.namespace, item.name, Patch("merge", {"status": obj["status"]}), "status")

    try:
        await api.create(NAMESPACES, {"metadata": {"name": "gpu-operator"}})
        await provide_foreign(api)
        while WORKLOADS not in {one.kind for one in await api.served()}:  # noqa: ASYNC110 - another process serves it
            await asyncio.sleep(_PAUSE_S)
        for kinds in ({RESOURCE_FLAVORS}, {CLUSTER_QUEUES, LOCAL_QUEUES}, {kind for kind, _ in made} - _QUEUE_KINDS):
            await asyncio.gather(*(create(kind, obj) for kind, obj in made if kind in kinds))
    finally:
        await api.close()
    return len(made)


def _asked(kubeconfig: Path, *subject: str) -> tuple[float, float, set[str]]:
    """Wall time, processor time, and the causes."""
    command = [sys.executable, "-m", "shoal", "doctor", *subject, "--kubeconfig", str(kubeconfig), "-o", "json"]
    begun, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    wall, after = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in (0, 1):
        raise RuntimeError(done.stderr)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall, used, {cause["id"] for cause in json.loads(done.stdout)["causes"]}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=1000)
    nodes = parser.parse_args(arguments).nodes
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 160)
    console.print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} before")
    figures = []
    with tempfile.TemporaryDirectory(prefix="shoal-bench-") as name:
        server = ServerProcess(Path(name), "--memory")
        try:
            count = asyncio.run(_filled(server.kubeconfig, nodes))
            for title, subject, expected in (
                ("the cluster", (), _EXPECTED),
                ("a node", ("node", "n1"), {"PluginConfigInvalid"}),
                ("a pod that waits", ("pod", "wait-1"), {"RequestLargerThanNodes"}),
            ):
                runs = [_asked(server.kubeconfig, *subject) for _ in range(_TRIES)]
                wrong = [found for _, _, found in runs if found != expected]
                if wrong:
                    raise RuntimeError(f"{title}: {wrong[0]} instead of {expected}")
                wall, used = min(run[0] for run in runs), min(run[1] for run in runs)
                beside = f"{used:.2f} s of processor time; {count:,} objects"
                figures.append(Figure(f"doctor, {title}, {nodes:,} nodes", wall, " s", most=BAR_S, beside=beside))
        finally:
            server.stop()
    console.print(table(figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
