"""Tracks field managers of a write, by resource and subresource.

The arithmetic of field ownership is `apply/`; this says which fields a door ignores (values there are
dropped, so they get no owner) and what the object looks like in the version of another writer.
"""

from __future__ import annotations

from shoal.embedded.apiserver.apply.versions import Elsewhere
from shoal.embedded.apiserver.builtin_conversion import convert_builtin
from shoal.embedded.apiserver.calls import Call
from shoal.embedded.apiserver.catalog import ResourceCatalog
from shoal.embedded.apiserver.crds.conversion import converted_here
from shoal.embedded.apiserver.resource import Home, Obj, Resource
from shoal.embedded.apiserver.schema.node import Schema

_BEHIND_STATUS = {
    Home("", "pods"): ("spec", "metadata.deletionTimestamp", "metadata.ownerReferences"),
    Home("apps", "deployments"): ("spec", "metadata.labels"),
}
_SPEC, _STATUS = ("spec",), ("status",)


def reset_by(call: Call) -> tuple[str, ...]:
    if call.subresource == "status":
        return _BEHIND_STATUS.get(call.resource.home, _SPEC)
    return _STATUS if call.resource.strategy.has_status and not call.subresource else ()


def tracked_as(call: Call) -> str:
    """The door that an entry of managedFields names."""
    return "scale" if call.through_scale else call.subresource


def elsewhere(catalog: ResourceCatalog, resource: Resource) -> Elsewhere:
    """How to see an object in the version of an older entry; entries of versions that are not served are forgotten.

    A conversion webhook is not asked: the fields of such a resource are taken to be called alike in all versions.
    """

    def at(obj: Obj, api_version: str) -> tuple[Obj, Schema] | None:
        group, _, version = api_version.rpartition("/")
        found = catalog.find(group, version, resource.plural)
        if found is None or found.home != resource.home:
            return None
        if resource.is_custom:
            return converted_here(obj, api_version, resource), found.schema
        return convert_builtin(obj, api_version), found.schema

    return at
