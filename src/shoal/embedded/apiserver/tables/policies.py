"""The rows of what rules the cluster: roles and bindings, policies, webhooks, certificates, flow control, devices."""

from __future__ import annotations

from typing import Any

from shoal.embedded.apiserver.tables.ages import duration
from shoal.embedded.apiserver.tables.phrases import NONE, UNSET
from shoal.embedded.apiserver.tables.printer import (
    Obj,
    Printer,
    age,
    condition_status,
    heads,
    name,
    name_and_age,
    name_and_creation,
    part,
)


def role_binding(obj: Obj, now_s: int) -> list[Any]:
    subjects = obj.get("subjects") or ()
    role = part(obj, "roleRef")
    people = [", ".join(_subject(one) for one in subjects if one.get("kind") == kind) for kind in _SUBJECTS]
    return [name(obj), f"{role.get('kind', '')}/{role.get('name', '')}", age(obj, now_s), *people]


_SUBJECTS = ("User", "Group", "ServiceAccount")


def _subject(one: Obj) -> str:
    named = one.get("name", "")
    return f"{one['namespace']}/{named}" if one.get("kind") == "ServiceAccount" and one.get("namespace") else named


def signing_request(obj: Obj, now_s: int) -> list[Any]:
    spec, status = part(obj, "spec"), part(obj, "status")
    kinds = {one.get("type") for one in status.get("conditions") or ()}
    word = "Denied" if "Denied" in kinds else "Approved" if "Approved" in kinds else "Pending"
    word += ",Failed" if "Failed" in kinds else ""
    word += ",Issued" if status.get("certificate") else ""
    lasting = spec.get("expirationSeconds")
    shown = NONE if lasting is None else duration(lasting)
    return [name(obj), age(obj, now_s), spec.get("signerName") or NONE, spec.get("username", ""), shown, word]


def lease(obj: Obj, now_s: int) -> list[Any]:
    return [name(obj), part(obj, "spec").get("holderIdentity") or "", age(obj, now_s)]


def priority_class(obj: Obj, now_s: int) -> list[Any]:
    is_default = bool(obj.get("globalDefault"))
    return [name(obj), obj.get("value") or 0, is_default, age(obj, now_s), obj.get("preemptionPolicy") or ""]


def runtime_class(obj: Obj, now_s: int) -> list[Any]:
    return [name(obj), obj.get("handler", ""), age(obj, now_s)]


def webhooks(obj: Obj, now_s: int) -> list[Any]:
    return [name(obj), len(obj.get("webhooks") or ()), age(obj, now_s)]


def _policy(obj: Obj, now_s: int, rules: str) -> list[Any]:
    spec = part(obj, "spec")
    kind = spec.get("paramKind")
    shown = f"{kind.get('apiVersion', '')}/{kind.get('kind', '')}" if kind else UNSET
    return [name(obj), len(spec.get(rules) or ()), shown, age(obj, now_s)]


def validating_policy(obj: Obj, now_s: int) -> list[Any]:
    return _policy(obj, now_s, "validations")


def mutating_policy(obj: Obj, now_s: int) -> list[Any]:
    return _policy(obj, now_s, "mutations")


def policy_binding(obj: Obj, now_s: int) -> list[Any]:
    spec = part(obj, "spec")
    found = spec.get("paramRef") or {}
    shown = UNSET
    if found.get("name"):
        shown = f"{found.get('namespace') or '*'}/{found['name']}"
    elif found.get("selector") is not None:
        shown = _go_selector(found["selector"])
    return [name(obj), spec.get("policyName", ""), shown, age(obj, now_s)]


def _go_selector(selector: Obj) -> str:
    """A selector as Go prints the struct; the only cell that shows one so."""
    labels = "".join(f"{key}: {value}," for key, value in sorted(part(selector, "matchLabels").items()))
    rules = "".join(
        f"LabelSelectorRequirement{{Key:{one.get('key', '')},Operator:{one.get('operator', '')},"
        f"Values:[{' '.join(one.get('values') or ())}],}},"
        for one in selector.get("matchExpressions") or ()
    )
    members = f"MatchLabels:map[string]string{{{labels}}},MatchExpressions:[]LabelSelectorRequirement{{{rules}}},"
    return f"&LabelSelector{{{members}}}"


def flow_schema(obj: Obj, now_s: int) -> list[Any]:
    spec = part(obj, "spec")
    return [
        name(obj),
        part(spec, "priorityLevelConfiguration").get("name", ""),
        spec.get("matchingPrecedence") or 0,
        part(spec, "distinguisherMethod").get("type") or NONE,
        age(obj, now_s),
        condition_status(part(obj, "status").get("conditions"), "Dangling") or "?",
    ]


def _precedence(obj: Obj) -> tuple[int, str]:
    return part(obj, "spec").get("matchingPrecedence") or 0, name(obj)


def priority_level(obj: Obj, now_s: int) -> list[Any]:
    spec = part(obj, "spec")
    limited = spec.get("limited")
    shares = NONE if limited is None else limited.get("nominalConcurrencyShares", NONE)
    queuing = part(part(limited or {}, "limitResponse"), "queuing")
    queues = [queuing.get(key, NONE) for key in ("queues", "handSize", "queueLengthLimit")]
    return [name(obj), spec.get("type", ""), shares, *queues, age(obj, now_s)]


def resource_claim(obj: Obj, now_s: int) -> list[Any]:
    status, is_deleted = part(obj, "status"), bool(obj["metadata"].get("deletionTimestamp"))
    states = ["deleted"] if is_deleted else []
    if status.get("allocation") is not None:
        states += ["allocated", "reserved"] if status.get("reservedFor") else ["allocated"]
    elif not is_deleted:
        states.append("pending")
    return [name(obj), ",".join(states), age(obj, now_s)]


def resource_slice(obj: Obj, now_s: int) -> list[Any]:
    spec = part(obj, "spec")
    pool = part(spec, "pool").get("name", "")
    return [name(obj), spec.get("nodeName") or "", spec.get("driver", ""), pool, age(obj, now_s)]


def api_service(obj: Obj, now_s: int) -> list[Any]:
    service = part(obj, "spec").get("service")
    shown = f"{service.get('namespace', '')}/{service.get('name', '')}" if service else "Local"
    found = next((one for one in part(obj, "status").get("conditions") or () if one.get("type") == "Available"), None)
    available = "Unknown" if found is None else found.get("status", "")
    if found is not None and available != "True" and found.get("reason"):
        available = f"{available} ({found['reason']})"
    return [name(obj), shown, available, age(obj, now_s)]


_RBAC, _ADMISSION = "rbac.authorization.k8s.io", "admissionregistration.k8s.io"
_FLOW, _DEVICES = "flowcontrol.apiserver.k8s.io", "resource.k8s.io"
_CREATED = Printer(heads("Name", "Created At:date"), name_and_creation)
_AGED = Printer(heads("Name", "Age"), name_and_age)
_BINDING = Printer(heads("Name", "Role", "Age", "+Users", "+Groups", "+ServiceAccounts"), role_binding)
_POLICY_BINDING = Printer(heads("Name", "PolicyName", "ParamRef", "Age"), policy_binding)
_WEBHOOKS = Printer(heads("Name", "Webhooks:integer", "Age"), webhooks)
_LEVEL = ("Type", "NominalConcurrencyShares", "Queues", "HandSize", "QueueLengthLimit", "Age")
_REQUEST = ("Age", "SignerName", "Requestor", "RequestedDuration", "Condition")
_PRIORITY = ("Value:integer", "Global-Default:boolean", "Age", "PreemptionPolicy")

POLICIES: dict[tuple[str, str], Printer] = {
    (_RBAC, "clusterrolebindings"): _BINDING,
    (_RBAC, "clusterroles"): _CREATED,
    (_RBAC, "rolebindings"): _BINDING,
    (_RBAC, "roles"): _CREATED,
    (_ADMISSION, "mutatingadmissionpolicies"): Printer(
        heads("Name", "Mutations:integer", "ParamKind", "Age"), mutating_policy
    ),
    (_ADMISSION, "mutatingadmissionpolicybindings"): _POLICY_BINDING,
    (_ADMISSION, "mutatingwebhookconfigurations"): _WEBHOOKS,
    (_ADMISSION, "validatingadmissionpolicies"): Printer(
        heads("Name", "Validations:integer", "ParamKind", "Age"), validating_policy
    ),
    (_ADMISSION, "validatingadmissionpolicybindings"): _POLICY_BINDING,
    (_ADMISSION, "validatingwebhookconfigurations"): _WEBHOOKS,
    (_FLOW, "flowschemas"): Printer(
        heads("Name", "PriorityLevel", "MatchingPrecedence", "DistinguisherMethod", "Age", "MissingPL"),
        flow_schema,
        order=_precedence,
    ),
    (_FLOW, "prioritylevelconfigurations"): Printer(heads("Name", *_LEVEL), priority_level),
    (_DEVICES, "deviceclasses"): _AGED,
    (_DEVICES, "resourceclaims"): Printer(heads("Name", "State", "Age"), resource_claim),
    (_DEVICES, "resourceclaimtemplates"): _AGED,
    (_DEVICES, "resourceslices"): Printer(heads("Name", "Node", "Driver", "Pool", "Age"), resource_slice),
    ("apiextensions.k8s.io", "customresourcedefinitions"): _CREATED,
    ("apiregistration.k8s.io", "apiservices"): Printer(heads("Name", "Service", "Available", "Age"), api_service),
    ("certificates.k8s.io", "certificatesigningrequests"): Printer(heads("Name", *_REQUEST), signing_request),
    ("coordination.k8s.io", "leases"): Printer(heads("Name", "Holder", "Age"), lease),
    ("node.k8s.io", "runtimeclasses"): Printer(heads("Name", "Handler", "Age"), runtime_class),
    ("scheduling.k8s.io", "priorityclasses"): Printer(heads("Name", *_PRIORITY), priority_class),
}
