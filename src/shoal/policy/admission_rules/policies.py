"""ValidatingAdmissionPolicies of the stateless rules, and their bindings to namespaces.

Guarantees: a policy per rule, so that a fault of one does not affect the others. Kubernetes evaluates them, so they
work while Shoal does not run, and no object waits for a process. An update that does not change the pod or the template
is never refused: controllers must be able to remove finalizers of objects that are older than a rule.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from shoal.policy.admission_rules.modes import ENFORCE, MODE_LABEL, OFF, WARN, RuleModes, rule_label
from shoal.policy.admission_rules.pod_expressions import variables_of
from shoal.policy.catalogue import policy_checks, rules
from shoal.policy.declarations import PodCheck, Policy

Obj = dict[str, Any]
API_VERSION: Final = "admissionregistration.k8s.io/v1"
LABELS: Final = {"app.kubernetes.io/managed-by": "shoal", "app.kubernetes.io/component": "admission-rules"}
"""Of all generated objects."""
NAME: Final = "kubernetes.io/metadata.name"
_ACTIONS: Final = {WARN: ["Warn"], ENFORCE: ["Deny"]}
_WRITES: Final = ["CREATE", "UPDATE"]
_UNCHANGED: Final = (
    "variables.former != null && variables.former.spec == variables.template.spec"
    " && variables.former.?metadata.?annotations == variables.template.?metadata.?annotations"
)
RESOURCE_RULES: Final[list[Obj]] = [
    {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]},
    # Containers that are added to a running pod.
    {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["pods/ephemeralcontainers"]},
    {
        "apiGroups": ["apps"],
        "apiVersions": ["v1"],
        "operations": _WRITES,
        "resources": ["deployments", "statefulsets", "daemonsets", "replicasets"],
    },
    {"apiGroups": ["batch"], "apiVersions": ["v1"], "operations": _WRITES, "resources": ["jobs", "cronjobs"]},
]
_DATA_RULES: Final[list[Obj]] = [
    {"apiGroups": [""], "apiVersions": ["v1"], "operations": _WRITES, "resources": ["configmaps", "secrets"]}
]


class AdmissionPolicy(msgspec.Struct, frozen=True):
    """A policy and its bindings, as whole objects."""

    policy: Obj
    bindings: tuple[Obj, ...]


def validating_policies(modes: RuleModes) -> list[AdmissionPolicy]:
    declared = [
        (each.rules[0].reason, policy) for each in policy_checks() if (policy := each.rules[0].policy) is not None
    ]
    of_pods = [_pod_policy(reason, policy, modes) for reason, policy in declared]
    of_data = [
        _data_policy(reason, policy, policy.data_check, modes) for reason, policy in declared if policy.data_check
    ]
    return [*of_pods, *of_data]


def policy_name(reason: str) -> str:
    return f"shoal-rule-{rules()[reason].id.lower()}"


def failure_policy(policy: Policy) -> str:
    """What happens to an object of which an expression cannot be evaluated."""
    return "Ignore" if policy.is_failure_ignored else "Fail"


def outside(namespaces: Sequence[str]) -> Obj:
    """The selector of all other namespaces."""
    return {"matchExpressions": [{"key": NAME, "operator": "NotIn", "values": list(namespaces)}]}


def _pod_policy(reason: str, policy: Policy, modes: RuleModes) -> AdmissionPolicy:
    texts = [each.expression for each in policy.validations]
    spec: Obj = {
        "failurePolicy": failure_policy(policy),
        "matchConstraints": {"namespaceSelector": outside(modes.excluded), "resourceRules": RESOURCE_RULES},
        "variables": variables_of([*texts, _UNCHANGED]),
        "validations": list(_validations(policy)),
    }
    return _bound(reason, policy_name(reason), spec, modes)


def _data_policy(reason: str, policy: Policy, check: PodCheck, modes: RuleModes) -> AdmissionPolicy:
    spec: Obj = {
        "failurePolicy": failure_policy(policy),
        "matchConstraints": {"namespaceSelector": outside(modes.excluded), "resourceRules": _DATA_RULES},
        "validations": [{"expression": check.expression, "message": check.message, "reason": "Forbidden"}],
    }
    return _bound(reason, f"{policy_name(reason)}-data", spec, modes)


def _bound(reason: str, name: str, spec: Obj, modes: RuleModes) -> AdmissionPolicy:
    entry = rules()[reason]
    note = {"shoal.dev/rule": f"{entry.id} {reason}: {entry.effect}"}
    meta = {"name": name, "labels": dict(LABELS), "annotations": note}
    policy = {"apiVersion": API_VERSION, "kind": "ValidatingAdmissionPolicy", "metadata": meta, "spec": spec}
    return AdmissionPolicy(policy, tuple(_bindings(reason, name, modes)))


def _validations(policy: Policy) -> Iterator[Obj]:
    for each in policy.validations:
        made: Obj = {"expression": f"({_UNCHANGED}) || ({each.expression})", "message": each.message}
        if each.message_expression:
            made["messageExpression"] = each.message_expression
        yield {**made, "reason": "Forbidden"}


def _bindings(reason: str, name: str, modes: RuleModes) -> Iterator[Obj]:
    """One for each way in which a namespace may get the mode: selectors know no alternative."""
    own, common = rule_label(reason), MODE_LABEL
    for mode in (WARN, ENFORCE):
        yield _binding(f"{name}-{mode}-by-rule", name, mode, [_has(own, mode)])
        yield _binding(f"{name}-{mode}-by-mode", name, mode, [_lacks(own), _has(common, mode)])
    configured = modes.configured(reason)
    if configured != OFF:
        yield _binding(f"{name}-{configured}", name, configured, [_lacks(own), _lacks(common)])


def _has(label: str, value: str) -> Obj:
    return {"key": label, "operator": "In", "values": [value]}


def _lacks(label: str) -> Obj:
    return {"key": label, "operator": "DoesNotExist"}


def _binding(name: str, policy: str, mode: str, expressions: list[Obj]) -> Obj:
    return {
        "apiVersion": API_VERSION,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name, "labels": dict(LABELS)},
        "spec": {
            "policyName": policy,
            "validationActions": _ACTIONS[mode],
            "matchResources": {"namespaceSelector": {"matchExpressions": expressions}},
        },
    }
