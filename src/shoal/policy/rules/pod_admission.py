"""Checks what keeps pods from being created or started: missing objects, and the level of Pod Security."""

from __future__ import annotations

from collections.abc import Iterator

from shoal.policy.advice import Advice, Obj, RuleContext
from shoal.policy.declarations import Change, CheckOptions, Rule, check
from shoal.policy.fields import dig, string_keys
from shoal.policy.kinds import CLUSTER_WIDE, NAMESPACE, OPERATED, SECRET, WITH_PODS, GroupKind
from shoal.policy.object_set import key_of
from shoal.policy.pod_references import missing_reference, pod_references
from shoal.policy.pod_templates import pod_templates


@check(
    Rule(
        "SHL-309",
        "MissingConfigMap",
        "error",
        fault="a volume or variable names a ConfigMap that does not exist",
        effect="the pods wait in ContainerCreating",
        fix="create the ConfigMap, or correct the name",
        evidence="cluster",
        links=("https://kubernetes.io/docs/concepts/configuration/configmap/",),
        at_admission="warning",
        bad="""\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: train}
spec:
  pytorchReplicaSpecs:
    Worker:
      template:
        spec:
          containers: [{name: pytorch, image: "registry.example/train:1.4"}]
          volumes: [{name: settings, configMap: {name: setings}}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {batch: "8"}
""",
        changes=(Change("setings", "settings"),),
    ),
    Rule(
        "SHL-310",
        "MissingPersistentVolumeClaim",
        "error",
        fault="a volume names a claim that does not exist",
        effect="the pods stay pending",
        fix="create the claim, or correct the name",
        evidence="cluster",
        links=("https://kubernetes.io/docs/concepts/storage/persistent-volumes/",),
        at_admission="warning",
        bad="""\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: train}
spec:
  pytorchReplicaSpecs:
    Worker:
      template:
        spec:
          containers: [{name: pytorch, image: "registry.example/train:1.4"}]
          volumes: [{name: data, persistentVolumeClaim: {claimName: dataset}}]
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: datasets}
spec: {accessModes: [ReadWriteMany], resources: {requests: {storage: 1Ti}}}
""",
        changes=(Change("claimName: dataset}", "claimName: datasets}"),),
    ),
    Rule(
        "SHL-333",
        "MissingServiceAccount",
        "error",
        fault="pods name a ServiceAccount that does not exist",
        effect="the API server refuses the pods when they are created",
        fix="create the ServiceAccount, or correct the name",
        evidence="cluster",
        links=("https://kubernetes.io/docs/concepts/security/service-accounts/",),
        at_admission="warning",
        bad="""\
apiVersion: batch/v1
kind: Job
metadata: {name: train}
spec:
  template:
    spec:
      restartPolicy: Never
      serviceAccountName: trainers
      containers: [{name: main, image: "registry.example/train:1.4"}]
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: trainer}
""",
        changes=(Change("serviceAccountName: trainers", "serviceAccountName: trainer"),),
    ),
    also={"UnknownPriorityClass": "pods name a PriorityClass that does not exist"},
    kinds=OPERATED,
    options=CheckOptions(kinds_at_admission=WITH_PODS),
)
def missing_references(obj: Obj, context: RuleContext) -> Iterator[Advice]:
    """The advisor reports them for kinds whose pods an operator creates: of other pods the Events say so. When an
    object is created, they are reported for all kinds."""
    namespace = key_of(obj)[0]
    reported: set[tuple[GroupKind, str]] = set()
    for template in pod_templates(obj):
        for path, kind, name in pod_references(template):
            if kind == SECRET:
                # Shoal does not read them.
                continue
            where = "" if kind in CLUSTER_WIDE else namespace
            if (kind, name) not in reported and context.lacks(kind, where, name):
                reported.add((kind, name))
                yield missing_reference(path, kind, name, where)


@check(
    Rule(
        "SHL-312",
        "PodSecurity",
        "error",
        fault="the namespace enforces the level restricted, and the pods do not comply",
        effect="the pods are refused when they are created",
        fix="set runAsNonRoot, allowPrivilegeEscalation: false, seccompProfile, and drop all capabilities",
        evidence="cluster",
        links=("https://kubernetes.io/docs/concepts/security/pod-security-standards/",),
        at_admission="warning",
        bad="""\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: train, namespace: team-a}
spec:
  pytorchReplicaSpecs:
    Worker:
      template:
        spec:
          containers:
          - name: pytorch
            image: registry.example/train:1.4
            securityContext: {runAsNonRoot: true}
---
apiVersion: v1
kind: Namespace
metadata: {name: team-a, labels: {pod-security.kubernetes.io/enforce: restricted}}
""",
        changes=(Change("{runAsNonRoot: true}", "{runAsNonRoot: true, allowPrivilegeEscalation: false}"),),
    ),
    kinds=OPERATED,
)
def pod_security(obj: Obj, context: RuleContext) -> Iterator[Advice]:
    """For kinds whose pods an operator creates: the namespace would reject them later, where few users look."""
    namespace = str(dig(obj, "metadata", "namespace") or "")
    labels = string_keys(dig(context.find(NAMESPACE, "", namespace), "metadata", "labels"))
    if labels.get("pod-security.kubernetes.io/enforce") != "restricted":
        return
    for template in pod_templates(obj):
        everywhere = dig(template.spec, "securityContext", "runAsNonRoot") is True
        for path, container in template.containers():
            inside = dig(container, "securityContext")
            if (everywhere or dig(inside, "runAsNonRoot") is True) and dig(inside, "allowPrivilegeEscalation") is False:
                continue
            yield Advice(
                "PodSecurity",
                f"{path}.securityContext",
                f"namespace {namespace} enforces the pod security level restricted, which refuses such pods",
                "set runAsNonRoot, allowPrivilegeEscalation: false, seccompProfile and drop all capabilities; or "
                "enforce baseline there",
            )
            return
