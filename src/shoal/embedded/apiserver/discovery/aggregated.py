"""The newer discovery document: all groups with all their resources in one answer (`apidiscovery.k8s.io`).

kubectl asks for this first, with two requests in place of one per group and version. The two served versions of the
document differ in nothing but their name.
"""

from __future__ import annotations

from typing import Any

from shoal.embedded.apiserver.discovery.groups import Group, in_order
from shoal.embedded.apiserver.resource import Resource, Subresource

Obj = dict[str, Any]


def document(version: str, items: list[Obj]) -> Obj:
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": f"apidiscovery.k8s.io/{version}",
        "metadata": {},
        "items": items,
    }


def group_item(group: Group) -> Obj:
    return {
        "metadata": {"name": group.name} if group.name else {},
        "versions": [
            {"version": version, "resources": [_resource(one) for one in found], "freshness": "Current"}
            for version, found in group.versions
        ],
    }


def _resource(resource: Resource) -> Obj:
    entry: Obj = {
        "resource": resource.plural,
        "responseKind": _own_kind(resource),
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": resource.singular,
        "verbs": list(resource.verbs),
    }
    if resource.short_names:
        entry["shortNames"] = list(resource.short_names)
    if resource.categories:
        entry["categories"] = list(resource.categories)
    if resource.subresources:
        entry["subresources"] = [
            {
                "subresource": one.name,
                "responseKind": _spoken(resource, one),
                "verbs": list(one.verbs),
            }
            for one in in_order(resource)
        ]
    return entry


def _spoken(resource: Resource, one: Subresource) -> Obj:
    if not one.kind:
        return _own_kind(resource)
    if (one.group, one.version) == (resource.group, resource.version) and not resource.is_custom:
        return _kind("", "", one.kind)
    return _kind(one.group, one.version, one.kind)


def _own_kind(resource: Resource) -> Obj:
    """For built-in kinds only the name is given, as in Kubernetes: group and version are those of the list."""
    if resource.is_custom:
        return _kind(resource.group, resource.version, resource.kind)
    return _kind("", "", resource.kind)


def _kind(group: str, version: str, kind: str) -> Obj:
    return {"group": group, "version": version, "kind": kind}
