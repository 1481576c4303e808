"""Finds names of objects that no object of the files has, while another one has a name like it.

Files beside each other are often alternatives, and much is created elsewhere, so that quite another name says nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from shoal.api.kueue.probable_mistakes import QUEUE_NAME
from shoal.policy.advice import Advice, Obj, RuleContext
from shoal.policy.declarations import Change, CheckOptions, Rule, check
from shoal.policy.fields import dig, maps, string_keys
from shoal.policy.kinds import (
    CLUSTER_QUEUE,
    CLUSTER_WIDE,
    DEPLOYMENT,
    LOCAL_QUEUE,
    RESOURCE_FLAVOR,
    GroupKind,
)
from shoal.policy.object_set import key_of, kind_of
from shoal.policy.pod_references import missing_reference, pod_references
from shoal.policy.pod_templates import PodTemplateView, pod_templates
from shoal.units.near_texts import nearest_name

_CLAIM_TEMPLATE = GroupKind("resource.k8s.io", "ResourceClaimTemplate")


@check(
    Rule(
        "SHL-413",
        "NoSuchClusterQueue",
        "error",
        fault="a LocalQueue names a ClusterQueue that does not exist",
        effect="workloads of the queue are not admitted",
        fix="name a ClusterQueue that exists",
        bad="""\
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: team-a}
spec: {clusterQueue: researhc}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: research}
spec: {namespaceSelector: {}}
""",
        changes=(Change("researhc", "research"),),
    ),
    Rule(
        "SHL-414",
        "NoSuchFlavor",
        "error",
        fault="a ClusterQueue names a ResourceFlavor that does not exist",
        effect="the ClusterQueue is inactive and admits nothing",
        fix="name a ResourceFlavor that exists",
        bad="""\
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: research}
spec:
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: [nvidia.com/gpu]
    flavors: [{name: h10, resources: [{name: nvidia.com/gpu, nominalQuota: 8}]}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: h100}
""",
        changes=(Change("name: h10,", "name: h100,"),),
    ),
    Rule(
        "SHL-330",
        "NoSuchClaimTemplate",
        "error",
        fault="a pod names a ResourceClaimTemplate that does not exist",
        effect="the pods stay pending",
        fix="name a ResourceClaimTemplate of the namespace",
        links=("https://kubernetes.io/docs/concepts/scheduling-eviction/dynamic-resource-allocation/",),
        bad="""\
apiVersion: v1
kind: Pod
metadata: {name: train}
spec:
  containers: [{name: main, image: "registry.example/train:1.4", resources: {claims: [{name: gpu}]}}]
  resourceClaims: [{name: gpu, resourceClaimTemplateName: single-gpus}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: single-gpu}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.nvidia.com}}]}}}
""",
        changes=(Change("single-gpus", "single-gpu"),),
    ),
    Rule(
        "SHL-332",
        "MissingSecret",
        "error",
        fault="a volume or variable names a Secret that does not exist",
        effect="the pods wait in ContainerCreating",
        fix="create the Secret, or correct the name",
        links=("https://kubernetes.io/docs/concepts/configuration/secret/",),
        bad="""\
apiVersion: v1
kind: Pod
metadata: {name: serve}
spec:
  containers:
  - name: main
    image: registry.example/serve:1.4
    env: [{name: HF_TOKEN, valueFrom: {secretKeyRef: {name: huggingfase, key: token}}}]
---
apiVersion: v1
kind: Secret
metadata: {name: huggingface}
stringData: {token: to be replaced}
""",
        changes=(Change("huggingfase", "huggingface"),),
    ),
    also={
        "UnknownPriorityClass": "pods name a PriorityClass that does not exist",
        "MissingServiceAccount": "pods name a ServiceAccount that does not exist",
        "NoSuchLocalQueue": "a queue name leads to no LocalQueue of the namespace",
        "MissingConfigMap": "a volume or variable names a ConfigMap that does not exist",
        "MissingPersistentVolumeClaim": "a volume names a claim that does not exist",
    },
    options=CheckOptions(in_files=True),
)
def misspelled_references(obj: Obj, context: RuleContext) -> Iterator[Advice]:
    yield from _queue_name(obj, context)
    if kind_of(obj) == LOCAL_QUEUE:
        yield from _local_queue(obj, context)
    elif kind_of(obj) == CLUSTER_QUEUE:
        yield from _cluster_queue(obj, context)
    for template in pod_templates(obj):
        yield from _references(obj, template, context)
        yield from _claims(obj, template, context)


def _claims(obj: Obj, template: PodTemplateView, context: RuleContext) -> Iterator[Advice]:
    for at, claim in enumerate(maps(template.spec.get("resourceClaims"))):
        name, namespace = claim.get("resourceClaimTemplateName"), key_of(obj)[0]
        if isinstance(name, str) and _is_misspelled(context, _CLAIM_TEMPLATE, namespace, name):
            what = f'ResourceClaimTemplate "{name}" not found in namespace {namespace}: the pods stay pending'
            here = f"{template.path}.resourceClaims[{at}].resourceClaimTemplateName"
            yield Advice("NoSuchClaimTemplate", here, what, "name an existing template")


def _references(obj: Obj, template: PodTemplateView, context: RuleContext) -> Iterator[Advice]:
    """For kinds of Kubernetes; those of other projects have a rule that runs in clusters too."""
    if kind_of(obj).group not in ("", "apps", "batch"):
        return
    for path, kind, name in pod_references(template):
        namespace = "" if kind in CLUSTER_WIDE else key_of(obj)[0]
        if _is_misspelled(context, kind, namespace, name):
            yield missing_reference(path, kind, name, namespace, "name an existing one")


def _is_misspelled(context: RuleContext, kind: GroupKind, namespace: str, name: str) -> bool:
    """Whether the set has another object with a name like this one."""
    if not context.lacks(kind, namespace, name):
        return False
    return bool(nearest_name(name, {str(dig(each, "metadata", "name")) for each in context.all(kind, namespace)}))


def _queue_name(obj: Obj, context: RuleContext) -> Iterator[Advice]:
    """Deployments have a rule of their own, which runs in clusters too."""
    name, namespace = string_keys(dig(obj, "metadata", "labels")).get(QUEUE_NAME), key_of(obj)[0]
    if kind_of(obj) != DEPLOYMENT and isinstance(name, str) and _is_misspelled(context, LOCAL_QUEUE, namespace, name):
        what = f'LocalQueue "{name}" not found in namespace {namespace}: the workload is not admitted'
        yield Advice("NoSuchLocalQueue", f"metadata.labels[{QUEUE_NAME}]", what, "name a LocalQueue of the namespace")


def _local_queue(obj: Obj, context: RuleContext) -> Iterator[Advice]:
    name = dig(obj, "spec", "clusterQueue")
    if isinstance(name, str) and _is_misspelled(context, CLUSTER_QUEUE, "", name):
        what = f'ClusterQueue "{name}" not found: workloads of the queue are not admitted'
        yield Advice("NoSuchClusterQueue", "spec.clusterQueue", what, "name an existing ClusterQueue")


def _cluster_queue(obj: Obj, context: RuleContext) -> Iterator[Advice]:
    for row, group in enumerate(maps(dig(obj, "spec", "resourceGroups"))):
        for at, flavor in enumerate(maps(group.get("flavors"))):
            name = flavor.get("name")
            if isinstance(name, str) and _is_misspelled(context, RESOURCE_FLAVOR, "", name):
                here = f"spec.resourceGroups[{row}].flavors[{at}].name"
                what = f'ResourceFlavor "{name}" not found: the queue admits nothing'
                yield Advice("NoSuchFlavor", here, what, "name an existing ResourceFlavor")
