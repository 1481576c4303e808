"""Checks whether the pods of a workload fit in the quotas of its namespace, before its controller creates them.

A workload is refused only if one pod alone exceeds a quota: then none is ever created. Of others some pods run.

The API server checks pods themselves. A workload is accepted without a check, and only the events of a ReplicaSet or a
Job name the quota that refuses its pods.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from shoal.policy.advice import Advice, Obj, RuleContext
from shoal.policy.declarations import Change, CheckOptions, Rule, check
from shoal.policy.fields import dig, maps, string_keys
from shoal.policy.kinds import DEPLOYMENT, JOB, RESOURCE_QUOTA, STATEFUL_SET, WITH_PODS
from shoal.policy.object_set import key_of, kind_of
from shoal.policy.pod_counts import pod_requests, pods_at_once
from shoal.policy.pod_templates import pod_templates
from shoal.units.errors import UserError
from shoal.units.quantity import Quantity

_COUNTS: Final = {DEPLOYMENT: "replicas", STATEFUL_SET: "replicas", JOB: "parallelism"}
_REQUESTS: Final = "requests."


@check(
    Rule(
        "SHL-421",
        "OverQuota",
        "error",
        fault="one pod requests more than a ResourceQuota of the namespace allows",
        effect="the API server refuses all pods of the workload",
        fix="request less, or have the quota raised",
        links=("https://kubernetes.io/docs/concepts/policy/resource-quotas/",),
        at_admission="webhook",
        bad="""\
apiVersion: batch/v1
kind: Job
metadata: {name: train, namespace: team-a}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: "registry.example/train:1.4", resources: {limits: {nvidia.com/gpu: 8}}}]
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: gpus, namespace: team-a}
spec: {hard: {requests.nvidia.com/gpu: "4"}}
""",
        changes=(Change("limits: {nvidia.com/gpu: 8}", "limits: {nvidia.com/gpu: 4}"),),
    ),
    Rule(
        "SHL-423",
        "PartlyOverQuota",
        "warning",
        fault="all pods of a workload request more than a ResourceQuota of the namespace allows, and one does not",
        effect="some pods run, and the API server refuses the others until these have ended",
        fix="run fewer pods at a time, or have the quota raised",
        links=("https://kubernetes.io/docs/concepts/policy/resource-quotas/",),
        at_admission="warning",
        bad="""\
apiVersion: batch/v1
kind: Job
metadata: {name: train, namespace: team-a}
spec:
  parallelism: 2
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: "registry.example/train:1.4", resources: {limits: {nvidia.com/gpu: 8}}}]
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: gpus, namespace: team-a}
spec: {hard: {requests.nvidia.com/gpu: "8"}}
""",
        changes=(Change("parallelism: 2", "parallelism: 1"),),
    ),
    options=CheckOptions(in_files=True, kinds_at_admission=WITH_PODS),
)
def over_quota(obj: Obj, context: RuleContext) -> Iterator[Advice]:
    """Quotas with scopes are not checked: they count some pods only."""
    if obj.get("kind") == "Pod":
        return
    namespace, _ = key_of(obj)
    quotas = [one for one in context.all(RESOURCE_QUOTA, namespace) if not _has_scopes(one)]
    if not quotas:
        return
    field = _COUNTS.get(kind_of(obj), "")
    for template in pod_templates(obj):
        requests, pods = pod_requests(template.spec), pods_at_once(obj, template.path) if field else 1
        for quota in quotas:
            yield from _exceeded(quota, template.path, requests)
            if pods > 1:
                yield from _exceeded_by_all(quota, f"spec.{field}", requests, pods)


def _exceeded(quota: Obj, path: str, requests: Mapping[str, Quantity]) -> Iterator[Advice]:
    """By one pod."""
    for item, amount, hard in _counted(quota, requests):
        if amount.nano > hard.nano:
            what = f"{amount} of {item}, and the ResourceQuota {_name(quota)} allows {hard} in all"
            yield Advice("OverQuota", f"{path}.containers", what, "request less, or have the quota raised")


def _exceeded_by_all(quota: Obj, path: str, requests: Mapping[str, Quantity], pods: int) -> Iterator[Advice]:
    """Only by several pods: a Job runs them one after the other, and a Deployment with fewer."""
    for item, amount, hard in _counted(quota, requests):
        if amount.nano <= hard.nano < amount.nano * pods:
            fitting = hard.nano // amount.nano
            what = (
                f"{pods} pods with {amount} of {item} each, and the ResourceQuota {_name(quota)} allows {hard} in all: "
                f"{fitting} run{'s' if fitting == 1 else ''} at a time"
            )
            yield Advice("PartlyOverQuota", path, what, f"write {fitting}, or have the quota raised")


def _counted(quota: Obj, requests: Mapping[str, Quantity]) -> Iterator[tuple[str, Quantity, Quantity]]:
    """What a pod requests of an item, and what the quota allows."""
    for written, limit in string_keys(dig(quota, "spec", "hard")).items():
        item = written.removeprefix(_REQUESTS)
        amount = requests.get(item) if written.startswith(_REQUESTS) else None
        hard = _quantity(limit)
        if amount is not None and hard is not None:
            yield item, amount, hard


def _name(quota: Obj) -> str:
    return str(dig(quota, "metadata", "name"))


def _quantity(written: Any) -> Quantity | None:
    try:
        return Quantity.parse(str(written))
    except UserError:
        return None


def _has_scopes(quota: Obj) -> bool:
    return bool(dig(quota, "spec", "scopes")) or bool(maps(dig(quota, "spec", "scopeSelector", "matchExpressions")))
