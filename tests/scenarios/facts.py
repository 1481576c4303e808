"""A case as events: nodes and pods as Kubernetes objects through the same border as everybody's manifests."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import msgspec

from shoal.api.node import Node as ApiNode
from shoal.api.pod import Pod as ApiPod
from shoal.api.wire import dec_hook
from shoal.engine.device_notation import positions_of_pod
from shoal.engine.events import Event, GroupSeen, NodeSeen, PodArrived, PodBound, TopologySeen
from shoal.engine.from_api import ask_of_pod, node_facts_of
from shoal.engine.groups import GangSubgroup, GroupFacts, TopologyFacts, TopologyRequirement
from shoal.engine.pod_identity import PodIdentity, PodLabels
from shoal.units.errors import Where

from .case import Case, Job, Node, Subgroup, Task
from .claims import claim_events, pod_claims

HYPERNODES = "hypernodes"
KAI_NON_PREEMPTIBLE = 100
"""A priority from which on KAI's jobs yield to nobody unless they say otherwise."""
_TIER = "tier-{}"


def events_of(case: Case) -> Iterator[Event]:
    """Everything the case says is there, in an order in which nothing is mentioned before it is known."""
    for topology in case.topologies:
        yield TopologySeen(TopologyFacts(topology.name, tuple(topology.levels)))
    tiers = sorted({hyper.tier for hyper in case.hyper_nodes}, reverse=True)
    if tiers:
        levels = tuple(_TIER.format(tier) for tier in tiers)
        yield TopologySeen(TopologyFacts(HYPERNODES, ("top", *levels)))
    for rank, node in enumerate(case.nodes):
        facts = node_facts_of(_typed(_node(node, _tier_labels(case, node.name)), ApiNode))
        yield NodeSeen(msgspec.structs.replace(facts, rank=rank))
    yield from claim_events(case)
    devices: dict[tuple[str, str], int] = {}
    jobs = sorted(case.jobs, key=lambda job: (job.created_order, job.name))
    for job in jobs:
        yield GroupSeen(_group(case, job))
    bound: list[PodBound] = []
    waiting: list[Event] = []
    for job in jobs:
        for order, task in enumerate(job.tasks):
            pod = _typed(_pod(job, task, devices), ApiPod)
            ask = ask_of_pod(pod)
            who = _who(case, job, task, order)
            if task.state in ("Running", "Bound", "Terminating"):
                bound.append(
                    PodBound(
                        task.name,
                        ask,
                        task.node,
                        priority=_priority(case, job, task),
                        who=who,
                        terminating=task.state == "Terminating",
                        positions=positions_of_pod(pod.metadata.annotations, Where(obj=task.name)),
                    )
                )
            elif task.state in ("Pending", "Nominated") and not job.being_deleted:
                priority = _priority(case, job, task)
                waiting.append(PodArrived(task.name, ask, priority, who=who, nominated=task.node))
    # Who is known to sit on which device is told first; the others take what is left.
    yield from sorted(bound, key=lambda event: not event.positions)
    yield from waiting


def _typed(value: dict[str, Any], wanted: Any) -> Any:
    return msgspec.convert(value, wanted, dec_hook=dec_hook)


def _tier_labels(case: Case, node: str) -> dict[str, str]:
    """The hypernodes above a node; where one lacks a parent of some tier, it is its own."""
    if not case.hyper_nodes:
        return {}
    labels = {"top": "all"}
    inner = ""
    for tier in sorted({hyper.tier for hyper in case.hyper_nodes}):
        inner = next((hyper.name for hyper in case.hyper_nodes if hyper.tier == tier and node in hyper.nodes), inner)
        if inner:
            labels[_TIER.format(tier)] = inner
    return labels


def _node(node: Node, more_labels: dict[str, str]) -> dict[str, Any]:
    allocatable: dict[str, Any] = {
        "cpu": f"{round(node.cpu * 1000)}m",
        "memory": str(int(node.memory)),
        "pods": str(node.max_pods),
        **{name: str(int(amount)) for name, amount in node.extended.items()},
        **{f"nvidia.com/{profile}": str(count) for profile, count in node.mig_instances.items()},
    }
    labels = {"kubernetes.io/hostname": node.name, **more_labels, **node.labels}
    if node.gpus:
        allocatable["nvidia.com/gpu"] = str(node.gpus)
        labels.setdefault("nvidia.com/gpu.memory", str(node.gpu_memory or 100))
        labels.setdefault("nvidia.com/gpu.count", str(node.gpus))
    if node.mig_strategy:
        labels.setdefault("nvidia.com/mig.strategy", node.mig_strategy)
    return {
        "metadata": {"name": node.name, "labels": labels},
        "spec": {"taints": node.taints},
        "status": {"allocatable": allocatable, "capacity": allocatable},
    }


def _pod(job: Job, task: Task, devices: dict[tuple[str, str], int]) -> dict[str, Any]:
    requests: dict[str, str] = {}
    if task.cpu:
        requests["cpu"] = f"{round(task.cpu * 1000)}m"
    if task.memory:
        requests["memory"] = str(int(task.memory))
    scarce = {name: str(int(amount)) for name, amount in task.extended.items()}
    scarce |= {f"nvidia.com/{profile}": str(count) for profile, count in task.mig_profiles.items()}
    if task.gpus:
        scarce["nvidia.com/gpu"] = str(int(task.gpus))
    annotations = _shares(task)
    if task.node and (annotations or task.gpu_groups):
        groups = task.gpu_groups or [f"own {task.name} {index}" for index in range(_devices_of(task))]
        annotations["shoal.dev/devices"] = ",".join(str(_device(devices, task.node, group)) for group in groups)
    affinity = dict(task.affinity)
    if task.node_affinity:
        term = {"key": task.node_affinity["key"], "operator": "In", "values": task.node_affinity["in"]}
        affinity["nodeAffinity"] = {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": [term]}]}
        }
    for field, rule in (("podAffinity", task.pod_affinity), ("podAntiAffinity", task.pod_anti_affinity)):
        if rule:
            term = {"labelSelector": {"matchLabels": rule["matchLabels"]}, "topologyKey": rule["topologyKey"]}
            affinity[field] = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    return {
        "metadata": {
            "name": task.name.rpartition("/")[2],
            "namespace": job.namespace,
            "labels": task.labels,
            "annotations": annotations,
        },
        "spec": {
            "containers": [{"name": "main", "resources": {"requests": {**requests, **scarce}, "limits": scarce}}],
            "nodeSelector": task.node_selector,
            "tolerations": task.tolerations,
            "affinity": affinity,
            "resourceClaims": pod_claims(task),
            "topologySpreadConstraints": task.topology_spread_constraints,
        },
    }


def _shares(task: Task) -> dict[str, str]:
    annotations = {}
    if task.gpu_fraction:
        annotations["gpu-fraction"] = str(Decimal(str(task.gpu_fraction)))
    if task.gpu_memory:
        annotations["gpu-memory"] = str(task.gpu_memory)
    if annotations and _devices_of(task) > 1:
        annotations["gpu-fraction-num-devices"] = str(_devices_of(task))
    return annotations


def _devices_of(task: Task) -> int:
    """Of a share: several devices that it is known to hold say so, too."""
    return max(task.gpu_num_devices, len(set(task.gpu_groups)), 1)


def _device(devices: dict[tuple[str, str], int], node: str, group: str) -> int:
    """The cases name devices by symbols of their own: the first symbol of a node is device 0."""
    known = [number for (name, _), number in devices.items() if name == node]
    return devices.setdefault((node, group), len(known))


def _who(case: Case, job: Job, task: Task, order: int) -> PodIdentity:
    return PodIdentity(
        traits=PodLabels.of(job.namespace, task.labels),
        group=_name(job),
        part=_part_of(case, job, task),
        role=task.role,
        queue=job.queue,
        preempts=task.preemption_policy != "Never",
        is_preemptible=_is_preemptible(case, job, task),
        # No case says since when a pod runs; the order of the jobs stands for it.
        since_s=float(job.created_order - len(case.jobs)),
        order=order - 1000 * task.task_priority if case.is_kai else order,
    )


def _is_preemptible(case: Case, job: Job, task: Task) -> bool:
    said = task.preemptible if task.preemptible is not None else job.preemptible
    if case.is_kai:
        return job.priority < KAI_NON_PREEMPTIBLE if said is None else said
    return said is not False


def _name(job: Job) -> str:
    return f"{job.namespace}/{job.name}"


def _group(case: Case, job: Job) -> GroupFacts:
    parts = tuple(_kai_parts(job) if case.is_kai else _volcano_parts(case, job))
    roles = tuple(job.min_by_role.items())
    pods, roles = _kai_minima(job) if case.is_kai else (job.min_available, roles)
    return GroupFacts(
        name=_name(job),
        minimum=pods,
        parts=parts,
        roles=roles,
        requirement=_wish(case, job.topology),
        priority=job.priority,
        queue=job.queue if case.is_kai else "",
        # Before the first cycle, which is at second 0; the order of the jobs stands for the moments.
        created_s=float(job.created_order - len(case.jobs)),
        stale_since_s=None if job.stale_for_seconds is None else -job.stale_for_seconds,
    )


def _kai_minima(job: Job) -> tuple[int, tuple[tuple[str, int], ...]]:
    return 0 if job.subgroups else max(job.min_available, 1), ()


def _priority(case: Case, job: Job, task: Task) -> int:
    """Volcano's pods have a priority beside that of their job."""
    return job.priority if case.is_kai else task.task_priority


def _kai_parts(job: Job) -> Iterator[GangSubgroup]:
    """KAI: a tree whose every leaf must reach its minimum."""

    def walk(subgroups: list[Subgroup], parent: str) -> Iterator[GangSubgroup]:
        for sub in subgroups:
            inner = [s for s in job.subgroups if s.parent == sub.name] or sub.children
            yield GangSubgroup(
                sub.name, sub.parent or parent, len(inner) if inner else sub.min_available, _kai_wish(sub.topology)
            )
            yield from walk(sub.children, sub.name)

    yield from walk(job.subgroups, "")


def _volcano_parts(case: Case, job: Job) -> Iterator[GangSubgroup]:
    """Volcano: a policy cuts the pods by the values of some labels into pieces of one size."""
    for policy in job.subgroups:
        pieces = sorted({_part_of(case, job, task) for task in job.tasks if _policy_of(job, task) is policy})
        if not pieces:
            continue
        yield GangSubgroup(policy.name, "", policy.min_sub_groups)
        for piece in pieces:
            yield GangSubgroup(piece, policy.name, policy.size, _wish(case, policy.topology))


def _policy_of(job: Job, task: Task) -> Subgroup | None:
    labels = _labels(task)
    for policy in job.subgroups:
        wanted = (policy.label_selector or {}).get("matchLabels", {})
        if all(key in labels for key in policy.match_label_keys) and wanted.items() <= labels.items():
            return policy
    return None


def _labels(task: Task) -> dict[str, str]:
    return {"volcano.sh/task-spec": task.role, **task.labels} if task.role else task.labels


def _part_of(case: Case, job: Job, task: Task) -> str:
    if case.is_kai:
        return task.subgroup
    policy = _policy_of(job, task)
    if policy is None:
        return ""
    labels = _labels(task)
    return "/".join([policy.name, *(labels[key] for key in policy.match_label_keys)])


def _wish(case: Case, topology: dict[str, Any]) -> TopologyRequirement:
    if not topology:
        return TopologyRequirement()
    if "mode" not in topology:
        return _kai_wish(topology)
    tiers = sorted({hyper.tier for hyper in case.hyper_nodes})
    by_name = {hyper.tier_name: hyper.tier for hyper in case.hyper_nodes if hyper.tier_name}
    highest = topology.get("highestTierAllowed", by_name.get(topology.get("highestTierName", "")))
    if topology["mode"] == "soft":
        return TopologyRequirement(HYPERNODES, preferred=_TIER.format(tiers[0])) if tiers else TopologyRequirement()
    allowed = [tier for tier in tiers if highest is None or tier <= highest]
    if highest is not None and tiers and highest > tiers[-1]:
        return TopologyRequirement(HYPERNODES, required="top", closest=True)
    return TopologyRequirement(HYPERNODES, required=_TIER.format(allowed[-1] if allowed else "none"), closest=True)


def _kai_wish(topology: dict[str, Any]) -> TopologyRequirement:
    if not topology:
        return TopologyRequirement()
    return TopologyRequirement(
        topology.get("topology", ""), topology.get("required") or "", topology.get("preferred") or ""
    )
