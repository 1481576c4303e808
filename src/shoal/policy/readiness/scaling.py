"""Readiness of autoscaling: nodes of GPU pools, spot capacity, replicas by GPU metrics, ScaledObjects."""

from __future__ import annotations

from shoal.policy.advice import Obj
from shoal.policy.diagnosis.cluster_facts import (
    condition,
    device_requests,
    few,
    labels_of,
    name_of,
    named,
)
from shoal.policy.diagnosis.verdicts import shell_command
from shoal.policy.fields import dig, maps
from shoal.policy.kinds import AUTOSCALER, DEPLOYMENT, NODE, NODE_POOL, POD, SCALED_OBJECT
from shoal.policy.object_set import key_of
from shoal.policy.pod_templates import pod_templates
from shoal.policy.readiness.checkpoints import keeps_checkpoints
from shoal.policy.readiness.gpu_software import arguments_of, gpu_nodes, name_list, programs
from shoal.policy.readiness.outcomes import (
    Outcome,
    ReadinessCheck,
    ReadinessFacts,
    failed,
    not_applicable,
    passed,
)

_DELAYS = ("--scale-down-delay-after-add", "--scale-down-unneeded-time")
_SPOT = (
    ("karpenter.sh/capacity-type", "spot"),
    ("eks.amazonaws.com/capacityType", "SPOT"),
    ("cloud.google.com/gke-spot", "true"),
    ("cloud.google.com/gke-preemptible", "true"),
    ("kubernetes.azure.com/scalesetpriority", "spot"),
)
_GPU_KEYS = ("karpenter.k8s.aws/instance-gpu", "nvidia.com/gpu", "node.kubernetes.io/instance-type")


def _node_scaling(facts: ReadinessFacts) -> Outcome:
    autoscalers = [one for one in programs(facts.cluster, "cluster-autoscaler") if one.get("kind") == "Deployment"]
    pools = facts.cluster.all(NODE_POOL)
    if autoscalers:
        given = arguments_of(autoscalers[0])
        missing = [flag for flag in _DELAYS if not any(word.startswith(flag) for word in given)]
        if missing:
            return failed(
                f"Deployment {name_list(autoscalers)} does not set {', '.join(missing)}",
                "set them: nodes with GPUs need minutes until they are usable, so they must not be removed at once",
                f"{missing[0]}=10m",
            )
        return passed(f"Deployment {name_list(autoscalers)} sets its delays")
    if pools:
        return passed(f"NodePools {name_list(pools)}")
    if not any(dig(node, "spec", "providerID") for node in facts.cluster.nodes):
        return not_applicable("the nodes do not come from a cloud (none has a providerID)")
    return failed(
        "no Cluster Autoscaler and no NodePool", "let GPU pools shrink to zero when they are idle", "shoal scale plan"
    )


def _pools(facts: ReadinessFacts) -> Outcome:
    pools = facts.cluster.all(NODE_POOL)
    if not pools:
        return not_applicable("no NodePool is used")
    with_gpus = [pool for pool in pools if _asks_gpus(pool)]
    if not with_gpus:
        return failed(
            f"no NodePool requires GPUs: {name_list(pools)}",
            "add a requirement, as karpenter.k8s.aws/instance-gpu-count Gt 0",
            "kubectl edit nodepool NAME",
        )
    unbounded = [pool for pool in with_gpus if not dig(pool, "spec", "limits")]
    if unbounded:
        return failed(f"NodePools without limits: {name_list(unbounded)}", "set spec.limits[nvidia.com/gpu]")
    return passed(f"NodePools with GPUs and limits: {name_list(with_gpus)}")


def _asks_gpus(pool: Obj) -> bool:
    spec = dig(pool, "spec", "template", "spec")
    keys = [str(one.get("key")) for one in maps(dig(spec, "requirements"))]
    taints = [str(one.get("key")) for one in maps(dig(spec, "taints"))]
    return any(key.startswith(_GPU_KEYS) for key in (*keys, *taints))


def is_spot(node: Obj) -> bool:
    labels = labels_of(node)
    return any(labels.get(key) == value for key, value in _SPOT)


def _spot(facts: ReadinessFacts) -> Outcome:
    nodes = [node for node in gpu_nodes(facts.cluster) if is_spot(node)]
    if not nodes:
        return not_applicable("no node with GPUs is spot capacity")
    held = [pod for node in nodes for pod in facts.cluster.pods_on(name_of(node)) if device_requests(pod)]
    lacking = [pod for pod in held if not any(keeps_checkpoints(view) for view in pod_templates(pod))]
    if lacking:
        return failed(
            f"pods on spot nodes that keep no checkpoint: {few([named(pod) for pod in lacking])}",
            "write checkpoints to a volume claim or an object store; shoal.train resumes from them",
        )
    return passed(f"{len(nodes)} spot nodes; {len(held)} pods with GPUs on them keep checkpoints")


def _replicas(facts: ReadinessFacts) -> Outcome:
    serving = [
        one
        for one in facts.cluster.all(DEPLOYMENT)
        if any(view.asks_gpus() for view in pod_templates(one)) and key_of(one)[0] != "kube-system"
    ]
    if not serving:
        return not_applicable("no Deployment uses GPUs")
    targets = {
        (key_of(one)[0], str(dig(one, "spec", "scaleTargetRef", "name"))) for one in facts.cluster.all(AUTOSCALER)
    }
    scaled = [one for one in serving if key_of(one) in targets]
    if not scaled:
        return failed(
            f"no Deployment with GPUs is scaled: {name_list(serving)}",
            "create a HorizontalPodAutoscaler on a metric of GPUs",
        )
    return passed(f"{len(scaled)} of {len(serving)} Deployments with GPUs are scaled")


def _scaled_objects(facts: ReadinessFacts) -> Outcome:
    scaled = facts.cluster.all(SCALED_OBJECT)
    if not scaled:
        return not_applicable("no ScaledObject is used")
    broken = [one for one in scaled if condition(one, "Ready").get("status") != "True"]
    if broken:
        return failed(
            f"ScaledObjects that are not ready: {name_list(broken)}",
            "see their conditions",
            shell_command("kubectl describe scaledobject {} -n {}", name_of(broken[0]), key_of(broken[0])[0]),
        )
    return passed(f"{len(scaled)} ScaledObjects are ready")


CHECKS = (
    ReadinessCheck("node-autoscaling", "GPU pools grow and shrink, with delays", _node_scaling, (NODE, DEPLOYMENT)),
    ReadinessCheck(
        "node-pools",
        "NodePools require GPUs and have limits (if used)",
        _pools,
        (NODE_POOL,),
        ("OldFieldName", "NoNodeClass", "NotAnInstanceAttribute", "TaintWithoutValue", "InvalidPool"),
    ),
    ReadinessCheck("spot-training", "Training on spot capacity keeps checkpoints", _spot, (NODE, POD)),
    ReadinessCheck(
        "replica-metrics",
        "GPU Deployments scale by metrics of GPUs",
        _replicas,
        (DEPLOYMENT, AUTOSCALER),
        ("CpuOfGpuPods",),
    ),
    ReadinessCheck(
        "scaled-objects",
        "ScaledObjects are ready (if used)",
        _scaled_objects,
        (SCALED_OBJECT,),
        ("MisplacedGroup", "UnknownTrigger"),
    ),
)
