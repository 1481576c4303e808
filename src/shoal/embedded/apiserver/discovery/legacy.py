"""The older discovery documents: one for all groups, one a group, one a version. Older clients read them."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

from shoal.embedded.apiserver.discovery.groups import Group, in_order
from shoal.embedded.apiserver.resource import Resource, Subresource

Obj = dict[str, Any]


def api_versions(server_address: str) -> Obj:
    addresses = [{"clientCIDR": "0.0.0.0/0", "serverAddress": server_address}]
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": addresses}


def group_list(found: list[Obj]) -> Obj:
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": found}


def group_entry(name: str, versions: list[str]) -> Obj:
    listed = [{"groupVersion": f"{name}/{one}", "version": one} for one in versions]
    return {"name": name, "versions": listed, "preferredVersion": listed[0]}


def group_document(name: str, versions: list[str]) -> Obj:
    return {"kind": "APIGroup", "apiVersion": "v1", **group_entry(name, versions)}


def resource_list(group: Group, version: str) -> Obj:
    resources = group.resources(version) or ()
    document: Obj = {"kind": "APIResourceList"}
    if group.name:
        document["apiVersion"] = "v1"
    document["groupVersion"] = f"{group.name}/{version}" if group.name else version
    document["resources"] = [entry for one in resources for entry in _entries(one)]
    return document


def _entries(resource: Resource) -> list[Obj]:
    entry: Obj = {
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": list(resource.verbs),
    }
    if resource.short_names:
        entry["shortNames"] = list(resource.short_names)
    if resource.categories:
        entry["categories"] = list(resource.categories)
    if "watch" in resource.verbs:
        entry["storageVersionHash"] = _storage_hash(resource)
    return [entry, *(_door(resource, one) for one in in_order(resource))]


def _door(resource: Resource, subresource: Subresource) -> Obj:
    entry: Obj = {
        "name": f"{resource.plural}/{subresource.name}",
        "singularName": "",
        "namespaced": resource.namespaced,
    }
    if subresource.kind and (subresource.group, subresource.version) != (resource.group, resource.version):
        entry["group"], entry["version"] = subresource.group, subresource.version
    return {**entry, "kind": subresource.kind or resource.kind, "verbs": list(subresource.verbs)}


def _storage_hash(resource: Resource) -> str:
    """Says in which version objects are kept, without saying which: it changes when that does."""
    named = f"{resource.home.group}/{resource.storage_version}/{resource.kind}"
    return base64.b64encode(hashlib.sha256(named.encode()).digest()[:8]).decode()
