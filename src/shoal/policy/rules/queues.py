"""Checks queues, flavors and classes for fields that do something else than their names suggest."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from shoal.api.decode import read
from shoal.api.kueue.priority_classes import PRIORITY_CLASS_LABEL
from shoal.api.kueue.probable_mistakes import QUEUE_NAME, misplaced_queue, slips
from shoal.api.taints import HARD_EFFECTS, Toleration
from shoal.data.gpus import PRODUCT_LABEL, is_short_product, meant_products
from shoal.policy.advice import Advice, Obj, RuleContext
from shoal.policy.declarations import Change, CheckOptions, Rule, check
from shoal.policy.fields import dig, maps, string_keys
from shoal.policy.kinds import (
    CLUSTER_QUEUE,
    DEPLOYMENT,
    JOB,
    LOCAL_QUEUE,
    OPERATED,
    PRIORITY_CLASS,
    RESOURCE_FLAVOR,
    VOLCANO_POD_GROUP,
    VOLCANO_QUEUE,
    WITH_PODS,
    WORKLOAD_PRIORITY_CLASS,
)
from shoal.units.errors import UserError

_MOST_NAMED = 5
_REASONS = {
    "spec.namespaceSelector": "NoNamespaceSelector",
    "spec.cohort": "OldFieldName",
    "spec.value": "MisplacedValue",
}


@check(
    Rule(
        "SHL-404",
        "NoNamespaceSelector",
        "error",
        fault="a ClusterQueue has no namespaceSelector, so no namespace may use it",
        effect="no workload can be admitted",
        fix="write namespaceSelector: {} to let every namespace in",
        links=("https://kueue.sigs.k8s.io/docs/concepts/cluster_queue/",),
        bad="""\
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: research}
spec:
  queueingStrategy: BestEffortFIFO
  resourceGroups:
  - coveredResources: [nvidia.com/gpu]
    flavors: [{name: h100, resources: [{name: nvidia.com/gpu, nominalQuota: 8}]}]
""",
        changes=(
            Change(
                "queueingStrategy",
                """namespaceSelector: {}
  queueingStrategy""",
            ),
        ),
    ),
    Rule(
        "SHL-405",
        "MisplacedValue",
        "error",
        fault="the value of a WorkloadPriorityClass is below spec",
        effect="the API server refuses the object",
        fix="write value beside metadata",
        links=("https://kueue.sigs.k8s.io/docs/concepts/workload_priority_class/",),
        bad="""\
apiVersion: kueue.x-k8s.io/v1beta2
kind: WorkloadPriorityClass
metadata: {name: high}
spec: {value: 100}
""",
        changes=(Change("spec: {value: 100}", "value: 100"),),
    ),
    also={"OldFieldName": "a field has the name of an older version"},
    kinds=(CLUSTER_QUEUE, WORKLOAD_PRIORITY_CLASS),
)
def misread_fields(obj: Obj, _: RuleContext) -> Iterator[Advice]:
    """The warnings of `shoal decide` for the same object. The admission loop reports objects that cannot be read."""
    try:
        found = read(msgspec.json.encode(obj))
    except UserError:
        return
    for document in found:
        for slip in slips(document.value):
            if (reason := _REASONS.get(slip.path)) is not None:
                yield Advice(reason, slip.path, slip.what, slip.fix)


@check(
    Rule(
        "SHL-403",
        "MisplacedQueueName",
        "error",
        fault="the name of the queue is not a label of the job itself",
        effect="Kueue does not see the name, so the job starts without quota, or waits for ever",
        fix="write kueue.x-k8s.io/queue-name under metadata.labels of the job",
        links=("https://kueue.sigs.k8s.io/docs/tasks/run/",),
        at_admission="warning",
        bad="""\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: train, annotations: {kueue.x-k8s.io/queue-name: team-a}}
spec:
  pytorchReplicaSpecs:
    Worker:
      template:
        spec: {containers: [{name: pytorch, image: "registry.example/train:1.4"}]}
""",
        changes=(Change("annotations:", "labels:"),),
    ),
    kinds=(JOB, *OPERATED),
)
def misplaced_queue_names(obj: Obj, _: RuleContext) -> Iterator[Advice]:
    """The name of a queue is a label of the job itself."""
    try:
        found = read(msgspec.json.encode(obj))
    except UserError:
        return
    for document in found:
        queue = misplaced_queue(document.value)
        if queue is not None:
            place = "is a label of the pod template" if queue.is_label else "is an annotation"
            what = f"queue {queue.name} {place}, not a label of the job itself: Shoal uses it, Kueue does not"
            yield Advice("MisplacedQueueName", queue.path, what, f"write {QUEUE_NAME} under metadata.labels of the job")


@check(
    Rule(
        "SHL-401",
        "NoSuchLocalQueue",
        "error",
        fault="the named LocalQueue does not exist",
        effect="the workload is not admitted",
        fix="create the LocalQueue, or name one of the namespace",
        evidence="cluster",
        links=("https://kueue.sigs.k8s.io/docs/concepts/local_queue/",),
        at_admission="warning",
        bad="""\
apiVersion: apps/v1
kind: Deployment
metadata: {name: serve, labels: {kueue.x-k8s.io/queue-name: team-b}}
spec:
  selector: {matchLabels: {app: serve}}
  template:
    metadata: {labels: {app: serve}}
    spec: {containers: [{name: main, image: "registry.example/serve:1.4"}]}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: team-a}
spec: {clusterQueue: research}
""",
        changes=(Change("team-b", "team-a"),),
    ),
    Rule(
        "SHL-402",
        "NoSuchPriorityClass",
        "error",
        fault="the named WorkloadPriorityClass does not exist",
        effect="the workload is not created, or has no priority",
        fix="create the WorkloadPriorityClass, or leave the label out",
        evidence="cluster",
        links=("https://kueue.sigs.k8s.io/docs/concepts/workload_priority_class/",),
        at_admission="warning",
        bad="""\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: serve
  labels: {kueue.x-k8s.io/queue-name: team-a, kueue.x-k8s.io/priority-class: urgent}
spec:
  selector: {matchLabels: {app: serve}}
  template:
    metadata: {labels: {app: serve}}
    spec: {containers: [{name: main, image: "registry.example/serve:1.4"}]}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: WorkloadPriorityClass
metadata: {name: high}
value: 100
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: team-a}
spec: {clusterQueue: research}
""",
        changes=(Change("priority-class: urgent", "priority-class: high"),),
    ),
    kinds=(DEPLOYMENT,),
    options=CheckOptions(kinds_at_admission=WITH_PODS),
)
def missing_queues(obj: Obj, context: RuleContext) -> Iterator[Advice]:
    """The advisor reports them for kinds whose pods are queued one by one: the pods have the condition too, but not
    their owner. When an object is created, they are reported for all kinds."""
    effect = "the pods are held" if obj.get("kind") == "Deployment" else "the workload is not admitted"
    labels = string_keys(dig(obj, "metadata", "labels"))
    namespace = str(dig(obj, "metadata", "namespace") or "")
    queue, priority = labels.get(QUEUE_NAME), labels.get(PRIORITY_CLASS_LABEL)
    if isinstance(queue, str) and queue and context.lacks(LOCAL_QUEUE, namespace, queue):
        what = f'LocalQueue "{queue}" not found in namespace {namespace}: {effect}'
        there = sorted(str(dig(one, "metadata", "name")) for one in context.all(LOCAL_QUEUE, namespace))
        fix = f"create it, or use one that exists ({', '.join(there[:_MOST_NAMED])})" if there else "create it"
        place, without_names = f"metadata.labels[{QUEUE_NAME}]", "create it, or use one that exists"
        yield Advice("NoSuchLocalQueue", place, what, fix, fix_at_admission=without_names)
    if isinstance(priority, str) and priority and queue and context.lacks(WORKLOAD_PRIORITY_CLASS, "", priority):
        what = f'WorkloadPriorityClass "{priority}" not found: {effect}'
        yield Advice(
            "NoSuchPriorityClass", f"metadata.labels[{PRIORITY_CLASS_LABEL}]", what, "create it, or leave it out"
        )


@check(
    Rule(
        "SHL-406",
        "NoNodes",
        "warning",
        fault="no node has the labels of the flavor",
        effect="admitted pods stay pending",
        fix="correct the labels, or label the nodes",
        evidence="cluster",
        links=("https://kueue.sigs.k8s.io/docs/concepts/resource_flavor/",),
        bad="""\
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: h100}
spec: {nodeLabels: {gpu-type: h100}}
---
apiVersion: v1
kind: Node
metadata: {name: gpu-1, labels: {nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3}}
""",
        changes=(Change("gpu-type: h100", "nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3"),),
    ),
    Rule(
        "SHL-407",
        "TaintedNodes",
        "warning",
        fault="all nodes of the flavor have taints, which it does not tolerate",
        effect="admitted pods stay pending unless they tolerate the taint themselves",
        fix="add a toleration for the taint to the flavor",
        evidence="cluster",
        links=("https://kueue.sigs.k8s.io/docs/concepts/resource_flavor/",),
        bad="""\
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: h100}
spec: {nodeLabels: {pool: h100}, tolerations: []}
---
apiVersion: v1
kind: Node
metadata: {name: gpu-1, labels: {pool: h100}}
spec: {taints: [{key: nvidia.com/gpu, value: present, effect: NoSchedule}]}
""",
        changes=(Change("tolerations: []", "tolerations: [{key: nvidia.com/gpu, operator: Exists}]"),),
    ),
    kinds=(RESOURCE_FLAVOR,),
    options=CheckOptions(is_rechecked=True),
)
def flavors_without_nodes(obj: Obj, context: RuleContext) -> Iterator[Advice]:
    """Workloads admitted to such a flavor would need nodes that do not exist or have other taints."""
    wanted = string_keys(dig(obj, "spec", "nodeLabels"))
    nodes = list(context.nodes())
    if not wanted or not nodes:
        return
    matching = [node for node in nodes if wanted.items() <= node.labels.items()]
    if not matching:
        labels = ", ".join(f"{key}={value}" for key, value in wanted.items())
        what = f"no node has {labels}: admitted workloads wait for such a node"
        missing = [key for key in wanted if not any(key in node.labels for node in nodes)]
        fix = f"label the nodes; none has {' or '.join(missing)} at all" if missing else "correct the labels"
        yield Advice("NoNodes", "spec.nodeLabels", what, fix)
        return
    given = [_toleration(one) for one in maps(dig(obj, "spec", "tolerations"))]
    kept_off = [
        next((t for t in node.taints if t.effect in HARD_EFFECTS and not any(one.tolerates(t) for one in given)), None)
        for node in matching
    ]
    taint = kept_off[0]
    declared = {(one.get("key"), one.get("effect")) for one in maps(dig(obj, "spec", "nodeTaints"))}
    if taint is not None and all(kept_off) and (taint.key, taint.effect) not in declared:
        what = f"all of its nodes have taints, the first has {taint}: only pods with their own toleration can run there"
        yield Advice(
            "TaintedNodes", "spec.tolerations", what, f"add a toleration here: key {taint.key}, operator Exists"
        )


def _toleration(written: Obj) -> Toleration:
    try:
        return msgspec.convert(written, Toleration)
    except msgspec.ValidationError:
        return Toleration(key="-")


@check(
    also={"UnknownProductName": "nvidia.com/gpu.product is compared with a name that no driver reports"},
    kinds=(RESOURCE_FLAVOR,),
)
def flavor_products(obj: Obj, _: RuleContext) -> Iterator[Advice]:
    name = string_keys(dig(obj, "spec", "nodeLabels")).get(PRODUCT_LABEL)
    if isinstance(name, str) and is_short_product(name):
        meant = " or ".join(meant_products(name, ()))
        what = f"no driver reports {name}: the names begin with the vendor"
        yield Advice("UnknownProductName", f"spec.nodeLabels[{PRODUCT_LABEL}]", what, f"did you mean {meant}?")


@check(
    Rule(
        "SHL-408",
        "NamesakeQueue",
        "info",
        fault="a ClusterQueue has the same name as the Volcano Queue",
        effect="two unrelated quotas look like one",
        fix="keep one of the queues, or rename one",
        bad="""\
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: research}
spec: {weight: 1}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: research}
spec: {namespaceSelector: {}}
""",
        changes=(
            Change(
                """research}
spec: {weight""",
                """training}
spec: {weight""",
            ),
        ),
    ),
    also={"UnknownField": "Volcano drops a field of the queue"},
    kinds=(VOLCANO_QUEUE,),
    options=CheckOptions(is_rechecked=True),
)
def volcano_queues(obj: Obj, context: RuleContext) -> Iterator[Advice]:
    spec, name = string_keys(obj.get("spec")), str(dig(obj, "metadata", "name"))
    for field, meaning in _EXTENSIONS.items():
        if field in spec:
            what = f"is not a field of Volcano's queues, which drop it; in Shoal {meaning}"
            yield Advice("UnknownField", f"spec.{field}", what, "leave it out where Volcano itself runs")
    if context.find(CLUSTER_QUEUE, "", name) is not None:
        yield Advice(
            "NamesakeQueue",
            "metadata.name",
            f"ClusterQueue {name} has the same name but is not related: quota that both have is counted twice",
            "keep one of them",
        )


_EXTENSIONS = {
    "preemptable": "false protects its pods in every action",
    "preemptionPolicy": "it orders the victims: priority, FIFO or bestFit",
}


@check(
    Rule(
        "SHL-206",
        "UnknownPriorityClass",
        "error",
        fault="the named PriorityClass does not exist",
        effect="pods with an unknown class are refused, and groups get no priority",
        fix="create the PriorityClass, or name one that exists",
        evidence="cluster",
        links=("https://kubernetes.io/docs/concepts/scheduling-eviction/pod-priority-preemption/",),
        at_admission="warning",
        bad="""\
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: train}
spec: {minMember: 2, priorityClassName: urgent}
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: high}
value: 100
""",
        changes=(Change("urgent", "high"),),
    ),
    kinds=(VOLCANO_POD_GROUP,),
)
def pod_groups(obj: Obj, context: RuleContext) -> Iterator[Advice]:
    name = dig(obj, "spec", "priorityClassName")
    if isinstance(name, str) and name and context.lacks(PRIORITY_CLASS, "", name):
        what = f'PriorityClass "{name}" not found: the group has no priority of its own'
        yield Advice("UnknownPriorityClass", "spec.priorityClassName", what, "create it, or leave the name out")
