"""Adds one resource per served version of a CustomResourceDefinition to the API.

Nothing is served before the definition is established (`establish.py`), nor its accepted names replaced by asked ones:
a short name that another definition already has stays with the other.
"""

from __future__ import annotations

from typing import Any

from shoal.embedded.apiserver.crds.custom import CustomStrategy
from shoal.embedded.apiserver.crds.establish import is_established
from shoal.embedded.apiserver.crds.structural import schema_of
from shoal.embedded.apiserver.foreign.provided import converter_of
from shoal.embedded.apiserver.resource import Column, Resource, Subresource

Obj = dict[str, Any]

_AGE = Column(
    "Age",
    "date",
    ".metadata.creationTimestamp",
    description=(
        "CreationTimestamp is a timestamp representing the server time when this object was created. It is not "
        "guaranteed to be set in happens-before order across separate operations. Clients may not set this value. It "
        "is represented in RFC3339 form and is in UTC."
    ),
)
_VERBS = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
"""In the order in which Kubernetes tells them of custom resources."""
_WRITE = ("get", "patch", "update")


def served(crd: Obj) -> list[Resource]:
    """The resources of a definition, in the order of its versions; none while it is not established."""
    if not is_established(crd):
        return []
    versions = crd["spec"]["versions"]
    return [_resource(crd, version) for version in versions if version.get("served")]


def storage_version(crd: Obj) -> str:
    return next((str(one["name"]) for one in crd["spec"]["versions"] if one.get("storage")), "")


def _resource(crd: Obj, version: Obj) -> Resource:
    spec = crd["spec"]
    names = (crd.get("status") or {}).get("acceptedNames") or spec["names"]
    published = (version.get("schema") or {}).get("openAPIV3Schema") or {}
    subresources = version.get("subresources") or {}
    conversion = spec.get("conversion") or {}
    return Resource(
        group=spec["group"],
        version=version["name"],
        plural=names["plural"],
        kind=names["kind"],
        namespaced=spec.get("scope") == "Namespaced",
        singular=names.get("singular", ""),
        list_kind=names.get("listKind") or f"{names['kind']}List",
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        verbs=_VERBS,
        subresources=_subresources(spec["group"], version["name"], names["kind"], subresources),
        stored_version=storage_version(crd),
        schema=schema_of(published),
        strategy=CustomStrategy(crd, version, published),
        columns=_columns(version),
        is_custom=True,
        scale_paths=_scale_paths(subresources.get("scale")),
        conversion_webhook=conversion.get("webhook") if conversion.get("strategy") == "Webhook" else None,
        converter=converter_of(crd),
    )


def _subresources(group: str, version: str, kind: str, written: Obj) -> tuple[Subresource, ...]:
    found = []
    if written.get("status") is not None:
        found.append(Subresource("status", _WRITE, kind, group, version))
    if written.get("scale") is not None:
        found.append(Subresource("scale", _WRITE, "Scale", "autoscaling", "v1"))
    return tuple(found)


def _columns(version: Obj) -> tuple[Column, ...]:
    written = version.get("additionalPrinterColumns")
    if not written:
        return (_AGE,)
    return tuple(
        Column(
            name=one["name"],
            type=one["type"],
            json_path=one["jsonPath"],
            format=one.get("format", ""),
            description=one.get("description", ""),
            priority=one.get("priority", 0),
        )
        for one in written
    )


def _scale_paths(scale: Obj | None) -> tuple[str, str, str] | None:
    if scale is None:
        return None
    return scale["specReplicasPath"], scale["statusReplicasPath"], scale.get("labelSelectorPath", "")
