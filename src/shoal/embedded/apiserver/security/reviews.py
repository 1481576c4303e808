"""Questions about rights and identities that are asked by creating an object: each function answers one kind.

The object that was sent comes back with its status filled; nothing is stored.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from shoal.embedded.apiserver import field_errors, status
from shoal.embedded.apiserver.calls import Actor
from shoal.embedded.apiserver.field_errors import FieldError
from shoal.embedded.apiserver.request_info import RequestInfo
from shoal.embedded.apiserver.security.authenticate import Authenticator
from shoal.embedded.apiserver.security.authorize import Authorizer
from shoal.embedded.apiserver.security.rules import PolicyRule

Obj = dict[str, Any]
_GROUP = "authorization.k8s.io"
_EITHER = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
_BOTH = "cannot be specified in combination with resourceAttributes"


def token_review(obj: Obj, authenticator: Authenticator, now_s: int) -> Obj:
    spec = obj.get("spec") or {}
    if not spec.get("token"):
        raise status.bad_request("token is required for TokenReview in authentication")
    answer = authenticator.review(spec["token"], tuple(spec.get("audiences") or ()), now_s)
    if answer.actor is None:
        return {**obj, "status": {"error": answer.fault, "user": {}}}
    found = {"authenticated": True, "user": user_info(answer.actor), "audiences": list(answer.audiences)}
    return {**obj, "status": found}


def self_subject_review(obj: Obj, actor: Actor) -> Obj:
    return {**obj, "status": {"userInfo": user_info(actor)}}


def subject_access_review(obj: Obj, authorizer: Authorizer) -> Obj:
    """Whether a user, who need not exist, may do something."""
    spec = obj.get("spec") or {}
    faults = _faults(spec)
    if not spec.get("user") and not spec.get("groups"):
        faults.append(field_errors.bad_value("spec.user", "", "at least one of user or group must be specified"))
    _refuse(faults)
    return _answered(obj, _subject(spec), authorizer)


def local_subject_access_review(obj: Obj, namespace: str, authorizer: Authorizer) -> Obj:
    """The same within one namespace, for users who may ask there only."""
    spec = obj.get("spec") or {}
    faults = _faults(spec)
    if not spec.get("user") and not spec.get("groups"):
        faults.append(field_errors.bad_value("spec.user", "", "at least one of user or group must be specified"))
    if spec.get("nonResourceAttributes") is not None:
        where, words = "spec.nonResourceAttributes", "disallowed on this kind of request"
        faults.append(field_errors.bad_value(where, spec["nonResourceAttributes"], words))
    _refuse(faults)
    if (spec["resourceAttributes"].get("namespace") or "") != namespace:
        raise status.bad_request(f"spec.resourceAttributes.namespace must match namespace: {namespace}")
    return _answered(obj, _subject(spec), authorizer)


def self_subject_access_review(obj: Obj, actor: Actor, authorizer: Authorizer) -> Obj:
    _refuse(_faults(obj.get("spec") or {}))
    return _answered(obj, actor, authorizer)


def self_subject_rules_review(obj: Obj, actor: Actor, authorizer: Authorizer) -> Obj:
    namespace = (obj.get("spec") or {}).get("namespace") or ""
    if not namespace:
        raise status.bad_request("no namespace on request")
    held = authorizer.held(actor, namespace)
    answer: Obj = {
        "incomplete": bool(held.faults),
        "nonResourceRules": _listed(rule for rule in held.rules if rule.paths),
        "resourceRules": _listed(rule for rule in held.rules if not rule.paths),
    }
    if held.faults:
        answer["evaluationError"] = ", ".join(held.faults)
    return {**obj, "spec": {}, "status": answer}


def user_info(actor: Actor) -> Obj:
    """An actor as reviews and admission webhooks receive it."""
    found: Obj = {"username": actor.name}
    if actor.uid:
        found["uid"] = actor.uid
    if actor.groups:
        found["groups"] = list(actor.groups)
    if actor.extra:
        found["extra"] = {key: list(values) for key, values in actor.extra}
    return found


def _subject(spec: Obj) -> Actor:
    extra = tuple((key.lower(), tuple(values)) for key, values in (spec.get("extra") or {}).items())
    return Actor(spec.get("user") or "", tuple(spec.get("groups") or ()), spec.get("uid") or "", extra)


def _asked(spec: Obj) -> RequestInfo:
    path = spec.get("nonResourceAttributes")
    if path is not None:
        return RequestInfo.of_path(path.get("verb") or "", path.get("path") or "")
    asked = spec["resourceAttributes"]
    keys = ("verb", "group", "version", "resource", "subresource", "namespace", "name")
    verb, group, version, resource, subresource, namespace, name = (asked.get(key) or "" for key in keys)
    terms = (asked.get("fieldSelector") or {}).get("requirements") or ()
    fields = tuple(
        (one.get("key") or "", one["values"][0])
        for one in terms
        if one.get("operator") == "In" and len(one.get("values") or ()) == 1
    )
    return RequestInfo(verb, group, version, resource, subresource, namespace, name, fields=fields)


def _answered(obj: Obj, actor: Actor, authorizer: Authorizer) -> Obj:
    verdict = authorizer.allows(actor, _asked(obj["spec"]))
    found: Obj = {"allowed": verdict.allowed}
    if verdict.reason:
        found["reason"] = verdict.reason
    return {**obj, "status": found}


def _faults(spec: Obj) -> list[FieldError]:
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if resource is not None and path is not None:
        return [field_errors.bad_value("spec.nonResourceAttributes", path, _BOTH)]
    if resource is None and path is None:
        return [field_errors.bad_value("spec.resourceAttributes", None, _EITHER)]
    return []


def _refuse(faults: list[FieldError]) -> None:
    """Kubernetes says the group without the kind here."""
    if faults:
        raise status.invalid("", _GROUP, "", faults)


def _listed(rules: Iterable[PolicyRule]) -> list[Obj]:
    return [rule.to_api() for rule in rules]
