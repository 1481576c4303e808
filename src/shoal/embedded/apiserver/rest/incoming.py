"""Checks a received object against the path of the request: type, name, namespace, unknown fields.

What comes out has the fields of its schema, kind and apiVersion, and a metadata map with the address of the request.
"""

from __future__ import annotations

from collections.abc import Sequence

from shoal.data.kubernetes_schemas import NEWEST
from shoal.embedded.apiserver import status
from shoal.embedded.apiserver.calls import Call
from shoal.embedded.apiserver.crds.pruning import conform_custom
from shoal.embedded.apiserver.resource import Obj, Resource
from shoal.embedded.apiserver.schema.decode import conform, strict_error
from shoal.embedded.apiserver.schema.kubernetes import published

_SCHEME = "k8s.io/kubernetes/pkg/api/legacyscheme/scheme.go:30"
"""Where Kubernetes has its list of built-in kinds; it says so to clients."""


def accepted(call: Call, obj: object, duplicates: Sequence[str] = ()) -> Obj:
    """The object as the API understands it; unknown fields are gone, and refused or warned of as asked."""
    sent, resource = typed(call, obj), call.resource
    if resource.is_custom:
        problems = conform_custom(sent, resource.schema)
    else:
        problems = conform(sent, resource.schema, kind=resource.kind, api_version=resource.api_version)
    if duplicates or problems:
        _report(call, [*duplicates, *problems])
    if not isinstance(sent.get("metadata"), dict):
        sent["metadata"] = {}
    return sent


def typed(call: Call, obj: object, duplicates: Sequence[str] = ()) -> Obj:
    """The object as it was sent, once it is known to be of the kind that belongs here."""
    if not isinstance(obj, dict):
        raise status.bad_request(
            "couldn't get version/kind; json parse error: json: cannot unmarshal "
            f"{_go_kind(obj)} into Go value of type struct {{ APIVersion string; Kind string }}"
        )
    _check_type(call.resource, obj)
    if duplicates:
        _report(call, duplicates)
    if obj.get("metadata") is None:
        obj["metadata"] = {}
    return obj


def _report(call: Call, problems: Sequence[str]) -> None:
    if call.validation == "Strict":
        raise strict_error(problems, kind=call.resource.kind, api_version=call.resource.api_version)
    if call.validation == "Warn":
        call.warnings.extend(problems)


def _check_type(resource: Resource, obj: Obj) -> None:
    kind, api_version = obj.get("kind"), obj.get("apiVersion")
    if not kind:
        obj["kind"] = kind = resource.kind
    if not api_version:
        obj["apiVersion"] = api_version = resource.api_version
    if kind == resource.kind and api_version == resource.api_version:
        return
    if not isinstance(kind, str) or not isinstance(api_version, str):
        raise status.bad_request("couldn't get version/kind; json parse error: kind and apiVersion must be strings")
    group, _, version = api_version.rpartition("/")
    is_known = published(NEWEST).find(group, version, kind) is not None
    if not resource.is_custom and not (is_known and kind == resource.kind):
        why = (
            f"converting ({version}.{kind}) to ({resource.group or 'core'}.{resource.kind}): unknown conversion"
            if is_known
            else f'no kind "{kind}" is registered for version "{api_version}" in scheme "{_SCHEME}"'
        )
        raise status.bad_request(f'{kind} in version "{version}" cannot be handled as a {resource.kind}: {why}')
    if kind != resource.kind:
        raise status.bad_request(
            f'{kind} in version "{version}" cannot be handled as a {resource.kind}: no kind "{kind}" is registered '
            f'for version "{api_version}" in scheme'
        )
    raise status.bad_request(
        f"the API version in the data ({api_version}) does not match the expected API version ({resource.api_version})"
    )


def at_home(call: Call, obj: Obj, name_in_path: str = "") -> None:
    """The address inside the object agrees with the one in the path, and is filled in from it."""
    metadata, resource = obj["metadata"], call.resource
    if resource.namespaced:
        inside = metadata.get("namespace") or call.namespace
        if inside != call.namespace:
            raise status.bad_request(
                "the namespace of the provided object does not match the namespace sent on the request"
            )
        metadata["namespace"] = call.namespace
    else:
        metadata.pop("namespace", None)
    if not name_in_path:
        return
    inside = metadata.get("name", "")
    if not inside:
        metadata["name"] = name_in_path
    elif inside != name_in_path:
        raise status.bad_request(
            f"the name of the object ({inside}) does not match the name on the URL ({name_in_path})"
        )


def still_at_home(call: Call, obj: Obj) -> None:
    """An object that is replaced or patched has a name, and still the address of the request."""
    if not (obj.get("metadata") or {}).get("name"):
        raise unnamed(call)
    at_home(call, obj, call.name)


def unnamed(call: Call) -> status.ApiError:
    return status.bad_request(
        f"the name of the object ({call.name} based on URL) was undeterminable: name must be provided"
    )


def _go_kind(value: object) -> str:
    if isinstance(value, list):
        return "array"
    if isinstance(value, str):
        return "string"
    if isinstance(value, bool):
        return "bool"
    return "number" if value is not None else "null"
