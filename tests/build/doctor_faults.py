"""Faults of a cluster that `shoal doctor` has to find, each made and undone in a cluster that runs.

A fault belongs to the subject that is asked about. Two faults of one subject can be made at once.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import msgspec

from build.broken_clusters import GPU_NODES, SPACE, TEAM, BrokenCluster
from shoal.client.ecosystem_kinds import (
    CLUSTER_POLICIES,
    CLUSTER_QUEUES,
    LOCAL_QUEUES,
    NODE_POOLS,
    NODE_TOPOLOGIES,
    RESOURCE_FLAVORS,
)
from shoal.client.item import Obj
from shoal.client.kind import CONFIG_MAPS, JOBS, NODES, PODS, RESOURCE_QUOTAS, Kind
from shoal.client.port import Deletion
from shoal.client.refusals import NotFoundError
from shoal.policy.diagnosis.verdicts import SubjectKind

Making = Callable[[BrokenCluster], AbstractAsyncContextManager[None]]
GPU = "nvidia.com/gpu"


class Fault(msgspec.Struct, frozen=True):
    kind: SubjectKind
    name: str
    """Empty for the pod that waits, which is created once all faults are made."""
    causes: tuple[str, ...]
    made: Making
    excludes: str = ""
    """A text that `ruled out` must not contain while the fault is there."""


# -- nodes ------------------------------------------------------------------------------------------------------------


def _spec(nodes: tuple[str, ...], field: str, value: Any, empty: Any) -> Making:
    @asynccontextmanager
    async def made(broken: BrokenCluster) -> AsyncIterator[None]:
        for node in nodes:
            await broken.cluster.patch(NODES, node, {"spec": {field: value}})
        yield
        for node in nodes:
            await broken.cluster.patch(NODES, node, {"spec": {field: empty}})

    return made


def _annotated(nodes: tuple[str, ...], key: str, value: str, *, wait_s: float) -> Making:
    @asynccontextmanager
    async def made(broken: BrokenCluster) -> AsyncIterator[None]:
        for node in nodes:
            await broken.annotate(node, key, value)
        await broken.cluster.pass_time(wait_s)
        yield
        for node in nodes:
            await broken.annotate(node, key, None)

    return made


async def _delete_app(broken: BrokenCluster, app: str, node: str) -> None:
    for pod in await broken.cluster.pods(SPACE):
        if pod["metadata"]["labels"].get("app") == app and pod["spec"].get("nodeName") == node:
            await broken.cluster.delete(PODS, pod["metadata"]["name"], namespace=SPACE)


def _entries(node: str, key: str, entries: dict[str, Any], *, wait_s: float, restarts: str = "") -> Making:
    """Entries of an annotation that is a JSON object, beside those of other faults. `restarts`: the app whose pod is
    deleted, so that it starts with the fault."""

    async def write(broken: BrokenCluster, entries: dict[str, Any]) -> None:
        notes = (await broken.cluster.get(NODES, node))["metadata"].get("annotations") or {}
        found = {**msgspec.json.decode(notes.get(key, "{}")), **entries}
        left = {name: value for name, value in found.items() if value is not None}
        await broken.annotate(node, key, msgspec.json.encode(left).decode() if left else None)

    @asynccontextmanager
    async def made(broken: BrokenCluster) -> AsyncIterator[None]:
        await write(broken, entries)
        if restarts:
            await _delete_app(broken, restarts, node)
        await broken.cluster.pass_time(wait_s)
        yield
        await write(broken, dict.fromkeys(entries))

    return made


def _policy(spec: Obj, undo: Obj, *, wait_s: float = 30) -> Making:
    @asynccontextmanager
    async def made(broken: BrokenCluster) -> AsyncIterator[None]:
        await broken.cluster.patch(CLUSTER_POLICIES, "cluster-policy", {"spec": spec})
        await broken.cluster.pass_time(wait_s)
        yield
        await broken.cluster.patch(CLUSTER_POLICIES, "cluster-policy", {"spec": undo})

    return made


def _labelled(key: str, value: str, undo: str | None, *, wait_s: float = 30) -> Making:
    @asynccontextmanager
    async def made(broken: BrokenCluster) -> AsyncIterator[None]:
        await broken.label("gpu-0", key, value)
        await broken.cluster.pass_time(wait_s)
        yield
        await broken.label("gpu-0", key, undo)

    return made


def _together(*makings: Making) -> Making:
    @asynccontextmanager
    async def made(broken: BrokenCluster) -> AsyncIterator[None]:
        if not makings:
            yield
            return
        async with makings[0](broken), _together(*makings[1:])(broken):
            yield

    return made


# -- objects ----------------------------------------------------------------------------------------------------------


def _objects(*objects: tuple[Kind, Obj], wait_s: float = 30) -> Making:
    """Created in this order, deleted in the other."""

    @asynccontextmanager
    async def made(broken: BrokenCluster) -> AsyncIterator[None]:
        for kind, obj in objects:
            await broken.cluster.create(kind, msgspec.json.decode(msgspec.json.encode(obj)), TEAM)
        await broken.cluster.pass_time(wait_s)
        yield
        for kind, obj in reversed(objects):
            await _gone(broken, kind, obj["metadata"]["name"])

    return made


async def _gone(broken: BrokenCluster, kind: Kind, name: str) -> None:
    try:
        # Nobody ends the pods of a node that is lost.
        grace_s = 0 if kind == PODS else None
        await broken.cluster.delete(kind, name, Deletion(grace_s, policy="Background"), TEAM)
    except NotFoundError:
        return

    async def is_gone() -> bool:
        return name not in {one["metadata"]["name"] for one in await broken.cluster.all(kind)}

    await broken.cluster.until(is_gone, 120)
    await broken.cluster.pass_time(5)


def pod(name: str, gpus: int = 1, on: str = "", notes: dict[str, str] | None = None, **spec: Any) -> Obj:
    limits = {"resources": {"limits": {GPU: str(gpus)}}} if gpus else {}
    annotations = {f"shoal.dev/{key}": value for key, value in {"run-for": "1000h", **(notes or {})}.items()}
    bound = {"nodeName": on} if on else {}
    body = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "trainer", **limits}], **bound, **spec}
    return {"metadata": {"name": name, "annotations": annotations}, "spec": body}


def job(name: str, pods: int = 1, gpus: int = 8, *, queue: str = "", notes: dict[str, str] | None = None) -> Obj:
    template = pod("", gpus, notes=notes)
    template["metadata"].pop("name")
    labels = {"kueue.x-k8s.io/queue-name": queue} if queue else {}
    spec = {"parallelism": pods, "completions": pods, "backoffLimit": 0, "suspend": bool(queue), "template": template}
    return {"metadata": {"name": name, "labels": labels}, "spec": spec}


HOLDERS = _objects(*((PODS, pod(f"holder-{at}", 8, node)) for at, node in enumerate(GPU_NODES)))
HOLDER = _objects((PODS, pod("holder-0", 8, "gpu-0")))


# -- the pod that waits -----------------------------------------------------------------------------------------------


def _asks(gpus: int = 1, **spec: Any) -> Making:
    @asynccontextmanager
    async def made(broken: BrokenCluster) -> AsyncIterator[None]:
        broken.gpus, broken.spec = max(broken.gpus, gpus), {**broken.spec, **spec}
        yield
        broken.gpus, broken.spec = 1, {}

    return made


def pool(name: str = "pool", machine: str = "p5.48xlarge", *, limit: int = 0, taints: list[Obj] | None = None) -> Obj:
    reference = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
    requirements = [{"key": "node.kubernetes.io/instance-type", "operator": "In", "values": [machine]}]
    template = {"spec": {"requirements": requirements, "nodeClassRef": reference, "taints": taints or []}}
    limits = {"limits": {GPU: str(limit)}} if limit else {}
    return {"metadata": {"name": name}, "spec": {"template": template, **limits}}


TAINT = {"key": GPU, "value": "present", "effect": "NoSchedule"}
FAILS = '{"kind": "fail", "id": "1"}'
WAITING: dict[str, Fault] = {
    "taints": Fault("pod", "", ("TaintNotTolerated",), _spec(GPU_NODES, "taints", [TAINT], []), "taints do not keep"),
    "cordons": Fault(
        "pod", "", ("NodesCordoned",), _spec(GPU_NODES, "unschedulable", True, None), "not all nodes with"
    ),
    "a selector": Fault(
        "pod",
        "",
        ("SelectorMatchesNoNode",),
        _asks(nodeSelector={"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"}),
        "the node selector and the affinity allow",
    ),
    "size": Fault("pod", "", ("RequestLargerThanNodes",), _asks(gpus=9), "is large enough"),
    "lost nodes": Fault(
        "pod", "", ("NodesNotReady",), _annotated(GPU_NODES, "shoal.dev/fault", FAILS, wait_s=90), "are ready"
    ),
    "no device plugin": Fault(
        "pod",
        "",
        ("GpusNotAdvertised", "PluginNotInstalled", "PluginNotInstalled"),
        _policy({"devicePlugin": {"enabled": False}}, {"devicePlugin": None}),
        "advertise",
    ),
    "full nodes": Fault("pod", "", ("GpusInUse",), HOLDERS, "has the free"),
    "full nodes and a limit of the pool": Fault(
        "pod",
        "",
        ("GpusInUse", "AutoscalerLimitReached"),
        _together(HOLDERS, _objects((NODE_POOLS, pool(limit=4)))),
        "no Event of an autoscaler",
    ),
    "full nodes and a tainted pool": Fault(
        "pod",
        "",
        ("GpusInUse", "PoolTaintNotTolerated"),
        _together(HOLDERS, _objects((NODE_POOLS, pool(taints=[TAINT])))),
        "no Event of an autoscaler",
    ),
    "full nodes and a pool without GPUs": Fault(
        "pod",
        "",
        ("GpusInUse", "NoMatchingPool"),
        _together(HOLDERS, _objects((NODE_POOLS, pool(machine="m5.4xlarge")))),
        "no Event of an autoscaler",
    ),
    "full nodes and a cloud without capacity": Fault(
        "pod",
        "",
        ("GpusInUse", "NoCloudCapacity"),
        _together(HOLDERS, _objects((NODE_POOLS, pool(machine="p4d.24xlarge")))),
        "no Event of an autoscaler",
    ),
}

# -- the GPU stack of a node ------------------------------------------------------------------------------------------

_PART = "shoal.dev/component-faults"


def _part(component: str, kind: str, app: str = "") -> Making:
    return _entries("gpu-0", _PART, {component: kind}, wait_s=90, restarts=app)


def _gpus(faults: dict[str, int]) -> Making:
    return _entries("gpu-0", "shoal.dev/gpu-faults", faults, wait_s=60)


SHARING = "version: v1\nsharing:\n  timeSlicing:\n    resources:\n    - {name: nvidia.com/gpu, replicas: 4}\n"
BROKEN_SHARING = "version: v1\nsharing:\n  timeSlicing: {}\n"


def _sharing(text: str = SHARING) -> Making:
    config = {"metadata": {"name": "sharing", "namespace": SPACE}, "data": {"any": text}}

    @asynccontextmanager
    async def made(broken: BrokenCluster) -> AsyncIterator[None]:
        await broken.cluster.create(CONFIG_MAPS, msgspec.json.decode(msgspec.json.encode(config)))
        yield
        await broken.cluster.delete(CONFIG_MAPS, "sharing", namespace=SPACE)

    return made


def _plugin(**config: str) -> Making:
    return _policy({"devicePlugin": {"config": config}}, {"devicePlugin": None}, wait_s=60)


@asynccontextmanager
async def _without_driver(broken: BrokenCluster) -> AsyncIterator[None]:
    async with _policy({"driver": {"enabled": False}}, {"driver": None})(broken):
        await _delete_app(broken, "nvidia-container-toolkit-daemonset", "gpu-0")
        await broken.cluster.pass_time(30)
        yield


NODE: dict[str, Fault] = {
    "the driver fails": Fault("node", "gpu-0", ("DriverNotReady",), _part("driver", "error"), "the pod of the driver"),
    "the image of the driver is missing": Fault(
        "node",
        "gpu-0",
        ("DriverNotReady",),
        _part("driver", "image-pull", "nvidia-driver-daemonset"),
        "the pod of the driver",
    ),
    "the toolkit fails": Fault(
        "node", "gpu-0", ("ToolkitNotReady",), _part("toolkit", "error"), "the container toolkit is ready"
    ),
    "the plugin fails": Fault(
        "node", "gpu-0", ("PluginNotReady",), _part("device-plugin", "error"), "the device plugin is ready"
    ),
    "the image of the plugin is missing": Fault(
        "node",
        "gpu-0",
        ("PluginNotReady",),
        _part("device-plugin", "image-pull", "nvidia-device-plugin-daemonset"),
        "the device plugin is ready",
    ),
    "no driver is installed": Fault(
        "node",
        "gpu-0",
        ("DriverMissing",),
        _without_driver,
        "advertises",
    ),
    "the plugin is paused": Fault(
        "node",
        "gpu-0",
        ("PluginPaused",),
        _labelled("nvidia.com/gpu.deploy.device-plugin", "false", "true"),
        "advertises",
    ),
    "a GPU fell off the bus": Fault("node", "gpu-0", ("Xid79",), _gpus({"0": 79}), "error of a GPU"),
    "all GPUs fell off the bus": Fault(
        "node", "gpu-0", ("Xid79",), _gpus({str(at): 79 for at in range(8)}), "error of a GPU"
    ),
    "double bit errors": Fault("node", "gpu-0", ("Xid48",), _gpus({"1": 48}), "error of a GPU"),
    "an error of a program": Fault("node", "gpu-0", ("Xid31",), _gpus({"1": 31}), "error of a GPU"),
    "the node is lost": Fault(
        "node",
        "gpu-0",
        ("NodeNotReady",),
        _annotated(("gpu-0",), "shoal.dev/fault", FAILS, wait_s=90),
        "the node is ready",
    ),
    "a layout on a GPU in use": Fault(
        "node",
        "gpu-0",
        ("MigGpuInUse",),
        _together(HOLDER, _labelled("nvidia.com/mig.config", "all-1g.10gb", "all-disabled")),
        "is applied",
    ),
    "an unknown layout": Fault(
        "node",
        "gpu-0",
        ("UnknownMigLayout",),
        _labelled("nvidia.com/mig.config", "all-1g.12gb", "all-disabled"),
        "is applied",
    ),
    "a configuration that no policy names": Fault("node", "gpu-0", ("PluginConfigNotNamed",), _sharing(), "as the"),
    "a policy without a default": Fault(
        "node",
        "gpu-0",
        ("NoPluginConfigSelected",),
        _together(_sharing(), _plugin(name="sharing")),
        "as the configuration",
    ),
    "an unknown key of the configuration": Fault(
        "node",
        "gpu-0",
        ("UnknownPluginConfig",),
        _together(_sharing(), _plugin(name="sharing"), _labelled("nvidia.com/device-plugin.config", "tesla", None)),
        "as the configuration",
    ),
    "a configuration that the plugin refuses": Fault(
        "node",
        "gpu-0",
        ("PluginConfigInvalid",),
        _together(_sharing(BROKEN_SHARING), _plugin(name="sharing", default="any")),
        "as the configuration",
    ),
}

# -- pods and jobs ----------------------------------------------------------------------------------------------------

NCCL = "[rank0]: torch.distributed.DistBackendError: NCCL error: ncclRemoteError: remote process exited\n"
BUS = "RuntimeError: DataLoader worker (pid 77) is killed by signal: Bus error. It is possible that dataloader's\n"


def _runs(name: str, gpus: int = 1, **notes: str) -> Making:
    written = {key.replace("_", "-"): value for key, value in notes.items()}
    return _objects((PODS, pod(name, gpus, "gpu-1", written)), wait_s=60)


ENDED: dict[str, Fault] = {
    "too little GPU memory": Fault(
        "pod", "team/oom", ("CudaOutOfMemory",), _runs("oom", gpu_memory="200Gi"), "left a known message"
    ),
    "too little shared memory": Fault(
        "pod",
        "team/bus",
        ("SharedMemoryTooSmall",),
        _runs("bus", run_for="2s", exit_code="135", log=BUS),
        "left a known message",
    ),
    "a rank that ended": Fault(
        "pod",
        "team/nccl",
        ("NcclPeerUnreachable",),
        _runs("nccl", run_for="2s", exit_code="1", log=NCCL),
        "left a known message",
    ),
}

# -- queues -----------------------------------------------------------------------------------------------------------

FLAVOR: Obj = {"metadata": {"name": "h100"}, "spec": {}}


def queue(quota: int = 16, resource: str = GPU, flavor: str = "h100", **spec: Any) -> Obj:
    flavors = [{"name": flavor, "resources": [{"name": resource, "nominalQuota": quota}]}]
    groups = [{"coveredResources": [resource], "flavors": flavors}]
    return {"metadata": {"name": "shared"}, "spec": {"namespaceSelector": {}, "resourceGroups": groups, **spec}}


def local(of: str = "shared", **spec: Any) -> Obj:
    return {"metadata": {"name": "gpus"}, "spec": {"clusterQueue": of, **spec}}


def _queued(cluster_queue: Obj | None, local_queue: Obj | None, *flavors: Obj, first: tuple[Obj, ...] = ()) -> Making:
    objects: list[tuple[Kind, Obj]] = [(RESOURCE_FLAVORS, one) for one in flavors]
    objects += [(CLUSTER_QUEUES, cluster_queue)] if cluster_queue else []
    objects += [(LOCAL_QUEUES, local_queue)] if local_queue else []
    return _objects(*objects, *((JOBS, one) for one in (*first, job("queued", queue="gpus"))))


QUEUED: dict[str, Fault] = {
    "no LocalQueue": Fault("job", "team/queued", ("LocalQueueMissing",), _queued(queue(), None, FLAVOR), "exists"),
    "no ClusterQueue": Fault(
        "job", "team/queued", ("ClusterQueueMissing",), _queued(queue(), local("shard"), FLAVOR), "selects"
    ),
    "a namespace that is not selected": Fault(
        "job",
        "team/queued",
        ("NamespaceNotSelected",),
        _queued(queue(namespaceSelector={"matchLabels": {"gpus": "yes"}}), local(), FLAVOR),
        "selects",
    ),
    "a quota that is too small": Fault(
        "job", "team/queued", ("RequestExceedsQuota",), _queued(queue(4), local(), FLAVOR), "suffices"
    ),
    "a quota in use": Fault(
        "job",
        "team/queued",
        ("QuotaInUse",),
        _queued(queue(8), local(), FLAVOR, first=(job("first", queue="gpus"),)),
        "suffices",
    ),
    "no flavor": Fault("job", "team/queued", ("FlavorMissing",), _queued(queue(), local()), "admitted"),
    "a flavor without nodes": Fault(
        "job",
        "team/queued",
        ("SelectorMatchesNoNode",),
        _queued(queue(), local(), {"metadata": {"name": "h100"}, "spec": {"nodeLabels": {"gpu": "b300"}}}),
        "affinity allow",
    ),
    "a queue that is stopped": Fault(
        "job", "team/queued", ("QueueStopped",), _queued(queue(stopPolicy="Hold"), local(), FLAVOR), "admitted"
    ),
    "a resource that is not covered": Fault(
        "job", "team/queued", ("ResourceNotCovered",), _queued(queue(resource="cpu"), local(), FLAVOR), "suffices"
    ),
}

# -- jobs -------------------------------------------------------------------------------------------------------------

QUOTA: Obj = {"metadata": {"name": "gpus"}, "spec": {"hard": {f"requests.{GPU}": "4"}}}


@asynccontextmanager
async def _lost_with_node(broken: BrokenCluster) -> AsyncIterator[None]:
    async with _objects((PODS, pod("holder-1", 8, "gpu-1")), (JOBS, job("train")))(broken):
        await broken.cluster.pass_time(30)
        async with _annotated(("gpu-0",), "shoal.dev/fault", FAILS, wait_s=600)(broken):
            pass
        await broken.whole()
        yield


@asynccontextmanager
async def _on_a_lost_node(broken: BrokenCluster) -> AsyncIterator[None]:
    async with _objects((PODS, pod("holder-1", 8, "gpu-1")), (JOBS, job("train")))(broken):
        await broken.cluster.pass_time(30)
        async with _annotated(("gpu-0",), "shoal.dev/fault", FAILS, wait_s=120)(broken):
            yield


JOBS_: dict[str, Fault] = {
    "a part of a gang": Fault(
        "job",
        "team/train",
        ("PartialGang", "GpusInUse"),
        _objects((PODS, pod("holder-0", 8, "gpu-0")), (JOBS, job("train", 2, 8))),
        "of its 2 pods have a node",
    ),
    "a quota of the namespace": Fault(
        "job",
        "team/train",
        ("PodsRefused",),
        _objects((RESOURCE_QUOTAS, QUOTA), (JOBS, job("train", 1, 8))),
        "are refused",
    ),
    "a node that is lost": Fault("job", "team/train", ("NodeNotReady",), _on_a_lost_node, "the node is ready"),
    "a node that was lost": Fault("job", "team/train", ("JobLostWithNode",), _lost_with_node, "goes on"),
    "a program that fails": Fault(
        "job",
        "team/train",
        ("JobFailed",),
        _objects((JOBS, job("train", notes={"run-for": "2s", "exit-code": "1"})), wait_s=60),
        "goes on",
    ),
}


def _topology(zones: dict[str, int], policy: str) -> Making:
    written = [
        {
            "name": name,
            "type": "Node",
            "resources": [{"name": GPU, "capacity": count, "allocatable": count, "available": count}],
        }
        for name, count in zones.items()
    ]
    topology = {"metadata": {"name": "gpu-0"}, "topologyPolicies": [policy], "zones": written}
    return _objects((NODE_TOPOLOGIES, topology), (PODS, pod("wide", 8, "gpu-0")))


PLACED: dict[str, Fault] = {
    "GPUs of several sockets": Fault(
        "pod",
        "team/wide",
        ("GpusAcrossSockets",),
        _topology({"node-0": 4, "node-1": 4}, "SingleNUMANodePodLevel"),
        "on one NUMA node",
    ),
    "devices that are not aligned": Fault(
        "pod", "team/wide", ("DevicesNotAligned",), _topology({"node-0": 8}, "None"), "on one NUMA node"
    ),
}
CLOSED = queue(4, namespaceSelector={"matchLabels": {"gpus": "yes"}})
ALONE = {**WAITING, **NODE, **ENDED, **QUEUED, **JOBS_, **PLACED}
SLOW = frozenset(
    {
        "lost nodes",
        "the image of the driver is missing",
        "an unknown key of the configuration",
        "a node that was lost",
    }
)
"""Faults whose repair takes long, beside others of their kind."""


def _both(one: Fault, other: Fault, *causes: str) -> Fault:
    """`causes`: in the order in which they are reported."""
    return Fault(one.kind, one.name, causes, _together(one.made, other.made))


TWO: dict[str, Fault] = {
    "taints and a selector": _both(
        WAITING["taints"], WAITING["a selector"], "TaintNotTolerated", "SelectorMatchesNoNode"
    ),
    "full nodes that are cordoned": _both(WAITING["full nodes"], WAITING["cordons"], "NodesCordoned", "GpusInUse"),
    "full nodes that the pod would not use": _both(
        WAITING["full nodes"], WAITING["a selector"], "SelectorMatchesNoNode"
    ),
    "full nodes that are too small": _both(WAITING["full nodes"], WAITING["size"], "RequestLargerThanNodes"),
    "cordoned nodes without a device plugin": _both(
        WAITING["cordons"],
        WAITING["no device plugin"],
        "GpusNotAdvertised",
        "NodesCordoned",
        "PluginNotInstalled",
        "PluginNotInstalled",
    ),
    "a broken GPU and an unknown layout": _both(
        NODE["an unknown layout"], NODE["a GPU fell off the bus"], "Xid79", "UnknownMigLayout"
    ),
    "a failing plugin and an error of a program": _both(
        NODE["an error of a program"], NODE["the plugin fails"], "PluginNotReady", "Xid31"
    ),
    "a failing driver under a paused plugin": _both(
        NODE["the driver fails"], NODE["the plugin is paused"], "DriverNotReady"
    ),
    "a closed queue with a small quota": Fault(
        "job", "team/queued", ("NamespaceNotSelected", "RequestExceedsQuota"), _queued(CLOSED, local(), FLAVOR)
    ),
    "a lost node whose GPU had an error": _both(
        NODE["an error of a program"], NODE["the node is lost"], "NodeNotReady", "Xid31"
    ),
}
