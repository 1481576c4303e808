"""The advice of each rule, and objects without advice: a table for each, with a context made up for the test."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from shoal.api.cost_budgets import NO_BUDGETS, CostBudgets
from shoal.api.kueue.probable_mistakes import QUEUE_NAME
from shoal.api.taints import Taint
from shoal.policy.advice import AdvisedNode, Obj
from shoal.policy.catalogue import checks
from shoal.policy.declarations import Check
from shoal.policy.kinds import (
    CLUSTER_QUEUE,
    CONFIG_MAP,
    DEPLOYMENT,
    LOCAL_QUEUE,
    NAMESPACE,
    PRIORITY_CLASS,
    RESOURCE_QUOTA,
    SERVICE,
    VOLUME_CLAIM,
    WORKLOAD_PRIORITY_CLASS,
    GroupKind,
)
from shoal.policy.rules.gpu_bypasses import visible_devices
from shoal.policy.rules.launching import (
    dead_images,
    idle_gpus,
    launchers,
    master_addresses,
    mpi_launchers,
    unset_variables,
)
from shoal.policy.rules.namespace_quotas import over_quota
from shoal.policy.rules.pipelines import pipelines, workflows
from shoal.policy.rules.placement import (
    one_sided_anti_affinity,
    product_names,
    spreading,
    strict_counts,
    unknown_node_labels,
    untolerated,
)
from shoal.policy.rules.pod_admission import missing_references, pod_security
from shoal.policy.rules.queues import (
    flavor_products,
    flavors_without_nodes,
    misplaced_queue_names,
    misread_fields,
    missing_queues,
    pod_groups,
    volcano_queues,
)
from shoal.policy.rules.quotas import default_gpus, uncounted_limits, unknown_priorities, unsupported_scopes
from shoal.policy.rules.schedulers import scheduler_configurations, scheduler_files
from shoal.policy.rules.serving import (
    cpu_of_gpu_pods,
    governing_services,
    open_load_balancers,
    plain_secrets,
)

A100 = {
    "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB",
    "nvidia.com/gpu.count": "8",
    "nvidia.com/gpu.present": "true",
}
GPU_TAINT = Taint("nvidia.com/gpu", "NoSchedule", "present")


class FakeContext:
    """Everything of these kinds is known; nothing else is."""

    def __init__(self, *objects: tuple[GroupKind, Obj], nodes: Iterable[AdvisedNode] = (AdvisedNode(A100),)) -> None:
        self._objects = objects
        self._nodes = nodes
        self._known = (
            *(CONFIG_MAP, PRIORITY_CLASS, SERVICE, VOLUME_CLAIM, LOCAL_QUEUE),
            WORKLOAD_PRIORITY_CLASS,
        )

    def nodes(self) -> Iterable[AdvisedNode]:
        return self._nodes

    def find(self, kind: GroupKind, namespace: str, name: str) -> Obj | None:
        return next((obj for obj in self.all(kind, namespace) if obj["metadata"]["name"] == name), None)

    def all(self, kind: GroupKind, namespace: str = "") -> Iterable[Obj]:
        return [
            obj
            for known, obj in self._objects
            if known == kind and namespace in ("", obj["metadata"].get("namespace", ""))
        ]

    def lacks(self, kind: GroupKind, namespace: str, name: str) -> bool:
        return kind in self._known and self.find(kind, namespace, name) is None

    def cost_budgets(self) -> CostBudgets:
        return NO_BUDGETS


BARE = FakeContext()


def container(gpus: int = 0, **fields: Any) -> Obj:
    limits = {"nvidia.com/gpu": str(gpus)} if gpus else {}
    return {"name": "main", "image": "x:1", "resources": {"limits": limits}, **fields}


def pod(*containers: Obj, labels: Mapping[str, str] | None = None, **spec: Any) -> Obj:
    meta = {"name": "p", "namespace": "n", "labels": dict(labels or {})}
    return {"kind": "Pod", "metadata": meta, "spec": {"containers": list(containers or (container(1),)), **spec}}


def job(*containers: Obj, kind: str = "Job", **spec: Any) -> Obj:
    template = {"metadata": {}, "spec": {"containers": list(containers or (container(1),)), **spec}}
    return {"kind": kind, "metadata": {"name": "j", "namespace": "n"}, "spec": {"template": template}}


def _told(obj: Obj) -> Obj:
    obj["spec"]["template"]["metadata"]["annotations"] = {"shoal.dev/rendezvous": "true"}
    return obj


def annotated(key: str, value: str) -> Obj:
    return {"name": "j", "namespace": "n", "annotations": {key: value}}


def named(name: str, namespace: str = "n", **fields: Any) -> Obj:
    return {"metadata": {"name": name, "namespace": namespace}, **fields}


def labelled(**text: str) -> Obj:
    names = {"queue": "queue-name", "priority": "priority-class"}
    labels = {f"kueue.x-k8s.io/{names[key]}": value for key, value in text.items()}
    return {"kind": "Deployment", "metadata": {"name": "d", "namespace": "n", "labels": labels}}


def repelling(**labels: str) -> Obj:
    term = {"labelSelector": {"matchLabels": {"kind": "training"}}, "topologyKey": "kubernetes.io/hostname"}
    return pod(labels=labels, affinity={"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}})


def with_env(name: str, value: str, gpus: int = 1) -> Obj:
    return job(container(gpus, env=[{"name": name, "value": value}]))


def counting(operator: str, value: str, gpus: int) -> Obj:
    one = {"key": "nvidia.com/gpu.count", "operator": operator, "values": [value]}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [one]}]}
    return pod(container(gpus), affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}})


def configuration(version: str, strategy: str) -> Obj:
    plugin = f"[{{name: NodeResourcesFit, args: {{scoringStrategy: {{type: {strategy}}}}}}}]"
    text = f"apiVersion: kubescheduler.config.k8s.io/{version}\nkind: KubeSchedulerConfiguration\n"
    return {
        "kind": "ConfigMap",
        "data": {"c.yaml": f"{text}profiles:\n- {{schedulerName: s, pluginConfig: {plugin}}}\n"},
    }


def queue(api: str = "v1beta2", **spec: Any) -> Obj:
    return {"apiVersion": f"kueue.x-k8s.io/{api}", "kind": "ClusterQueue", "metadata": {"name": "q"}, "spec": spec}


def limits(**fields: Any) -> Obj:
    return {"metadata": {"name": "l", "namespace": "n"}, "spec": {"limits": [{"type": "Container", **fields}]}}


def scoped(*names: str) -> Obj:
    one = {"scopeName": "PriorityClass", "operator": "In", "values": list(names)}
    return named("quota", spec={"scopeSelector": {"matchExpressions": [one]}})


def counting_items(item: str, scope: str = "PriorityClass") -> Obj:
    one = {"scopeName": scope, "operator": "Exists"}
    return named("q", spec={"hard": {item: "1"}, "scopeSelector": {"matchExpressions": [one]}})


def flavor(**labels: str) -> Obj:
    return {"metadata": {"name": "f"}, "spec": {"nodeLabels": labels}}


def pipeline(**task: Any) -> Obj:
    return named("p", spec={"tasks": [{"name": "t", **task}]})


TORCHRUN, OLD = ["torchrun", "--nnodes=2", "train.py"], ["python", "-m", "torch.distributed.launch"]
RESTRICTED = (NAMESPACE, named("n", "", kind="Namespace"))
RESTRICTED[1]["metadata"]["labels"] = {"pod-security.kubernetes.io/enforce": "restricted"}
HARDENED = container(1, securityContext={"runAsNonRoot": True, "allowPrivilegeEscalation": False})
WEB = (DEPLOYMENT, {**job(container(image="ghcr.io/open-webui/open-webui:main")), "kind": "Deployment"})
WEB[1]["spec"]["template"]["metadata"]["labels"] = {"app": "web"}
BALANCER = named("web", spec={"type": "LoadBalancer", "selector": {"app": "web"}})
SERVING = (DEPLOYMENT, {**job(container(2), kind="Deployment"), "metadata": {"name": "d", "namespace": "n"}})
SCALED = {"scaleTargetRef": {"kind": "Deployment", "name": "d"}}
CPU = {"type": "Resource", "resource": {"name": "cpu"}}
TAINTED = FakeContext(nodes=(AdvisedNode(A100, (GPU_TAINT,)), AdvisedNode({})))
TEAMS = FakeContext(nodes=[AdvisedNode(A100, (Taint("team", "NoSchedule", team),)) for team in "ab"])
WORKER: Obj = {"volumeMounts": [{"name": "t", "mountPath": "/topo.xml"}]}

Case = tuple[Check, Obj, FakeContext, str]


def spread(**labels: str) -> Obj:
    constraint = {"topologyKey": "zone", "labelSelector": {"matchLabels": labels}}
    template = {
        "metadata": {"labels": {"app": "a"}},
        "spec": {"containers": [], "topologySpreadConstraints": [constraint]},
    }
    return {"kind": "Job", "metadata": {"name": "j"}, "spec": {"template": template}}


QUOTA = {"metadata": {"name": "q", "namespace": "n"}, "spec": {"hard": {"requests.nvidia.com/gpu": "4"}}}

CASES: dict[str, Case] = {
    "more GPUs than a quota allows": (
        over_quota,
        job(container(8)),
        FakeContext((RESOURCE_QUOTA, QUOTA)),
        "the ResourceQuota q allows 4 in all",
    ),
    "a short product name": (
        product_names,
        pod(nodeSelector={"nvidia.com/gpu.product": "A100-SXM4-80GB"}),
        BARE,
        "did you mean NVIDIA-A100-SXM4-80GB?",
    ),
    "more GPUs than are asked for": (strict_counts, counting("Gt", "4", 4), BARE, "write Gt 3"),
    "a label that no node has": (
        unknown_node_labels,
        job(nodeSelector={"accelerator": "nvidia"}),
        BARE,
        "gpu.present=true",
    ),
    "a misspelled label": (
        unknown_node_labels,
        job(nodeSelector={"nvidia.com/gpu-product": "NVIDIA-A100-SXM4-80GB"}),
        FakeContext(nodes=(AdvisedNode({**A100, "nvidia.com/gpu.present": "true"}),)),
        "did you mean nvidia.com/gpu.product?",
    ),
    "a pod that repels others only": (one_sided_anti_affinity, repelling(), BARE, "the pod itself"),
    "pods that tolerate nothing": (untolerated, job(), TAINTED, "have the taint nvidia.com/gpu=present:NoSchedule"),
    "nodes with different taints": (
        untolerated,
        job(tolerations=[{"key": "team", "value": "c"}]),
        TEAMS,
        "one of the taints team=a:NoSchedule, team=b:NoSchedule, all of which the pods do not tolerate",
    ),
    "an old launcher": (launchers, job(container(1, command=OLD)), BARE, "is deprecated"),
    "nodes without a rendezvous": (launchers, job(container(1, command=TORCHRUN)), BARE, "starts 2 nodes"),
    "an unset variable": (unset_variables, job(container(args=["--rank=$(POD_INDEX)"])), BARE, "Indexed"),
    "a master without a Service": (
        master_addresses,
        with_env("MASTER_ADDR", "master"),
        BARE,
        'Service "master" not found in namespace n',
    ),
    "all devices": (visible_devices, with_env("NVIDIA_VISIBLE_DEVICES", "all"), BARE, "allocated to other pods"),
    "devices by number": (visible_devices, with_env("CUDA_VISIBLE_DEVICES", "0,1", 2), BARE, "numbered from 0"),
    "one process for eight GPUs": (idle_gpus, job(container(8, command=["train"])), BARE, "--nproc_per_node=8"),
    "mpirun as root": (mpi_launchers, job(container(command=["mpirun", "x"])), BARE, "--allow-run-as-root"),
    "mpirun as user 0": (
        mpi_launchers,
        job(container(command=["mpirun", "x"], securityContext={"runAsUser": 0}), securityContext={"runAsUser": 1000}),
        BARE,
        "--allow-run-as-root",
    ),
    "a topology that is not passed on": (
        mpi_launchers,
        job(container(0, **WORKER), container(command=["mpirun", "--allow-run-as-root"])),
        BARE,
        "-x NCCL_TOPO_FILE=/topo.xml",
    ),
    "a missing ConfigMap": (
        missing_references,
        job(volumes=[{"configMap": {"name": "c"}}]),
        BARE,
        'ConfigMap "c" not found in namespace n',
    ),
    "an unpublished image": (dead_images, pod(container(image="comfyui/comfyui:latest")), BARE, "is not published"),
    "a tag with two numbers": (
        dead_images,
        pod(container(image="nvidia/cuda:12.3-base-ubuntu22.04")),
        BARE,
        "nvidia/cuda:12.3.0-base-ubuntu22.04",
    ),
    "pods that the namespace refuses": (pod_security, job(), FakeContext(RESTRICTED), "level restricted"),
    "a queue without a namespace selector": (misread_fields, queue(), BARE, "no namespace may use the queue"),
    "a queue that an annotation names": (
        misplaced_queue_names,
        {**job(kind="PyTorchJob"), "apiVersion": "kubeflow.org/v1", "metadata": annotated(QUEUE_NAME, "q")},
        BARE,
        "queue q is an annotation, not a label of the job itself: Shoal uses it, Kueue does not",
    ),
    "a queue of another namespace": (
        missing_queues,
        labelled(queue="q"),
        FakeContext((LOCAL_QUEUE, named("q", "other")), (LOCAL_QUEUE, named("r"))),
        'LocalQueue "q" not found in namespace n: the pods are held; create it, or use one that exists (r)',
    ),
    "a class of workloads that is not there": (
        missing_queues,
        labelled(queue="q", priority="p"),
        FakeContext((LOCAL_QUEUE, named("q"))),
        'WorkloadPriorityClass "p" not found',
    ),
    "a value below spec": (
        misread_fields,
        {**queue(value=7), "kind": "WorkloadPriorityClass"},
        BARE,
        "used as value",
    ),
    "a flavor of a short product name": (
        flavor_products,
        flavor(**{"nvidia.com/gpu.product": "A100-SXM4-80GB"}),
        BARE,
        "did you mean NVIDIA-A100-SXM4-80GB?",
    ),
    "a spread of other pods": (spreading, spread(app="b"), BARE, "does not match the pod itself"),
    "a flavor without nodes": (flavors_without_nodes, flavor(a="b"), BARE, "none has a at all"),
    "a flavor of tainted nodes": (
        flavors_without_nodes,
        flavor(**{"nvidia.com/gpu.count": "8"}),
        TAINTED,
        "have taints, the first has nvidia.com/gpu=present:NoSchedule",
    ),
    "fields that Volcano drops": (
        volcano_queues,
        named("q", spec={"preemptable": True}),
        BARE,
        "not a field of Volcano",
    ),
    "a queue of a ClusterQueue's name": (
        volcano_queues,
        named("q"),
        FakeContext((CLUSTER_QUEUE, {"metadata": {"name": "q"}})),
        "counted twice",
    ),
    "a group of a priority that is not there": (
        pod_groups,
        named("g", spec={"priorityClassName": "high"}),
        BARE,
        'PriorityClass "high" not found',
    ),
    "limits that are never counted": (
        uncounted_limits,
        named("q", spec={"hard": {"limits.nvidia.com/gpu": "4"}}),
        BARE,
        "write requests.nvidia.com/gpu",
    ),
    "claims counted by priority": (
        unsupported_scopes,
        counting_items("persistentvolumeclaims"),
        BARE,
        "write two quotas",
    ),
    "missing priority classes": (
        unknown_priorities,
        scoped("a", "b"),
        BARE,
        "PriorityClass a or b not found, so no pod counts",
    ),
    "a GPU by default": (default_gpus, limits(default={"nvidia.com/gpu": "1"}), BARE, "sidecars"),
    "a GPU required": (default_gpus, limits(min={"nvidia.com/gpu": 1}), BARE, "rejected or get one"),
    "an old scheduler": (scheduler_configurations, configuration("v1beta3", "MostAllocated"), BARE, "read as"),
    "a scheduler that spreads": (scheduler_configurations, configuration("v1", "LeastAllocated"), BARE, "spreads"),
    "an old scheduler in a file of its own": (
        scheduler_files,
        {"apiVersion": "kubescheduler.config.k8s.io/v1beta3", "kind": "KubeSchedulerConfiguration"},
        BARE,
        "read as",
    ),
    "no headless Service": (
        governing_services,
        named("s", spec={"serviceName": "x"}),
        BARE,
        'Service "x" not found in namespace n',
    ),
    "a Service that is not headless": (
        governing_services,
        named("s", spec={"serviceName": "x"}),
        FakeContext((SERVICE, named("x", spec={"clusterIP": "10.0.0.1"}))),
        "is not headless",
    ),
    "a secret in the open": (plain_secrets, with_env("WEBUI_SECRET_KEY", "x"), BARE, "secretKeyRef"),
    "an unprotected load balancer": (open_load_balancers, BALANCER, FakeContext(WEB), "without a login"),
    "CPU utilization of GPU pods": (
        cpu_of_gpu_pods,
        named("h", spec={**SCALED, "metrics": [CPU]}),
        FakeContext(SERVING),
        "hardly depends on the load of the GPU",
    ),
    "a loop in Jinja": (
        workflows,
        {"spec": {"templates": [{"steps": [[{"withParam": "[{% for x in y %}]"}]]}]}},
        BARE,
        "which Argo does not support",
    ),
    "unused parameters": (
        workflows,
        {"spec": {"arguments": {"parameters": [{"name": "rate"}]}}},
        BARE,
        "nothing reads rate",
    ),
    "resources of a step": (
        pipelines,
        pipeline(taskSpec={"steps": [{"resources": {}}]}),
        BARE,
        "computeResources",
    ),
    "tolerations of a task": (pipelines, pipeline(taskSpec={"tolerations": []}), BARE, "podTemplate"),
    "a folder that is not shared": (
        pipelines,
        pipeline(taskSpec={"volumes": [{"emptyDir": {}}]}),
        BARE,
        "declare a workspace",
    ),
}
NO_ADVICE: dict[str, tuple[Check, Obj, FakeContext]] = {
    "variables by which mpirun runs as root": (
        mpi_launchers,
        job(
            container(
                command=["mpirun", "x"], env=[{"name": f"OMPI_ALLOW_RUN_AS_ROOT{end}"} for end in ("", "_CONFIRM")]
            )
        ),
        BARE,
    ),
    "mpirun of a pod that may not be root": (
        mpi_launchers,
        job(container(command=["mpirun", "x"]), securityContext={"runAsNonRoot": True}),
        BARE,
    ),
    "the whole product name": (product_names, pod(nodeSelector=A100), BARE),
    "a name that a node does carry": (
        product_names,
        pod(nodeSelector={"nvidia.com/gpu.product": "A100-SXM4-80GB"}),
        FakeContext(nodes=(AdvisedNode({"nvidia.com/gpu.product": "A100-SXM4-80GB"}),)),
    ),
    "fewer GPUs than are asked for": (strict_counts, counting("Gt", "3", 4), BARE),
    "a label of some node": (unknown_node_labels, job(nodeSelector={"nvidia.com/gpu.count": "9"}), BARE),
    "a cluster without nodes": (unknown_node_labels, job(nodeSelector={"a": "b"}), FakeContext(nodes=())),
    "pods that repel their like": (one_sided_anti_affinity, repelling(kind="training"), BARE),
    "pods that tolerate the taint": (
        untolerated,
        job(tolerations=[{"key": "nvidia.com/gpu", "operator": "Exists"}]),
        TAINTED,
    ),
    "pods that tolerate the taint of one node": (untolerated, job(tolerations=[{"key": "team", "value": "b"}]), TEAMS),
    "one node that is not tainted": (
        untolerated,
        job(),
        FakeContext(nodes=(AdvisedNode(A100, (GPU_TAINT,)), AdvisedNode(A100))),
    ),
    "a meeting point": (launchers, job(container(1, command=[*TORCHRUN, "--rdzv_endpoint=m:1"])), BARE),
    "pods with a rendezvous annotation": (launchers, _told(job(container(1, command=TORCHRUN))), BARE),
    "one node": (launchers, job(container(1, command=["torchrun", "--nnodes=1"])), BARE),
    "a variable that is set": (
        unset_variables,
        job(container(args=["$(RANK)"], env=[{"name": "RANK", "value": "0"}])),
        BARE,
    ),
    "an escaped variable": (unset_variables, job(container(args=["$$(RANK)"])), BARE),
    "a master with a Service": (
        master_addresses,
        with_env("MASTER_ADDR", "master"),
        FakeContext((SERVICE, named("master"))),
    ),
    "no devices": (visible_devices, with_env("NVIDIA_VISIBLE_DEVICES", "void"), BARE),
    "a launcher for eight GPUs": (idle_gpus, job(container(8, command=["torchrun", "x"])), BARE),
    "a ConfigMap that is there": (
        missing_references,
        job(volumes=[{"configMap": {"name": "c"}}]),
        FakeContext((CONFIG_MAP, named("c"))),
    ),
    "hardened pods": (pod_security, job(HARDENED), FakeContext(RESTRICTED)),
    "a namespace without a level": (pod_security, job(), BARE),
    "a queue for all namespaces": (misread_fields, queue(namespaceSelector={}), BARE),
    "a queue that is there": (missing_queues, labelled(queue="q"), FakeContext((LOCAL_QUEUE, named("q")))),
    "a class without a queue": (missing_queues, labelled(priority="p"), BARE),
    "a queue that a label names": (
        misplaced_queue_names,
        {**job(), "apiVersion": "batch/v1", "metadata": {"name": "j", "labels": {QUEUE_NAME: "q"}}},
        BARE,
    ),
    "a queue that cannot be read": (misread_fields, queue(resourceGroups=7), BARE),
    "a flavor of a whole product name": (
        flavor_products,
        flavor(**{"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"}),
        BARE,
    ),
    "a spread of its own pods": (spreading, spread(app="a"), BARE),
    "a flavor for everywhere": (flavors_without_nodes, flavor(), BARE),
    "requests": (
        uncounted_limits,
        named("q", spec={"hard": {"requests.nvidia.com/gpu": "4", "limits.cpu": "1"}}),
        BARE,
    ),
    "GPUs counted by priority": (unsupported_scopes, counting_items("requests.nvidia.com/gpu"), BARE),
    "claims counted by another scope": (
        unsupported_scopes,
        counting_items("persistentvolumeclaims", "BestEffort"),
        BARE,
    ),
    "a priority that is there": (
        unknown_priorities,
        scoped("a"),
        FakeContext((PRIORITY_CLASS, named("a", ""))),
    ),
    "memory by default": (default_gpus, limits(default={"memory": "1Gi"}), BARE),
    "a ConfigMap of something else": (scheduler_configurations, {"data": {"a": "b", "c": "kubescheduler"}}, BARE),
    "a ClusterIP service": (
        open_load_balancers,
        named("web", spec={"type": "ClusterIP", "selector": {"app": "web"}}),
        FakeContext(WEB),
    ),
    "a load balancer of another program": (open_load_balancers, BALANCER, BARE),
    "a secret by reference": (plain_secrets, job(container(env=[{"name": "TOKEN", "valueFrom": {}}])), BARE),
}


@pytest.mark.parametrize("case", CASES)
def test_advice_of_each_rule(case: str) -> None:
    rule, obj, context, text = CASES[case]
    (advice,) = [one for one in rule(obj, context) if text in one.message()]
    assert advice.message().startswith(f"{advice.path}: ")
    assert advice.reason in rule.reasons


@pytest.mark.parametrize("case", NO_ADVICE)
def test_no_advice_of_each_rule(case: str) -> None:
    rule, obj, context = NO_ADVICE[case]
    assert list(rule(obj, context)) == []


ODD: tuple[Obj, ...] = (
    {},
    {"spec": None},
    {"spec": [], "metadata": None, "data": 3},
    {"kind": "Pod", "spec": {"containers": [None, {"env": "x", "args": {}, "resources": 7}], "affinity": "no"}},
    {"kind": "Workflow", "spec": {"templates": {"a": 1}, "arguments": []}},
    {"kind": "InferenceService", "spec": {"predictor": {"model": []}}},
    {"spec": {"template": {"spec": {"containers": [{"image": None, "command": "x"}], "tolerations": [{"key": 4}]}}}},
    {"spec": {"limits": {}, "hard": [], "tasks": [{"taskSpec": []}], "nodeLabels": "x", "selector": []}},
)


@pytest.mark.parametrize("check", checks(), ids=lambda check: check.name)
def test_checks_accept_objects_of_any_structure(check: Check) -> None:
    for obj in ODD:
        assert all(advice.message() for advice in check({"metadata": {"name": "x"}, **obj}, BARE))
