"""Checks what several pods share: a volume that only one node can mount."""

from __future__ import annotations

from collections.abc import Iterator

from shoal.policy.advice import Advice, Obj, RuleContext
from shoal.policy.declarations import Change, Rule, check
from shoal.policy.fields import dig, maps, string_keys, strings
from shoal.policy.kinds import DEPLOYMENT, JOB, JOB_SET, TRAINING_JOBS, VOLCANO_JOB, VOLUME_CLAIM
from shoal.policy.pod_counts import pods_at_once
from shoal.policy.pod_templates import PodTemplateView, pod_templates

_OF_ONE_NODE, _OF_ONE_POD = "ReadWriteOnce", "ReadWriteOncePod"
_SEVERAL_NODES = frozenset({"ReadWriteMany", "ReadOnlyMany"})
_HOST = "kubernetes.io/hostname"


@check(
    Rule(
        "SHL-334",
        "ClaimOfOneNode",
        "warning",
        fault="several pods share a claim that only one node can mount",
        effect="pods on other nodes wait until the volume is free: a group of pods never starts",
        fix="use a claim with ReadWriteMany, or one claim for each pod",
        links=("https://kubernetes.io/docs/concepts/storage/persistent-volumes/#access-modes",),
        bad="""\
apiVersion: apps/v1
kind: Deployment
metadata: {name: serve}
spec:
  replicas: 2
  selector: {matchLabels: {app: serve}}
  template:
    metadata: {labels: {app: serve}}
    spec:
      containers: [{name: main, image: "registry.example/serve:1.4"}]
      volumes: [{name: models, persistentVolumeClaim: {claimName: models}}]
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: models}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 100Gi}}}
""",
        changes=(Change("ReadWriteOnce", "ReadWriteMany"),),
    ),
    kinds=(DEPLOYMENT, JOB, JOB_SET, VOLCANO_JOB, *TRAINING_JOBS),
)
def shared_claims(obj: Obj, context: RuleContext) -> Iterator[Advice]:
    """A StatefulSet usually has a claim for each pod, from its own templates."""
    namespace = str(dig(obj, "metadata", "namespace") or "")
    users: dict[str, int] = {}
    places: dict[str, str] = {}
    for template in pod_templates(obj):
        if _is_on_one_node(template):
            continue
        for at, volume in enumerate(maps(template.spec.get("volumes"))):
            name = dig(volume, "persistentVolumeClaim", "claimName")
            if isinstance(name, str):
                users[name] = users.get(name, 0) + pods_at_once(obj, template.path)
                places.setdefault(name, f"{template.path}.volumes[{at}].persistentVolumeClaim.claimName")
    for name, pods in users.items():
        claim = context.find(VOLUME_CLAIM, namespace, name)
        modes = strings(dig(claim, "spec", "accessModes"))
        if pods > 1 and modes and not _SEVERAL_NODES & set(modes):
            of = "one pod" if _OF_ONE_POD in modes and _OF_ONE_NODE not in modes else "one node"
            what = f"claim {name} is {modes[0]}: {of} mounts it, and {pods} pods share it, so those elsewhere wait"
            yield Advice(
                "ClaimOfOneNode", places[name], what, "use a claim with ReadWriteMany, or one claim for each pod"
            )


def _is_on_one_node(template: PodTemplateView) -> bool:
    required = dig(template.spec, "affinity", "podAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
    has_name = bool(template.spec.get("nodeName")) or _HOST in string_keys(template.spec.get("nodeSelector"))
    return has_name or any(term.get("topologyKey") == _HOST for term in maps(required))
