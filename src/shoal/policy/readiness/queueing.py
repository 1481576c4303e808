"""Readiness of scheduling: admission, queues, priorities, MIG layouts, taints, quotas."""

from __future__ import annotations

from shoal.data.gpus import PRODUCT_LABEL, read_product
from shoal.policy.advice import Obj
from shoal.policy.diagnosis.cluster_facts import few, labels_of, name_of, taints_of
from shoal.policy.diagnosis.verdicts import shell_command
from shoal.policy.fields import dig, maps, string_keys
from shoal.policy.kinds import (
    CLUSTER_QUEUE,
    DEPLOYMENT,
    LOCAL_QUEUE,
    NAMESPACE,
    NODE,
    POD,
    RESOURCE_QUOTA,
    VOLCANO_QUEUE,
    WORKLOAD_PRIORITY_CLASS,
)
from shoal.policy.pod_templates import GPU
from shoal.policy.readiness.gpu_software import gpu_namespaces, gpu_nodes, is_down, name_list, programs
from shoal.policy.readiness.outcomes import (
    Outcome,
    ReadinessCheck,
    ReadinessFacts,
    failed,
    not_applicable,
    passed,
)
from shoal.policy.tenants.priorities import PRIORITIES, workload_priority_class

_GPU_PREFIX = "nvidia.com/"
_QUEUED = "kueue-controller-manager", "volcano-scheduler", "kai-scheduler", "shoal"
_MIG_CONFIG, _MIG_STATE = "nvidia.com/mig.config", "nvidia.com/mig.config.state"
_MIG_CAPABLE = "nvidia.com/mig.capable"
_CLAIMED = ("requests.storage", "persistentvolumeclaims")
_COUNTED = ("requests.cpu", "cpu"), ("requests.memory", "memory"), _CLAIMED


def _admission(facts: ReadinessFacts) -> Outcome:
    found = [one for one in programs(facts.cluster, *_QUEUED) if one.get("kind") == "Deployment"]
    running = [one for one in found if not is_down(one)]
    queues = [*facts.cluster.all(CLUSTER_QUEUE), *facts.cluster.all(VOLCANO_QUEUE)]
    active = [one for one in queues if any(_is_active(each) for each in maps(dig(one, "status", "conditions")))]
    if running:
        return passed(f"Deployment {name_list(running)}")
    if active:
        return passed(f"a controller keeps ClusterQueues active: {name_list(active)}")
    if queues:
        return failed(
            f"queues exist ({name_list(queues)}), and no controller is seen that admits jobs",
            "run Shoal, Kueue or Volcano",
            "shoal install",
        )
    return failed(
        "no queue and no controller that admits jobs and starts gangs as a whole", "install one", "shoal install"
    )


def _is_active(condition: Obj) -> bool:
    return condition.get("type") == "Active" and condition.get("status") == "True"


def _queues(facts: ReadinessFacts) -> Outcome:
    queues = facts.cluster.all(CLUSTER_QUEUE)
    if not queues:
        if facts.cluster.all(VOLCANO_QUEUE):
            return not_applicable("quotas are those of Volcano's queues")
        return failed("the cluster has no ClusterQueue", "create one for each team", "shoal tenant apply team.yaml")
    lacking = [f"{name_of(one)} lacks {', '.join(missing)}" for one in queues if (missing := _missing_parts(one))]
    if lacking:
        return failed(
            f"{len(lacking)} of {len(queues)} ClusterQueues are incomplete: {few(lacking)}",
            "add a quota of GPUs, a cohort to borrow from, and preemption",
            "kubectl edit clusterqueue NAME",
        )
    return passed(f"{len(queues)} ClusterQueues have GPU quotas, a cohort and preemption")


def _missing_parts(queue: Obj) -> list[str]:
    resources = [
        str(resource.get("name"))
        for group in maps(dig(queue, "spec", "resourceGroups"))
        for flavor in maps(group.get("flavors"))
        for resource in maps(flavor.get("resources"))
    ]
    preemption = string_keys(dig(queue, "spec", "preemption"))
    has_cohort = dig(queue, "spec", "cohort") or dig(queue, "spec", "cohortName")
    parts = (
        ("a quota of GPUs", any(name.startswith(_GPU_PREFIX) for name in resources)),
        ("a cohort", bool(has_cohort)),
        ("preemption", any(value not in (None, "Never") for value in preemption.values())),
    )
    return [words for words, has in parts if not has]


def _priorities(facts: ReadinessFacts) -> Outcome:
    classes = [name_of(one) for one in facts.cluster.all(WORKLOAD_PRIORITY_CLASS)]
    missing = [name for name in PRIORITIES if not any(name in each for each in classes)]
    if missing:
        return failed(
            f"WorkloadPriorityClasses for {', '.join(missing)} are missing",
            "create them",
            "shoal check --fix",
            corrections=[workload_priority_class(name) for name in missing],
        )
    return passed(f"WorkloadPriorityClasses {few(classes)}")


def _mig_layouts(facts: ReadinessFacts) -> Outcome:
    capable = [node for node in gpu_nodes(facts.cluster) if _is_capable(node)]
    if not capable:
        return not_applicable("no node has GPUs that can be partitioned")
    open_ones = [name_of(node) for node in capable if not labels_of(node).get(_MIG_CONFIG)]
    broken = [name_of(node) for node in capable if labels_of(node).get(_MIG_STATE) == "failed"]
    if broken:
        return failed(
            f"the layout could not be set on {few(broken)}", "see why", shell_command("shoal doctor node {}", broken[0])
        )
    if open_ones:
        return failed(
            f"{len(open_ones)} of {len(capable)} nodes that can be partitioned have no layout: {few(open_ones)}",
            "choose one for each pool; all-disabled keeps whole GPUs",
            shell_command(f"kubectl label node {{}} {_MIG_CONFIG}=all-disabled", open_ones[0]),
        )
    layouts = sorted({labels_of(node)[_MIG_CONFIG] for node in capable})
    return passed(f"{len(capable)} nodes have layouts: {few(layouts)}")


def _is_capable(node: Obj) -> bool:
    """By its label, or by the model of its GPUs."""
    labels = labels_of(node)
    if label := labels.get(_MIG_CAPABLE):
        return label == "true"
    model = read_product(product).model if (product := labels.get(PRODUCT_LABEL)) else None
    return model is not None and bool(model.mig)


def _taints(facts: ReadinessFacts) -> Outcome:
    nodes = gpu_nodes(facts.cluster)
    if not nodes:
        return not_applicable("no node has a GPU")
    bare = [
        name_of(node)
        for node in nodes
        if not any(taint.key == GPU and taint.effect == "NoSchedule" for taint in taints_of(node))
    ]
    if bare:
        return failed(
            f"{len(bare)} of {len(nodes)} nodes with GPUs take pods without GPUs: {few(bare)}",
            "taint them; pods that run there stay, new ones need a toleration",
            shell_command(f"kubectl taint node {{}} {GPU}=present:NoSchedule", bare[0]),
        )
    return passed(f"{len(nodes)} nodes have the taint {GPU}:NoSchedule")


def _quotas(facts: ReadinessFacts) -> Outcome:
    namespaces = gpu_namespaces(facts.cluster)
    if not namespaces:
        return not_applicable("no namespace uses GPUs")
    lacking = []
    for namespace in namespaces:
        items = {
            item
            for quota in facts.cluster.all(RESOURCE_QUOTA, namespace)
            for item in string_keys(dig(quota, "spec", "hard"))
        }
        missing = [names[0] for names in _COUNTED if items.isdisjoint(names)]
        if not any(item.startswith(f"requests.{_GPU_PREFIX}") for item in items):
            missing.insert(0, f"requests.{GPU}")
        if missing:
            lacking.append(f"{namespace} lacks {', '.join(missing)}")
    if lacking:
        return failed(
            f"{len(lacking)} of {len(namespaces)} namespaces with GPUs have no complete quota: {few(lacking)}",
            "count requests of GPUs, CPU, memory and storage; limits of GPUs are never counted",
            "shoal tenant apply team.yaml",
        )
    return passed(f"{len(namespaces)} namespaces have quotas of GPUs, CPU, memory and storage")


CHECKS = (
    ReadinessCheck(
        "admission",
        "Jobs are admitted by quota and start as a whole",
        _admission,
        (DEPLOYMENT, CLUSTER_QUEUE),
        ("MisplacedQueueName",),
    ),
    ReadinessCheck(
        "queues",
        "ClusterQueues have quota, cohort and preemption",
        _queues,
        (CLUSTER_QUEUE,),
        ("NoNamespaceSelector", "NoSuchFlavor"),
    ),
    ReadinessCheck(
        "priorities",
        "WorkloadPriorityClasses for production, research, batch",
        _priorities,
        (WORKLOAD_PRIORITY_CLASS,),
        ("MisplacedValue",),
    ),
    ReadinessCheck(
        "mig-layouts",
        "Each pool that can be partitioned has a MIG layout",
        _mig_layouts,
        (NODE,),
        ("NoDisabledLayout",),
    ),
    ReadinessCheck("gpu-taints", "Nodes with GPUs are tainted", _taints, (NODE,)),
    ReadinessCheck(
        "quotas",
        "Namespaces with GPUs have quotas of GPUs, CPU, memory, storage",
        _quotas,
        (POD, NAMESPACE, LOCAL_QUEUE, RESOURCE_QUOTA),
        ("NeverCounted", "GpuByDefault", "GpuDemanded"),
    ),
)
