"""One write in the form that webhooks and policies receive: `AdmissionRequest`, and the attributes that rules match.

Kind and resource are those of the subresource that is written: a binding is asked about as `pods/binding` of kind
Binding. Objects of the namespace kind count as being in themselves, as in Kubernetes.
"""

from __future__ import annotations

from typing import Any

import msgspec

from shoal.embedded.apiserver.calls import AdmissionAttributes, Call
from shoal.embedded.apiserver.request_info import RequestInfo
from shoal.embedded.apiserver.resource import Resource

Obj = dict[str, Any]
_OPTIONS = {"CREATE": "CreateOptions", "UPDATE": "UpdateOptions", "DELETE": "DeleteOptions"}
_VERBS = {"CREATE": "create", "UPDATE": "update", "DELETE": "delete", "CONNECT": "connect"}
_NAMESPACES = ("", "namespaces")


class RequestKind(msgspec.Struct, frozen=True):
    group: str
    version: str
    kind: str

    def shown(self) -> Obj:
        return {"group": self.group, "version": self.version, "kind": self.kind}


def kind_behind(resource: Resource, subresource: str) -> RequestKind:
    """What is sent through a subresource of a resource."""
    found = resource.subresource(subresource) if subresource else None
    if found is not None and found.kind:
        return RequestKind(found.group, found.version, found.kind)
    return RequestKind(resource.group, resource.version, resource.kind)


def namespace_of(admission: AdmissionAttributes) -> str:
    call = admission.call
    if call.resource.home == _NAMESPACES:
        return admission.name
    return call.namespace


def request_of(admission: AdmissionAttributes, asked: Resource) -> Obj:
    """All of an AdmissionRequest but uid and objects. `asked`: the resource in the version that a rule names."""
    call = admission.call
    request: Obj = {
        "kind": kind_behind(asked, call.subresource).shown(),
        "resource": _resource(asked),
        "requestKind": kind_behind(call.resource, call.subresource).shown(),
        "requestResource": _resource(call.resource),
        "operation": admission.operation,
        "userInfo": _user(call),
        "dryRun": call.dry_run,
        "options": options_of(admission),
    }
    if call.subresource:
        request["subResource"] = request["requestSubResource"] = call.subresource
    if admission.name:
        request["name"] = admission.name
    namespace = namespace_of(admission)
    if namespace:
        request["namespace"] = namespace
    return request


def options_of(admission: AdmissionAttributes) -> Obj | None:
    kind = _OPTIONS.get(admission.operation)
    if kind is None:
        return None
    given = {key: value for key, value in _said(admission.options).items() if key != "force"}
    call = admission.call
    if admission.operation == "UPDATE" and not given:
        given = {"fieldManager": call.field_manager, "fieldValidation": call.validation}
        if call.dry_run:
            given["dryRun"] = ["All"]
    return {**given, "kind": kind, "apiVersion": "meta.k8s.io/v1"}


def attributes_of(admission: AdmissionAttributes) -> RequestInfo:
    """What an authorizer would be asked about this write."""
    call, resource = admission.call, admission.call.resource
    return RequestInfo(
        _VERBS[admission.operation],
        resource.group,
        resource.version,
        resource.plural,
        call.subresource,
        namespace_of(admission),
        admission.name,
    )


def _said(options: Obj) -> Obj:
    """Without what was left out."""
    return {
        key: _said(value) if isinstance(value, dict) else value for key, value in options.items() if value is not None
    }


def _resource(resource: Resource) -> Obj:
    return {"group": resource.group, "version": resource.version, "resource": resource.plural}


def _user(call: Call) -> Obj:
    actor = call.actor
    user: Obj = {"username": actor.name}
    if actor.uid:
        user["uid"] = actor.uid
    if actor.groups:
        user["groups"] = list(actor.groups)
    if actor.extra:
        user["extra"] = {key: list(values) for key, values in actor.extra}
    return user
