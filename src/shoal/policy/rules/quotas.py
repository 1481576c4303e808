"""Checks quotas and limits that do something else than their authors intend."""

from __future__ import annotations

from collections.abc import Iterator

from shoal.policy.advice import Advice, Obj, RuleContext
from shoal.policy.declarations import Change, Rule, check
from shoal.policy.fields import dig, maps, string_keys, strings
from shoal.policy.kinds import LIMIT_RANGE, POD, PRIORITY_CLASS, RESOURCE_QUOTA
from shoal.policy.pod_templates import GPU, gpus_of

_OBJECT_COUNTS = frozenset(
    {"persistentvolumeclaims", "services", "secrets", "configmaps", "replicationcontrollers", "resourcequotas"}
)
_LIMITS, _REQUESTS = "limits.", "requests."


@check(
    Rule(
        "SHL-409",
        "NeverCounted",
        "error",
        fault="a quota names an extended resource otherwise than by its requests, which are all that is counted",
        effect="the quota does not limit anything",
        fix="write requests.nvidia.com/gpu",
        links=("https://kubernetes.io/docs/concepts/policy/resource-quotas/",),
        at_admission="warning",
        bad="""\
apiVersion: v1
kind: ResourceQuota
metadata: {name: gpus}
spec: {hard: {limits.nvidia.com/gpu: "8"}}
""",
        changes=(Change("limits.", "requests."),),
    ),
    kinds=(RESOURCE_QUOTA,),
)
def uncounted_limits(obj: Obj, _: RuleContext) -> Iterator[Advice]:
    """Kubernetes counts only requests of extended resources."""
    hard = string_keys(dig(obj, "spec", "hard"))
    for item in hard:
        resource = item.removeprefix(_LIMITS)
        if "/" in item and not item.startswith((_LIMITS, _REQUESTS, "count/")) and "storageclass" not in item:
            what = "quotas count extended resources by their requests only, so this one limits nothing"
            yield Advice("NeverCounted", f"spec.hard[{item}]", what, f"write {_REQUESTS}{item}")
        if item.startswith(_LIMITS) and "/" in resource:
            other = _REQUESTS + resource
            fix = f"{other} is enforced already; leave this out" if other in hard else f"write {other}"
            what = "limits of extended resources are never counted; they cannot differ from the requests"
            yield Advice("NeverCounted", f"spec.hard[{item}]", what, fix)


@check(
    also={"UnknownPriorityClass": "the named PriorityClass does not exist"},
    kinds=(RESOURCE_QUOTA,),
)
def unknown_priorities(obj: Obj, context: RuleContext) -> Iterator[Advice]:
    for at, one in enumerate(maps(dig(obj, "spec", "scopeSelector", "matchExpressions"))):
        names = strings(one.get("values"))
        if one.get("scopeName") != "PriorityClass" or one.get("operator") != "In":
            continue
        lacking = [name for name in names if context.lacks(PRIORITY_CLASS, "", name)]
        if lacking:
            rest = "" if len(lacking) < len(names) else ", so no pod counts"
            yield Advice(
                "UnknownPriorityClass",
                f"spec.scopeSelector.matchExpressions[{at}].values",
                f"PriorityClass {' or '.join(lacking)} not found{rest}: pods are counted by their priorityClassName, "
                "not by a WorkloadPriorityClass",
                "create the PriorityClass and name it in the pods",
            )


@check(
    Rule(
        "SHL-410",
        "UnsupportedScope",
        "error",
        fault="a quota with a PriorityClass scope counts objects other than pods",
        effect="the API server refuses the quota",
        fix="write two quotas, and the other resources in the one without a scope",
        links=("https://kubernetes.io/docs/concepts/policy/resource-quotas/",),
        at_admission="warning",
        bad="""\
apiVersion: v1
kind: ResourceQuota
metadata: {name: claims}
spec:
  hard: {persistentvolumeclaims: "4"}
  scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: Exists}]}
""",
        changes=(Change('persistentvolumeclaims: "4"', 'requests.nvidia.com/gpu: "4"'),),
    ),
    kinds=(RESOURCE_QUOTA,),
)
def unsupported_scopes(obj: Obj, _: RuleContext) -> Iterator[Advice]:
    """A server rejects such a quota, so that this concerns files."""
    scopes = [one.get("scopeName") for one in maps(dig(obj, "spec", "scopeSelector", "matchExpressions"))]
    if "PriorityClass" not in scopes:
        return
    for item in string_keys(dig(obj, "spec", "hard")):
        if item.startswith("count/") or item.partition(".")[0] in _OBJECT_COUNTS:
            yield Advice(
                "UnsupportedScope",
                f"spec.hard[{item}]",
                "the scope PriorityClass applies to pods and their resources only, so the API server rejects the quota",
                f"write two quotas, and {item} in the one without a scope",
            )


@check(
    Rule(
        "SHL-411",
        "GpuByDefault",
        "warning",
        fault="every container gets a GPU by default",
        effect="containers without need of a GPU get one, or stay pending",
        fix="remove the GPU from the defaults, and limit the namespace by a ResourceQuota",
        links=("https://kubernetes.io/docs/concepts/policy/limit-range/",),
        at_admission="warning",
        bad="""\
apiVersion: v1
kind: LimitRange
metadata: {name: defaults}
spec: {limits: [{type: Container, default: {nvidia.com/gpu: "1"}}]}
""",
        changes=(Change('nvidia.com/gpu: "1"', "memory: 1Gi"),),
    ),
    Rule(
        "SHL-412",
        "GpuDemanded",
        "warning",
        fault="every container must have a GPU",
        effect="pods without GPUs are refused in the namespace",
        fix="remove the GPU from the minimum",
        links=("https://kubernetes.io/docs/concepts/policy/limit-range/",),
        at_admission="warning",
        bad="""\
apiVersion: v1
kind: LimitRange
metadata: {name: defaults}
spec: {limits: [{type: Container, min: {nvidia.com/gpu: "1"}}]}
""",
        changes=(Change('nvidia.com/gpu: "1"', "memory: 1Mi"),),
    ),
    kinds=(LIMIT_RANGE,),
)
def default_gpus(obj: Obj, context: RuleContext) -> Iterator[Advice]:
    """A LimitRange applies to every container, also to sidecars and CPU pods."""
    for at, limit in enumerate(maps(dig(obj, "spec", "limits"))):
        if limit.get("type") != "Container":
            continue
        here = f"spec.limits[{at}]"
        default = next((field for field in ("default", "defaultRequest") if GPU in string_keys(limit.get(field))), "")
        if default:
            yield Advice(
                "GpuByDefault",
                f"{here}.{default}[{GPU}]",
                "every container that requests no GPU gets one, also sidecars and CPU pods"
                + _now(context, str(dig(obj, "metadata", "namespace"))),
                "remove the GPU from the defaults; limit the GPUs of the namespace by a ResourceQuota",
            )
        if str(string_keys(limit.get("min")).get(GPU, "0")) != "0":
            yield Advice(
                "GpuDemanded",
                f"{here}.min[{GPU}]",
                "containers without a GPU are rejected or get one",
                "remove it, so that CPU pods can run in this namespace",
            )


def _now(context: RuleContext, namespace: str) -> str:
    count = sum(
        not gpus_of(container)
        for pod in context.all(POD, namespace)
        for container in maps(dig(pod, "spec", "containers"))
    )
    if not count:
        return ""
    return f"; {count} container{'s' if count > 1 else ''} in this namespace would get one when recreated"
