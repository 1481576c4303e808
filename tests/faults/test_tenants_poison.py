"""What a tenant may write into his own namespace to harm others: marks that are Shoal's own, amounts beyond any
machine, circles, words in the places of names, Workloads and groups written by hand.

Each test throws many at one cluster in which all of Shoal works. On one that fails, `SHOAL_POISON=7` tries the seventh
alone.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from build.live_schedulers import add_node, is_bound, start_scheduler
from build.poisoned_clusters import EVIL, GOOD, PoisonedScene, poisoned_cluster
from build.queue_admission import add_flavor, add_queue, queued_cluster, start_admission, start_pods, submit, until_so
from build.small_clusters import small_cluster
from build.virtual_time import in_virtual_time, virtual
from shoal.client.ecosystem_kinds import (
    JOB_SETS,
    KAI_POD_GROUPS,
    LEADER_WORKER_SETS,
    LIGHT_POD_GROUPS,
    PYTORCH_JOBS,
    RAY_CLUSTERS,
    RAY_JOBS,
    SPARK_APPLICATIONS,
    TRAIN_JOBS,
    VOLCANO_JOBS,
    VOLCANO_POD_GROUPS,
    WORKLOADS,
)
from shoal.client.item import Obj
from shoal.client.kind import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    DISRUPTION_BUDGETS,
    JOBS,
    PODS,
    REPLICA_SETS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    STATEFUL_SETS,
    VOLUME_CLAIMS,
    Kind,
)

GPU = "nvidia.com/gpu"
QUEUE = "kueue.x-k8s.io/queue-name"
_ENDLESS = 2**63 - 1
_MANY = 2**31 - 1
_ALL = {"main": {GPU: [f"GPU-{node}-{at}" for node in range(2) for at in range(4)]}}
_BRIEF = {"shoal.dev/run-for": "1s"}
Poison = tuple[Kind, Obj]


def _pod(*, annotations: Obj | None = None, labels: Obj | None = None, requests: Obj | None = None, **spec: Any) -> Obj:
    container = {"name": "main", "image": "pause", "resources": {"requests": requests or {}, "limits": requests or {}}}
    meta = {"annotations": {**_BRIEF, **(annotations or {})}, "labels": labels or {}}
    usual = {"schedulerName": "shoal", "restartPolicy": "Never"}
    return {"metadata": meta, "spec": {**usual, "containers": [container], **spec}}


def _template(**more: Any) -> Obj:
    made = _pod(**more)
    del made["spec"]["schedulerName"]
    return made


# -- marks that are Shoal's own --------------------------------------------------------------------------------------

_TEXTS: Sequence[str] = (
    "", "-1", "9" * 400, "1e999", "nan", "x" * 50_000, "[" * 20_000, "../good/queued", "p#main#0", '{"main":[]}',
    '{"main":{"nvidia.com/gpu":5}}', json.dumps(_ALL), "0,1,2,3", "1023:63",
)  # fmt: skip
_MARKS = (
    "shoal.dev/devices", "shoal.dev/gang", "shoal.dev/rank", "shoal.dev/preemptible", "shoal.dev/checkpoint-every",
    "shoal.dev/expected-duration", "shoal.dev/rendezvous", "shoal.dev/progress", "kueue.x-k8s.io/workload",
    "kueue.x-k8s.io/pod-group-total-count", "kueue.x-k8s.io/podset-required-topology",
    "kueue.x-k8s.io/podset-slice-size", "kueue.x-k8s.io/podset-slice-required-topology",
    "scheduling.k8s.io/group-name", "pod-group-name", "gpu-fraction", "gpu-memory", "gpu-fraction-num-devices",
    "kai.scheduler/topology", "kai.scheduler/topology-required-placement", "hami.io/vgpu-devices-allocated",
    "scheduling.volcano.sh/queue-name", "volcano.sh/task-spec", "batch.kubernetes.io/job-completion-index",
)  # fmt: skip
_LABELS = (
    "kueue.x-k8s.io/podset", "kueue.x-k8s.io/pod-group-name", "scheduling.x-k8s.io/pod-group", "kai.scheduler/queue",
    "runai-gpu-group", "kueue.x-k8s.io/managed", "jobset.sigs.k8s.io/jobset-name", "batch.kubernetes.io/job-name",
    "kueue.x-k8s.io/job-uid", "ray.io/cluster", "leaderworkerset.sigs.k8s.io/name", "kueue.x-k8s.io/queue-name",
)  # fmt: skip


def _marked() -> Iterator[Poison]:
    for text in _TEXTS:
        for first in range(0, len(_MARKS), 6):
            yield PODS, _pod(annotations=dict.fromkeys(_MARKS[first : first + 6], text))
    for label in _LABELS:
        for value in ("", "queued", "x" * 63, "0"):
            yield PODS, _pod(labels={label: value})
    yield PODS, _pod(annotations=dict.fromkeys(_MARKS, "1"), labels=dict.fromkeys(_LABELS, "q"))
    yield PODS, _pod(annotations={"shoal.dev/devices": json.dumps(_ALL)}, nodeName="node-0")
    yield PODS, _pod(annotations={"shoal.dev/devices": "0,1,2,3"}, nodeName="node-1")
    yield PODS, _pod(labels={"runai-gpu-group": "shared", "runai-gpu-group/a": "b"}, nodeName="node-1")
    yield PODS, _pod(annotations={"hami.io/vgpu-devices-allocated": "GPU-0-0,NVIDIA,9,9:;" * 999}, nodeName="node-1")
    for kind in _MAKERS:
        for text in _TEXTS[1::4]:
            obj = _maker(kind)
            obj["metadata"] = {"annotations": dict.fromkeys(_MARKS, text), "labels": {QUEUE: "q"}}
            yield kind, obj


# -- amounts beyond any machine --------------------------------------------------------------------------------------


def _maker(kind: Kind, count: int = 1, **more: Any) -> Obj:
    """Whoever makes pods."""
    template = _template(**more)
    labels = {"matchLabels": {"app": "x"}}
    template["metadata"]["labels"] = {"app": "x"}
    roles = {"replicas": count, "template": template}
    always = {**template, "spec": {**template["spec"], "restartPolicy": "Always"}}
    group = {"groupName": "w", "replicas": count, "minReplicas": 0, "maxReplicas": _MANY, "rayStartParams": {}}
    ray = {
        "headGroupSpec": {"template": template, "rayStartParams": {}},
        "workerGroupSpecs": [{**group, "template": template}],
    }
    specs: dict[str, Obj] = {
        "jobs.batch": {"parallelism": count, "completions": count, "suspend": True, "template": template},
        "deployments.apps": {"replicas": count, "selector": labels, "template": always},
        "statefulsets.apps": {"replicas": count, "selector": labels, "template": always, "serviceName": "s"},
        "jobs.batch.volcano.sh": {"minAvailable": count, "queue": EVIL, "tasks": [{"name": "w", **roles}]},
        "jobsets.jobset.x-k8s.io": {
            "suspend": True,
            "replicatedJobs": [
                {"name": "w", "replicas": count, "template": {"spec": {"parallelism": count, "template": template}}}
            ],
        },
        "pytorchjobs.kubeflow.org": {"runPolicy": {"suspend": True}, "pytorchReplicaSpecs": {"Worker": roles}},
        "rayclusters.ray.io": {"suspend": True, **ray},
        "rayjobs.ray.io": {"suspend": True, "entrypoint": "x", "rayClusterSpec": ray},
        "leaderworkersets.leaderworkerset.x-k8s.io": {
            "replicas": count,
            "leaderWorkerTemplate": {"size": count, "workerTemplate": always},
        },
    }
    return {"metadata": {"labels": {QUEUE: "q"}}, "spec": specs[f"{kind.plural}.{kind.group}"]}


_MAKERS = (
    JOBS, DEPLOYMENTS, STATEFUL_SETS, VOLCANO_JOBS, JOB_SETS, PYTORCH_JOBS, RAY_CLUSTERS, RAY_JOBS, LEADER_WORKER_SETS
)  # fmt: skip
_AMOUNTS: Sequence[Obj] = (
    {"cpu": str(_ENDLESS), "memory": str(_ENDLESS)},
    {"cpu": "9223372036854775", "memory": "9Ei"},
    {GPU: str(_ENDLESS)},
    {GPU: "1000000000"},
    {"cpu": "1n", "memory": "1"},
    {"memory": "0.001"},
    {"cpu": "1e30"},
    {"ephemeral-storage": "9Ei", "hugepages-2Mi": "8Ei"},
    {"nvidia.com/mig-9g.999gb": "1"},
    {"nvidia.com/mig-" + "1g." * 90: "1"},
    {"example.com/" + "x" * 63: str(_ENDLESS)},
    {"nvidia.com/gpu.shared": str(_ENDLESS)},
)


def _absurd() -> Iterator[Poison]:
    for at, requests in enumerate(_AMOUNTS):
        yield PODS, _pod(requests=requests)
        twice = _pod(requests=requests)
        twice["spec"]["containers"] += [{**twice["spec"]["containers"][0], "name": f"c{at}"} for at in range(3)]
        twice["spec"]["initContainers"] = [{**twice["spec"]["containers"][0], "name": "i", "restartPolicy": "Always"}]
        twice["spec"]["overhead"] = requests
        yield PODS, twice
        for kind in _MAKERS[at % 3 :: 3]:
            # These are made as they are wanted, up to a bound of their own.
            count = 3 if kind in (VOLCANO_JOBS, LEADER_WORKER_SETS) else _MANY
            yield kind, _maker(kind, count, requests=requests)
    for kind in _MAKERS:
        yield kind, _maker(kind, 0)
        yield kind, _maker(kind, -1)
    wild = {"maxSkew": _MANY, "topologyKey": "x", "whenUnsatisfiable": "DoNotSchedule", "minDomains": _MANY}
    yield PODS, _pod(topologySpreadConstraints=[{**wild, "labelSelector": {}}])
    term = {"weight": 100, "podAffinityTerm": {"topologyKey": "x", "labelSelector": {}}}
    terms = {"preferredDuringSchedulingIgnoredDuringExecution": [term] * 2000}
    yield PODS, _pod(affinity={"podAffinity": terms, "podAntiAffinity": terms})
    yield PODS, _pod(tolerations=[{"key": f"k{at}", "operator": "Exists"} for at in range(5000)])
    yield PODS, _pod(nodeSelector={f"k{at}": "v" for at in range(5000)})
    values = {"key": "x", "operator": "NotIn", "values": [f"v{at}" for at in range(20_000)]}
    more = {"key": "kubernetes.io/hostname", "operator": "Gt", "values": ["9" * 400]}
    required = {"nodeSelectorTerms": [{"matchExpressions": [values, more]}]}
    yield PODS, _pod(affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}})
    yield PODS, _pod(priority=_MANY)
    yield PODS, _pod(terminationGracePeriodSeconds=_ENDLESS)
    yield DISRUPTION_BUDGETS, {"spec": {"minAvailable": "100%", "selector": {}}}
    yield DISRUPTION_BUDGETS, {"spec": {"maxUnavailable": 0, "selector": {}}}
    spark = {"type": "Scala", "sparkVersion": "3", "mainApplicationFile": "x"}
    for said in ({"instances": _MANY, "cores": _MANY, "memory": "9e99g"}, {"instances": -1, "memory": "x" * 9999}):
        yield (
            SPARK_APPLICATIONS,
            {"metadata": {"labels": {QUEUE: "q"}}, "spec": {**spark, "driver": said, "executor": said}},
        )
    yield TRAIN_JOBS, {"metadata": {"labels": {QUEUE: "q"}}, "spec": {"runtimeRef": {"name": "x"}, "suspend": True}}
    exactly = {"deviceClassName": "x", "count": _MANY}
    selectors = [{"cel": {"expression": "device.attributes['x'].y == 'z' || " * 40 + "true"}}]
    for one in (exactly, {**exactly, "selectors": selectors}, {"deviceClassName": "y" * 63, "allocationMode": "All"}):
        spec = {"devices": {"requests": [{"name": f"r{at}", "exactly": one} for at in range(32)]}}
        yield RESOURCE_CLAIMS, {"spec": spec}
        yield RESOURCE_CLAIM_TEMPLATES, {"metadata": {"name": "t"}, "spec": {"spec": spec}}
    asked = [{"name": "a", "resourceClaimTemplateName": "t"}, {"name": "b", "resourceClaimName": "nobodys"}]
    yield PODS, _pod(resourceClaims=asked)
    storage = {"resources": {"requests": {"storage": "9Ei"}}, "accessModes": ["ReadWriteOnce"], "storageClassName": ""}
    yield VOLUME_CLAIMS, {"metadata": {"name": "v"}, "spec": {**storage, "volumeName": "n" * 200}}
    yield PODS, _pod(volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "v"}}])


# -- circles, and objects that others make ---------------------------------------------------------------------------


def _workload(name: str, *sets: Obj, **more: Any) -> Poison:
    usual: Obj = {"name": "main", "count": 1, "template": _template(requests={"cpu": "1"})}
    spec = {"queueName": "q", "podSets": [usual | one for one in sets or ({},)], **more.pop("spec", {})}
    return WORKLOADS, {"metadata": {"name": name, **more.pop("meta", {})}, "spec": spec, **more}


def _forged(good: Obj) -> Iterator[Poison]:
    """`good`: a job of others, in its own namespace."""
    uid = good["metadata"]["uid"]
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "first", "uid": uid, "controller": True}
    conditions = [
        {"type": name, "status": "True", "reason": "x", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}
        for name in ("QuotaReserved", "Admitted", "PodsReady")
    ]
    usage = [{"name": "main", "flavors": {"cpu": "default"}, "resourceUsage": {"cpu": "16"}, "count": 1}]
    status = {"admission": {"clusterQueue": GOOD, "podSetAssignments": usage}, "conditions": conditions}
    yield _workload("admits-itself", status=status)
    yield _workload("of-the-others-queue", spec={"queueName": "../good/q"})
    yield _workload("owned-by-others", meta={"ownerReferences": [owner], "labels": {"kueue.x-k8s.io/job-uid": uid}})
    yield _workload(
        "others-uid", meta={"labels": {"kueue.x-k8s.io/job-uid": uid, "kueue.x-k8s.io/multikueue-origin": "x"}}
    )
    yield _workload("first", spec={"priority": _MANY})
    yield _workload("endless", {"count": _MANY, "template": _template(requests={"cpu": str(_ENDLESS)})})
    yield _workload("none", {"count": 0})
    yield _workload("partly", {"count": 3, "minCount": 1}, {"name": "b", "count": 3, "minCount": 1})
    yield _workload("slices", {"count": 7, "topologyRequest": {"required": "x", "podSetSliceSize": _MANY}})
    yield _workload("twins", {"name": "a"}, {"name": "a"})
    yield _workload("many-sets", *({"name": f"s{at}"} for at in range(8)))
    yield _workload("times", spec={"maximumExecutionTimeSeconds": _MANY, "active": False})
    yield _workload("notes", meta={"annotations": dict.fromkeys(_MARKS, "x" * 9999)})
    yield _workload(
        "priority", spec={"priorityClassRef": {"group": "scheduling.k8s.io", "kind": "PriorityClass", "name": "?"}}
    )
    yield JOBS, {**_maker(JOBS), "metadata": {"labels": {QUEUE: "q", "kueue.x-k8s.io/prebuilt-workload-name": "first"}}}
    for group in ("good/first", "first", "x" * 253, "a" * 300):
        for mark in ("scheduling.k8s.io/group-name", "pod-group-name", "kueue.x-k8s.io/workload"):
            yield (
                PODS,
                _pod(annotations={mark: group}, labels={"kai.scheduler/queue": GOOD, "kueue.x-k8s.io/podset": "main"}),
            )
    for least in (0, -1, 5, _MANY):
        yield VOLCANO_POD_GROUPS, {"spec": {"minMember": least, "queue": EVIL, "minResources": {"cpu": str(_ENDLESS)}}}
        yield VOLCANO_POD_GROUPS, {"spec": {"minMember": 1, "queue": "x/y", "minTaskMember": {"a": least, "": least}}}
        yield KAI_POD_GROUPS, {"spec": {"minMember": least, "queue": GOOD}}
        parts = [{"name": "a", "parent": "b", "minMember": least}, {"name": "b", "parent": "a", "minMember": least}]
        yield KAI_POD_GROUPS, {"spec": {"minMember": 1, "queue": EVIL, "subGroups": parts}}
        yield LIGHT_POD_GROUPS, {"spec": {"minMember": least, "scheduleTimeoutSeconds": _MANY}}


def _circles(uids: dict[str, str]) -> Iterator[Poison]:
    """Pods below owners that own each other, or are nobody."""
    for kind, name in (("ConfigMap", "a"), ("ReplicaSet", "ring-a"), ("Job", "nobody"), ("Node", "node-0")):
        owner = {"apiVersion": "v1", "kind": kind, "name": name, "uid": uids.get(name, "?"), "controller": True}
        if kind in ("ReplicaSet", "Job"):
            owner["apiVersion"] = "apps/v1" if kind == "ReplicaSet" else "batch/v1"
        for labels in ({}, {"kai.scheduler/queue": EVIL}, {QUEUE: "q"}):
            made = _pod(labels=labels)
            made["metadata"]["ownerReferences"] = [owner, {**owner, "controller": False, "uid": "?"}]
            yield PODS, made


async def _ring(scene: PoisonedScene) -> dict[str, str]:
    """Owners in circles."""
    uids: dict[str, str] = {}
    for name in ("a", "b"):
        made = await scene.poison(CONFIG_MAPS, {"metadata": {"name": name}})
        other = await scene.poison(REPLICA_SETS, {**_replica_set(), "metadata": {"name": f"ring-{name}"}})
        assert made is not None
        assert other is not None
        uids |= {name: made["metadata"]["uid"], f"ring-{name}": other["metadata"]["uid"]}
    for kind, api_version, names in ((CONFIG_MAPS, "v1", "ab"), (REPLICA_SETS, "apps/v1", ("ring-a", "ring-b"))):
        for name, above in ((names[0], names[1]), (names[1], names[0])):
            owner = {
                "apiVersion": api_version,
                "kind": kind.name,
                "name": above,
                "uid": uids[above],
                "controller": True,
            }
            await scene.cluster.patch(kind, name, {"metadata": {"ownerReferences": [owner]}}, namespace=EVIL)
    return uids


def _replica_set() -> Obj:
    template = _template()
    template["metadata"]["labels"] = {"app": "ring"}
    template["spec"]["restartPolicy"] = "Always"
    return {"spec": {"replicas": 0, "selector": {"matchLabels": {"app": "ring"}}, "template": template}}


# -- the tests -------------------------------------------------------------------------------------------------------


async def _others_job(scene: PoisonedScene) -> Obj:
    """In a queue, of a size that never starts."""
    job = _maker(JOBS, requests={"cpu": "100"})
    job["metadata"]["name"] = "first"
    return await scene.cluster.create(JOBS, job, namespace=GOOD)


async def _story(poison: str, folder: Path) -> None:
    async with poisoned_cluster(folder) as scene:
        match poison:
            case "marks":
                found = list(_marked())
            case "amounts":
                found = list(_absurd())
            case _:
                found = [*_forged(await _others_job(scene)), *_circles(await _ring(scene))]
        only = os.environ.get("SHOAL_POISON")
        for kind, obj in found if only is None else [found[int(only)]]:
            await scene.poison(kind, obj)
        assert len(scene.refused) < len(found), scene.refused[:5]
        await scene.check()
        assert not await _stolen(scene)


async def _stolen(scene: PoisonedScene) -> list[str]:
    """Workloads that hold quota of others, or more than there is."""
    found = []
    for one in await scene.cluster.all(WORKLOADS, EVIL):
        admission = (one.get("status") or {}).get("admission")
        if admission and admission["clusterQueue"] != EVIL:
            found.append(one["metadata"]["name"])
    return found


@pytest.mark.parametrize("poison", ["marks", "amounts", "forged"])
def test_what_a_tenant_writes_harms_nobody_else(poison: str, tmp_path: Path) -> None:
    in_virtual_time(_story(poison, tmp_path))


@virtual
async def test_devices_that_a_bound_pod_names_and_does_not_ask_for_are_free(tmp_path: Path) -> None:
    """Whoever may create pods may bind them, and write what he likes on them."""
    async with small_cluster(tmp_path) as cluster:
        start_scheduler(cluster)
        await add_node(cluster, "n1", gpus=4)
        said = {"main": {GPU: ["0", "1", "2", "3"]}}
        for at, text in enumerate(("0,1,2,3", json.dumps(said), "0:4,1:0", "1023:63")):
            pod = _pod(annotations={"shoal.dev/devices": text}, nodeName="n1", schedulerName="default-scheduler")
            await cluster.create(PODS, {**pod, "metadata": {**pod["metadata"], "name": f"squatter-{at}"}})
        one = _pod(annotations={"shoal.dev/devices": "0,1,2,3"}, requests={GPU: "1"}, nodeName="n1")
        await cluster.create(PODS, {**one, "metadata": {**one["metadata"], "name": "one"}})
        await cluster.create(PODS, {**_pod(requests={GPU: "3"}), "metadata": {"name": "three"}})
        await cluster.until(lambda: is_bound(cluster, "three"))


@virtual
async def test_marks_of_an_admission_on_a_pod_of_nobody_take_no_place_of_it(tmp_path: Path) -> None:
    """Places that are kept for the pods of a Workload are theirs, whatever a pod of another size says of itself."""
    async with queued_cluster(tmp_path) as cluster:
        start_admission(cluster)
        await add_node(cluster, "n1", cpu="4")
        await add_flavor(cluster)
        await add_queue(cluster)
        await submit(cluster, "gang", cpu="2", count=2)
        await until_so(cluster, "gang")
        for name, workload, pod_set in (("a", "gang", "other"), ("b", "default/gang", "main"), ("c", "gan", "main")):
            notes = {"kueue.x-k8s.io/workload": workload}
            pod = _pod(annotations=notes, labels={"kueue.x-k8s.io/podset": pod_set}, requests={"cpu": "2"})
            await cluster.create(PODS, {**pod, "metadata": {**pod["metadata"], "name": name}})
        await cluster.pass_time(30)
        await start_pods(cluster, "gang", 2, cpu="2")
        await cluster.until(lambda: is_bound(cluster, "gang-0", "gang-1"))
