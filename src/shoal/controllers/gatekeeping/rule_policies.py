"""The admission rules of the catalogue as policies that the installer keeps, and what the webhook is called for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from shoal.client.kind import Kind
from shoal.controllers.gatekeeping.expressions import is_nobodys
from shoal.controllers.gatekeeping.hooks import BESIDE, WebhookAddress
from shoal.controllers.gatekeeping.policies import GROUP, OURS
from shoal.policy.admission_rules.checks import mode_of, reviewed_kinds
from shoal.policy.admission_rules.modes import OFF, RuleModes
from shoal.policy.admission_rules.policies import NAME as NAMESPACE_NAME
from shoal.policy.admission_rules.policies import AdmissionPolicy
from shoal.policy.admission_rules.preview import MORE_KINDS
from shoal.policy.catalogue import at_admission

Obj = dict[str, Any]
RULE_HOOKS = Kind(GROUP, "v1", "validatingwebhookconfigurations", "ValidatingWebhookConfiguration", is_namespaced=False)
RULE_HOOK = "shoal-admission"
RULES_PATH = "/rules"
_TIMEOUT_S = 2


def owned_objects(policies: Iterable[AdmissionPolicy]) -> Iterator[tuple[Obj, list[Obj]]]:
    """Policies with their bindings, with the labels of objects that Shoal may change."""
    for each in policies:
        yield _ours(each.policy), [_ours(binding) for binding in each.bindings]


def _ours(obj: Obj) -> Obj:
    return {"metadata": {**obj["metadata"], "labels": dict(OURS)}, "spec": obj["spec"]}


def rule_configuration(
    address: WebhookAddress,
    bundle: bytes,
    modes: RuleModes,
    namespaces: Mapping[str, Mapping[str, str]],
    *,
    has_policies: bool,
) -> Obj | None:
    """The configuration of the webhook; None if no rule is active in any namespace. `namespaces`: with their labels.

    Its failure policy is `Ignore`: an object is created without the checks while no process of Shoal answers.
    """
    selector = _selector(modes, namespaces, has_policies=has_policies)
    if selector is None:
        return None
    hook: Obj = {
        "name": "rules.admission.shoal.dev",
        "clientConfig": address.client(RULES_PATH, bundle),
        "rules": _rules(has_policies=has_policies),
        "namespaceSelector": selector,
        "matchConditions": [{"name": "is-no-part-of-another-object", "expression": is_nobodys()}],
        "failurePolicy": "Ignore",
        "timeoutSeconds": _TIMEOUT_S,
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    labels = {**OURS, **BESIDE} if address.is_beside else dict(OURS)
    annotations = {"annotations": address.annotations} if address.annotations else {}
    return {"metadata": {"name": RULE_HOOK, "labels": labels, **annotations}, "webhooks": [hook]}


def _selector(modes: RuleModes, namespaces: Mapping[str, Mapping[str, str]], *, has_policies: bool) -> Obj | None:
    reasons = [reason for reason, place in at_admission().items() if place != "policy" or not has_policies]
    active = {name for name, labels in namespaces.items() if _is_active(reasons, modes, name, labels)}
    if any(modes.configured(reason) != OFF for reason in reasons):
        # Also a namespace that is created later.
        left_out = sorted({*modes.excluded, *(name for name in namespaces if name not in active)})
        return {"matchExpressions": [{"key": NAMESPACE_NAME, "operator": "NotIn", "values": left_out}]}
    if not active:
        return None
    return {"matchExpressions": [{"key": NAMESPACE_NAME, "operator": "In", "values": sorted(active)}]}


def _is_active(reasons: Sequence[str], modes: RuleModes, name: str, labels: Mapping[str, str]) -> bool:
    return any(mode_of(reason, modes, name, labels) != OFF for reason in reasons)


def _rules(*, has_policies: bool) -> list[Obj]:
    groups: dict[str, list[str]] = {}
    for kind in (*reviewed_kinds(), *(() if has_policies else MORE_KINDS)):
        groups.setdefault(kind.group, []).append(_plural(kind.name))
    return [
        {
            "apiGroups": [group],
            "apiVersions": ["*"],
            "operations": ["CREATE", "UPDATE"],
            "resources": sorted(set(plurals)),
            "scope": "Namespaced",
        }
        for group, plurals in groups.items()
    ]


def _plural(name: str) -> str:
    lower = name.lower()
    return f"{lower[:-1]}ies" if lower.endswith("y") else f"{lower}s"
