"""Checks whether the pods of a workload fit in the quotas of its namespace, before its controller creates them.

The API server checks pods themselves. A workload is accepted without a check, and only the events of a ReplicaSet or a
Job name the quota that refuses its pods.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from shoal.policy.admission.pod_resources import pod_amounts
from shoal.policy.advice import Advice, Obj, RuleContext
from shoal.policy.declarations import Change, CheckOptions, Rule, check
from shoal.policy.fields import dig, maps, string_keys
from shoal.policy.kinds import DEPLOYMENT, JOB, RESOURCE_QUOTA, STATEFUL_SET, WITH_PODS
from shoal.policy.object_set import key_of, kind_of
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
        fault="the pods of a workload request more than a ResourceQuota of the namespace allows",
        effect="the API server refuses the pods of the workload",
        fix="request less, or have the quota raised",
        links=("https://kubernetes.io/docs/concepts/policy/resource-quotas/",),
        at_admission="webhook",
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
    count = dig(obj, "spec", field) if field else None
    pods = count if isinstance(count, int) and count > 0 else 1
    for template in pod_templates(obj):
        for quota in quotas:
            yield from _exceeded(quota, template.path, _requests(template.spec), pods)


def _exceeded(quota: Obj, path: str, requests: Mapping[str, Quantity], pods: int) -> Iterator[Advice]:
    name = str(dig(quota, "metadata", "name"))
    for item, written in string_keys(dig(quota, "spec", "hard")).items():
        amount = requests.get(item.removeprefix(_REQUESTS)) if item.startswith(_REQUESTS) else None
        hard = _quantity(written)
        if amount is None or hard is None or amount.nano * pods <= hard.nano:
            continue
        asked = str(amount) if pods == 1 else f"{pods} pods with {amount} each"
        what = f"{asked} of {item.removeprefix(_REQUESTS)}, and the ResourceQuota {name} allows {hard} in all"
        yield Advice("OverQuota", f"{path}.containers", what, "request less, or have the quota raised")


def _requests(spec: Obj) -> Mapping[str, Quantity]:
    try:
        # A limit without a request is a request.
        return {**pod_amounts(spec, "limits"), **pod_amounts(spec, "requests")}
    except (UserError, AttributeError, TypeError):
        return {}


def _quantity(written: Any) -> Quantity | None:
    try:
        return Quantity.parse(str(written))
    except UserError:
        return None


def _has_scopes(quota: Obj) -> bool:
    return bool(dig(quota, "spec", "scopes")) or bool(maps(dig(quota, "spec", "scopeSelector", "matchExpressions")))
